#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/matrix.h"
#include "unmoor/ops/packed.h"
#include "unmoor/ops/qlinear.h"

namespace unmoor {
namespace {

constexpr int64_t largest_side = int64_t{1} << 31;

// B is [N, K]: row n holds the weights of output n, in blocks along K that share a scale and a zero point.
struct Packing {
  int64_t k = 0, n = 0, bits = 4, block = 0, blocks = 0;  // `blocks` of a row.
  int64_t row_bytes() const { return blocks * (block * bits / 8); }
  int64_t zero_bytes() const { return ceil_div(blocks * bits, 8); }
};

int64_t side(const OpCall& call, const char* key) {
  const int64_t size = call.integer(key, 0);
  if (size < 1 || size > largest_side) fail(ErrorKind::InvalidModel, title(call), ": ", key, " is ", size);
  return size;
}

void require_elements(const OpCall& call, size_t i, const Shape& wanted) {
  if (!call.has(i) || !call.input(i).shape.is_known() || call.input(i).shape.elements() == wanted.elements()) return;
  fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", call.input(i).shape, ", not ", wanted);
}

// Weights without elements mean zeros: what remains is the bias. Then scales, zero points and g_idx may be empty too.
bool omitted(const OpCall& call) { return call.input(1).shape.is_known() && call.input(1).shape.elements() == 0; }

// Inputs: A, B, scales, zero_points, g_idx, bias.
Packing packing_of(const OpCall& call) {
  Packing packing{side(call, "K"), side(call, "N"), call.integer("bits", 4), call.integer("block_size", 0)};
  require_packed_bits(call, packing.bits);
  require_block(call, packing.block);
  if (packing.block > largest_side) fail(ErrorKind::InvalidModel, title(call), ": block_size is ", packing.block);
  packing.blocks = ceil_div(packing.k, packing.block);
  const int64_t layout = call.integer("weight_prepacked", 0);
  if (layout != 0) {
    fail(ErrorKind::Unsupported, title(call), ": weight_prepacked is ", layout, ", weights in the layout of one make of device");
  }
  require_elements(call, 5, Shape{packing.n});
  if (omitted(call)) return packing;
  const bool packed_zero = call.has(3) && call.input(3).dtype == DType::U8;
  require_elements(call, 1, Shape{packing.n, packing.blocks, packing.block * packing.bits / 8});
  require_elements(call, 2, Shape{packing.n, packing.blocks});
  require_elements(call, 3, Shape{packing.n, packed_zero ? packing.zero_bytes() : packing.blocks});
  require_elements(call, 4, Shape{packing.k});
  return packing;
}

std::vector<Type> infer_nbits(const OpCall& call) {
  const Packing packing = packing_of(call);
  const TensorType& a = call.input(0);
  for (const size_t i : {size_t{2}, size_t{3}, size_t{5}}) {
    if (call.has(i) && call.input(i).dtype != a.dtype && !(i == 3 && call.input(i).dtype == DType::U8)) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", a.dtype);
    }
  }
  if (!a.shape.has_rank()) return {a};
  if (a.shape.rank() == 0) fail(ErrorKind::InvalidModel, title(call), ": A has no dimension");
  same_dim(call, a.shape[a.shape.rank() - 1], packing.k, "K");
  Shape shape = a.shape;
  shape.set(shape.rank() - 1, packing.n);
  return {TensorType{a.dtype, std::move(shape)}};
}

// The weights of one output after another, dequantized.
class Rows {
 public:
  Rows(const OpCall& call, const Packing& packing, std::span<const Data> in)
      : packing_(packing), bytes_(in[1].tensor().span<uint8_t>()), scales_(doubles(in[2].tensor())), groups_(integers_at(in, 4)) {
    const Tensor* zero = tensor_at(in, 3);
    if (zero != nullptr && zero->dtype() == DType::U8) {
      zero_bytes_ = zero->span<uint8_t>();
    } else {
      zeros_ = doubles_at(in, 3);
    }
    for (const int64_t group : groups_) {
      if (group < 0 || group >= packing.blocks) {
        fail(ErrorKind::InvalidArgument, title(call), ": g_idx has ", group, ", not from 0 to ", packing.blocks - 1);
      }
    }
  }

  void read(size_t n, std::span<double> row) const {
    const auto blocks = static_cast<size_t>(packing_.blocks);
    const auto bits = static_cast<size_t>(packing_.bits);
    const auto row_bytes = static_cast<size_t>(packing_.row_bytes());
    const auto bytes = bytes_.subspan(n * row_bytes, row_bytes);
    for (size_t k = 0; k < row.size(); ++k) {
      const size_t block = groups_.empty() ? k / static_cast<size_t>(packing_.block) : static_cast<size_t>(groups_[k]);
      row[k] = (packed_at(bytes, bits, k) - zero(n, block)) * scales_[n * blocks + block];
    }
  }

 private:
  double zero(size_t n, size_t block) const {
    if (!zeros_.empty()) return zeros_[n * static_cast<size_t>(packing_.blocks) + block];
    const auto bits = static_cast<size_t>(packing_.bits);
    if (zero_bytes_.empty()) return static_cast<double>(1U << (bits - 1));
    const auto bytes = static_cast<size_t>(packing_.zero_bytes());
    return packed_at(zero_bytes_.subspan(n * bytes, bytes), bits, block);
  }

  Packing packing_;
  std::span<const uint8_t> bytes_, zero_bytes_;
  std::vector<double> scales_, zeros_;
  std::vector<int64_t> groups_;
};

void run_nbits(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Packing packing = packing_of(call);
  const std::vector<double> a = doubles(in[0].tensor());
  const std::vector<double> bias = doubles_at(in, 5);
  const auto k = static_cast<size_t>(packing.k);
  const auto n = static_cast<size_t>(packing.n);
  const size_t m = a.size() / k;
  std::vector<double> y(m * n);
  if (omitted(call)) {
    for (size_t i = 0; i < y.size() && !bias.empty(); ++i) y[i] = bias[i % n];
    return put(call, out, 0, std::span<const double>(y));
  }
  const Rows rows(call, packing, in);
  std::vector<double> row(k);
  for (size_t j = 0; j < n && m > 0; ++j) {
    rows.read(j, row);
    for (size_t i = 0; i < m; ++i) {
      double sum = bias.empty() ? 0 : bias[j];
      for (size_t p = 0; p < k; ++p) sum += a[i * k + p] * row[p];
      y[i * n + j] = sum;
    }
  }
  put(call, out, 0, std::span<const double>(y));
}

void expand_nbits(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const Packing packing = packing_of(call);
  const int64_t n = packing.n;
  if (omitted(call)) {
    const Shape& shape = call.output(0).shape;
    if (!shape.is_known()) fail(ErrorKind::Unsupported, title(call), " cannot be expanded: the shape of A is not known");
    return f.output(0, f.add("Expand", {f.has(5) ? f.reshaped(f.input(5), {n}) : f.number(0), f.ints(shape.dims())}));
  }
  const int64_t blocks = packing.blocks;
  const bool grouped = f.has(4);
  // A scale or zero point for each block, as [N, blocks, 1], or for each weight if g_idx picks the block.
  const auto placed = [&](ValueId value) {
    const ValueId by_block = f.reshaped(value, {n, blocks});
    return grouped ? f.add("Gather", {by_block, f.raw(4)}, {{"axis", int64_t{1}}}) : f.reshaped(by_block, {n, blocks, 1});
  };
  const auto cut = [&](ValueId value, int64_t to) {  // Columns [0, to) of axis 1.
    return f.add("Slice", {value, f.ints({0}), f.ints({to}), f.ints({1})});
  };
  ValueId w = add_unpacked(f, f.raw(1), packing.bits, {n, blocks, packing.block});
  if (grouped) w = cut(f.reshaped(w, {n, blocks * packing.block}), packing.k);
  ValueId zero = f.number(static_cast<double>(int64_t{1} << (packing.bits - 1)));
  if (f.has(3) && call.input(3).dtype == DType::U8) {
    const int64_t held = packing.zero_bytes() * (8 / packing.bits);
    zero = placed(cut(add_unpacked(f, f.raw(3), packing.bits, {n, held}), blocks));
  } else if (f.has(3)) {
    zero = placed(f.input(3));
  }
  w = f.product(f.difference(w, zero), placed(f.input(2)));
  if (!grouped) w = f.reshaped(w, {n, blocks * packing.block});
  if (!grouped && blocks * packing.block != packing.k) w = cut(w, packing.k);
  ValueId y = f.add("MatMul", {f.input(0), f.add("Transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}})});
  if (f.has(5)) y = f.sum(y, f.reshaped(f.input(5), {n}));
  f.output(0, y);
}

Op matmul_nbits() {
  Op op;
  op.name = "com.microsoft:MatMulNBits";
  op.summary = "A times the transpose of weights of 2, 4 or 8 bits, dequantized by blocks of a row; plus a bias.";
  std::vector<DType> zero_types = float_types();
  zero_types.push_back(DType::U8);
  op.inputs = {required("A", float_types()),        required("B", {DType::U8}),      required("scales", float_types()),
               optional("zero_points", zero_types), optional("g_idx", {DType::I32}), optional("bias", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"accuracy_level", int64_t{0}}, {"bits", int64_t{4}}, {"weight_prepacked", int64_t{0}}};
  op.infer = infer_nbits;
  op.reference = run_nbits;
  op.expand = expand_nbits;
  op.cost = [](const OpCall& call) {
    return Cost{2 * elements_or_zero(call.input(0).shape) * static_cast<double>(call.integer("N", 0)), bytes_moved(call)};
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Quantization;
  op.cases = {"T[2,32]~small u8[3,2,8]! T[3,2]~unit! K=32 N=3 bits=4 block_size=16",
              "T[2,32]~small u8[3,2,8]! T[3,2]~unit! u8[3,1]! K=32 N=3 bits=4 block_size=16",
              "T[2,32]~small u8[3,2,8]! T[3,2]~unit! T[3,2]~positive! K=32 N=3 block_size=16",
              "T[1,40]~small u8[5,3,8]! T[5,3]~unit! u8[5,2]! - T[5]~small! K=40 N=5 bits=4 block_size=16",
              "T[2,3,64]~small u8[7,2,16]! T[7,2]~unit! u8[7,1]! K=64 N=7 bits=4 block_size=32",
              "T[3,40]~small u8[5,3,4]! T[5,3]~unit! u8[5,1]! K=40 N=5 bits=2 block_size=16",
              "T[3,32]~small u8[5,2,4]! T[5,2]~unit! K=32 N=5 bits=2 block_size=16",
              "T[3,40]~small u8[5,3,16]! T[5,3]~unit! u8[5,3]! K=40 N=5 bits=8 block_size=16",
              "T[3,32]~small u8[5,2,16]! T[5,2]~unit! - - T[5]~small! K=32 N=5 bits=8 block_size=16",
              "T[2,32]~small u8[3,2,8]! T[3,2]~unit! - i32[32]~index:2! K=32 N=3 bits=4 block_size=16",
              "T[2,40]~small u8[3,3,8]! T[3,3]~unit! u8[3,2]! i32[40]~index:3! T[3]! K=40 N=3 bits=4 block_size=16",
              "T[2,32]~small u8[3,2,8] T[6]~unit u8[3] K=32 N=3 bits=4 block_size=16 accuracy_level=4",
              "T[2,32]~small u8[3,2,0]! T[0] - - T[3] K=32 N=3 bits=4 block_size=16",
              "T[2,3,32]~small u8[0,2,8]! T[3,2]~unit! u8[3,1] K=32 N=3 bits=4 block_size=16",
              "T[0,32] u8[3,2,8]! T[3,2]~unit! K=32 N=3 bits=4 block_size=16",
              "T[16]~small u8[1,1,8]! T[1,1]~unit! K=16 N=1 bits=4 block_size=16",
              "T[1,256]~small u8[64,2,64]! T[64,2]~unit! u8[64,1]! K=256 N=64 bits=4 block_size=128"};
  return op;
}

}  // namespace

void add_packed_matmul_op(OpSet& ops) { ops.add(matmul_nbits()); }

}  // namespace unmoor
