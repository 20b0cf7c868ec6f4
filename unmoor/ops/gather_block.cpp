#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/packed.h"
#include "unmoor/ops/qlinear.h"

namespace unmoor {
namespace {

const std::vector<DType> data_types{DType::U8,         DType::U4,     DType::I4,         DType::F8E4M3FN,
                                    DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F4E2M1};

// How quantised data lies: as numbers, of which a byte tensor packs several into one byte along the last axis.
struct Blocks {
  Shape data;
  size_t gather = 0, quantize = 0;
  int64_t block = 0;  // Elements along the quantised axis that share a scale.
  int64_t bits = 0;   // Of a number packed into bytes; 0 for the other dtypes.
};

// Inputs: data, indices, scales, zero_points. Empty if the shape of the data is not known.
std::optional<Blocks> blocks_of(const OpCall& call) {
  const TensorType& data = call.input(0);
  if (!data.shape.is_known()) return std::nullopt;
  if (data.shape.rank() == 0) fail(ErrorKind::InvalidModel, title(call), ": the data has no dimension");
  Blocks blocks{data.shape};
  blocks.gather = axis_of(call, data.shape, call.integer("gather_axis", 0));
  blocks.quantize = axis_of(call, data.shape, call.integer("quantize_axis", 1));
  blocks.block = call.integer("block_size", 128);
  const bool whole_axis = is_float(data.dtype) && blocks.block == 0;
  if (!whole_axis) require_block(call, blocks.block);
  if (whole_axis) blocks.block = std::max<int64_t>(data.shape[blocks.quantize], 1);
  if (data.dtype != DType::U8) return blocks;
  blocks.bits = call.integer("bits", 4);
  require_packed_bits(call, blocks.bits);
  if (blocks.bits == 8) return blocks;  // A byte each: any axes will do.
  const size_t last = data.shape.rank() - 1;
  if (blocks.gather != 0 || blocks.quantize != last || last == 0) {
    fail(ErrorKind::InvalidModel, title(call), ": data of bytes is gathered along axis ", blocks.gather, " and quantised along ",
         blocks.quantize, ", not along the first and the last");
  }
  blocks.data.set(last, data.shape[last] * (8 / blocks.bits));
  return blocks;
}

int64_t scales_along(const Blocks& blocks) { return ceil_div(blocks.data[blocks.quantize], blocks.block); }

void check_scales(const OpCall& call, const Blocks& blocks) {
  const Shape& scales = call.input(2).shape;
  const bool real = is_float(call.input(0).dtype);
  bool fits = !scales.has_rank() || scales.rank() == blocks.data.rank();
  for (size_t axis = 0; fits && axis < scales.rank(); ++axis) {
    const int64_t wanted = axis == blocks.quantize ? scales_along(blocks) : blocks.data[axis];
    const bool repeated = real && axis != blocks.quantize && scales[axis] == 1;
    fits = scales[axis] < 0 || scales[axis] == wanted || repeated;
  }
  if (!fits) {
    fail(ErrorKind::InvalidModel, title(call), ": scales ", scales, " do not fit data ", blocks.data, " in blocks of ",
         blocks.block, " along axis ", blocks.quantize);
  }
  if (!call.has(3)) return;
  if (real) fail(ErrorKind::InvalidModel, title(call), ": data of ", call.input(0).dtype, " has no zero points");
  if (call.input(3).dtype != call.input(0).dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": the data is ", call.input(0).dtype, " and its zero points ",
         call.input(3).dtype);
  }
  if (!scales.is_known() || !call.input(3).shape.is_known()) return;
  Shape wanted = scales;
  if (blocks.bits != 0) wanted.set(blocks.quantize, ceil_div(scales[blocks.quantize] * blocks.bits, 8));
  if (call.input(3).shape != wanted) {
    fail(ErrorKind::InvalidModel, title(call), ": zero points have shape ", call.input(3).shape, ", not ", wanted);
  }
}

std::vector<Type> infer_gather_block(const OpCall& call) {
  const DType dtype = call.input(2).dtype;
  const Shape& indices = call.input(1).shape;
  const auto blocks = blocks_of(call);
  if (blocks) check_scales(call, *blocks);
  if (!blocks || !indices.has_rank()) return {TensorType{dtype, Shape::of_unknown_rank()}};
  Shape shape;
  for (size_t axis = 0; axis < blocks->gather; ++axis) shape.push_back(blocks->data[axis]);
  for (size_t axis = 0; axis < indices.rank(); ++axis) shape.push_back(indices, axis);
  for (size_t axis = blocks->gather + 1; axis < blocks->data.rank(); ++axis) shape.push_back(blocks->data[axis]);
  return {TensorType{dtype, std::move(shape)}};
}

// Numbers of a tensor by position, read where they lie: a table of embeddings is large, and few of its rows are read.
class Numbers {
 public:
  Numbers(const Tensor& tensor, int64_t packed_bits)
      : dtype_(tensor.dtype()),
        bits_(packed_bits != 0 ? static_cast<size_t>(packed_bits) : bits_of(tensor.dtype())),
        bytes_(reinterpret_cast<const uint8_t*>(tensor.bytes().data()), tensor.bytes().size()) {}

  double at(size_t i) const {
    const uint8_t raw = packed_at(bytes_, bits_, i);
    if (dtype_ == DType::I4) return raw < 8 ? raw : raw - 16;
    if (dtype_ == DType::F4E2M1) return static_cast<double>(from_f4(raw));
    return is_float(dtype_) ? static_cast<double>(from_f8(dtype_, raw)) : raw;
  }

 private:
  DType dtype_;
  size_t bits_;
  std::span<const uint8_t> bytes_;
};

// The scale and zero point of each number.
class Parameters {
 public:
  Parameters(const Blocks& blocks, std::span<const Data> in) : blocks_(blocks), scales_(doubles(in[2].tensor())) {
    shape_ = in[2].tensor().shape();
    strides_ = broadcast_strides(shape_, blocks.data);
    strides_[blocks.quantize] = shape_.strides()[blocks.quantize];
    if (tensor_at(in, 3) == nullptr) return;
    zeros_.emplace(in[3].tensor(), blocks.bits);
    per_row_ = blocks.bits == 0 ? 0 : static_cast<size_t>(in[3].tensor().shape()[blocks.quantize] * (8 / blocks.bits));
  }

  double dequantized(double number, size_t position) const {
    size_t at = 0;
    for (size_t axis = blocks_.data.rank(); axis-- > 0;) {
      const auto dim = static_cast<size_t>(blocks_.data[axis]);
      const size_t index = axis == blocks_.quantize ? position % dim / static_cast<size_t>(blocks_.block) : position % dim;
      at += index * static_cast<size_t>(strides_[axis]);
      position /= dim;
    }
    return (number - zero(at)) * scales_[at];
  }

 private:
  double zero(size_t at) const {
    if (!zeros_) return blocks_.bits == 0 ? 0 : static_cast<double>(1U << (blocks_.bits - 1));
    if (per_row_ == 0) return zeros_->at(at);
    const auto columns = static_cast<size_t>(shape_[blocks_.quantize]);  // Each row of zero points begins with a byte.
    return zeros_->at(at / columns * per_row_ + at % columns);
  }

  const Blocks& blocks_;
  std::vector<double> scales_;
  Shape shape_;
  std::vector<int64_t> strides_;
  std::optional<Numbers> zeros_;
  size_t per_row_ = 0;  // Numbers that a row of packed zero points has room for.
};

void run_gather_block(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const OpCall known = with_data(call, in);
  const Blocks blocks = *blocks_of(known);
  check_scales(known, blocks);
  Tensor& result = allocate_inferred(call, in, out, infer_gather_block);
  const Numbers numbers(in[0].tensor(), blocks.bits);
  const Parameters parameters(blocks, in);
  const Split split = split_at(blocks.data, blocks.gather);
  const auto limit = static_cast<int64_t>(split.length);
  const std::vector<int64_t> indices = integers(in[1].tensor());
  std::vector<double> y(result.elements());
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t index = indices[i / split.inner % indices.size()];
    if (index < -limit || index >= limit) continue;  // Out of range: zero.
    const auto row = static_cast<size_t>(index < 0 ? index + limit : index);
    const size_t position = (i / (split.inner * indices.size()) * split.length + row) * split.inner + i % split.inner;
    y[i] = parameters.dequantized(numbers.at(position), position);
  }
  store(result, std::span<const double>(y));
}

// Gathers data, scales and zero points, then dequantizes.
class Expansion {
 public:
  Expansion(Formula& f, const Blocks& blocks) : f_(f), blocks_(blocks) {
    const Shape& indices = f.call().input(1).shape;
    if (!indices.is_known() || !f.call().input(2).shape.is_known()) {
      fail(ErrorKind::Unsupported, title(f.call()), " cannot be expanded: its shapes are not known");
    }
    const ValueId all = f.add("Cast", {f.raw(1)}, {{"to", onnx_number(DType::I64)}});
    const auto number = [&f](int64_t value) { return f.reshaped(f.ints({value}), {}); };
    const int64_t limit = blocks.data[blocks.gather];
    valid_ = f.add("And", {f.add("GreaterOrEqual", {all, number(-limit)}), f.add("Less", {all, number(limit)})});
    const ValueId safe = f.add("Where", {valid_, all, number(0)});
    rows_ = f.add("Where", {f.add("Less", {safe, number(0)}), f.sum(safe, number(limit)), safe});
    scale_rows_ = blocks.gather == blocks.quantize ? f.quotient(rows_, number(blocks.block)) : rows_;
  }

  ValueId data() {
    const ValueId x = gathered(f_.raw(0), rows_);
    if (blocks_.bits == 0) return x;
    return f_.add("Cast", {add_unpacked(f_, x, blocks_.bits, f_.call().output(0).shape.dims())},
                  {{"to", onnx_number(DType::U8)}});
  }
  ValueId scales() { return gathered(f_.add("Expand", {f_.raw(2), f_.ints(scale_shape().dims())}), scale_rows_); }
  ValueId zeros() {
    const Shape shape = scale_shape();
    if (!f_.has(3)) {
      const auto middle = static_cast<double>(int64_t{1} << (blocks_.bits - 1));
      const ValueId filled = f_.add("Cast", {f_.number(middle)}, {{"to", onnx_number(DType::U8)}});
      return gathered(f_.add("Expand", {filled, f_.ints(shape.dims())}), scale_rows_);
    }
    if (blocks_.bits == 0) return gathered(f_.raw(3), scale_rows_);
    std::vector<int64_t> room = f_.call().input(3).shape.dims();
    room.back() *= 8 / blocks_.bits;
    const ValueId all = f_.add("Cast", {add_unpacked(f_, f_.raw(3), blocks_.bits, room)}, {{"to", onnx_number(DType::U8)}});
    return gathered(f_.add("Slice", {all, f_.ints({0}), f_.ints({shape[blocks_.quantize]}),
                                     f_.ints({static_cast<int64_t>(blocks_.quantize)})}),
                    scale_rows_);
  }
  // Zero where the index was out of range.
  ValueId masked(ValueId y, ValueId zero) {
    std::vector<int64_t> shape = f_.call().input(1).shape.dims();
    shape.resize(shape.size() + blocks_.data.rank() - 1 - blocks_.gather, 1);
    return f_.add("Where", {f_.reshaped(valid_, std::move(shape)), y, zero});
  }

 private:
  Shape scale_shape() const {
    Shape shape = blocks_.data;
    shape.set(blocks_.quantize, scales_along(blocks_));
    return shape;
  }
  ValueId gathered(ValueId from, ValueId rows) {
    return f_.add("Gather", {from, rows}, {{"axis", static_cast<int64_t>(blocks_.gather)}});
  }

  Formula& f_;
  const Blocks& blocks_;
  ValueId valid_{}, rows_{}, scale_rows_{};
};

void expand_gather_block(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  const auto blocks = blocks_of(call);
  if (!blocks || blocks->data.elements() == 0) {
    fail(ErrorKind::Unsupported, title(call), " cannot be expanded: the shape of its data is not known, or it is empty");
  }
  const DType dtype = call.output(0).dtype;
  Formula f(builder, dtype == DType::F64 ? DType::F64 : DType::F32);
  Expansion expansion(f, *blocks);
  std::vector<ValueId> parts{expansion.data(), expansion.scales()};
  if (f.has(3) || blocks->bits != 0) parts.push_back(expansion.zeros());
  const bool same_axis = blocks->gather == blocks->quantize;
  const size_t indices = call.input(1).shape.rank();
  // Along one axis every number has a scale of its own: blocks of one.
  const size_t axis = same_axis ? 0 : blocks->quantize < blocks->gather ? blocks->quantize : blocks->quantize + indices - 1;
  if (indices + blocks->data.rank() == 1) fail(ErrorKind::Unsupported, title(call), " cannot be expanded for a single number");
  const ValueId y = f.add("DequantizeLinear", std::move(parts),
                          {{"axis", static_cast<int64_t>(axis)}, {"block_size", same_axis ? int64_t{1} : blocks->block}});
  builder.output(0, expansion.masked(y, builder.scalar(0, dtype)));
}

Op gather_block() {
  Op op;
  op.name = "com.microsoft:GatherBlockQuantized";
  op.summary = "Slices of quantised data along an axis, dequantized by blocks; zeros where an index is out of range.";
  op.inputs = {required("data", data_types), required("indices", index_types()), required("scales", float_types()),
               optional("zero_points", data_types)};
  op.outputs = {required("output", float_types())};
  op.attributes = {
      {"bits", int64_t{4}}, {"block_size", int64_t{128}}, {"gather_axis", int64_t{0}}, {"quantize_axis", int64_t{1}}};
  op.infer = infer_gather_block;
  op.reference = run_gather_block;
  op.expand = expand_gather_block;
  op.cost = cost_per_output(2);
  op.rounding = Rounding::Steps;
  op.category = Category::Quantization;
  op.cases = {"i4[5,32]! i64[3]{0,4,-1} T[5,2]~unit! i4[5,2]! block_size=16",
              "u4[5,40]! i32[2,2]~signed_index:5 T[5,3]~unit! block_size=16",
              "u8[5,16]! i64[4]{0,4,-5,9} T[5,2]~unit! u8[5,1]! block_size=16 bits=4",
              "u8[5,20]! i64[2,3]~index:5 T[5,3]~unit! u8[5,2]! block_size=16",
              "u8[5,32]! i64[]{3} T[5,2]~unit! block_size=16 bits=8 quantize_axis=-1",
              "u8[5,32]! i32[3]~index:5 T[5,2]~unit! u8[5,2]! block_size=16 bits=8",
              "u8[33,5]! i32[3]~signed_index:33 T[3,5]~unit! u8[3,5]! block_size=16 bits=8 quantize_axis=0",
              "u8[3,33,5]! i32[3]~index:3 T[3,3,5]~unit! u8[3,3,5]! block_size=16 bits=8 quantize_axis=1",
              "u8[5,10]! i32[3]~index:5 T[5,3]~unit! u8[5,1]! block_size=16 bits=2",
              "u8[3,2,16]! i64[2]~index:3 T[3,2,1]~unit! block_size=32 quantize_axis=2",
              "i4[33,5]! i64[3]~signed_index:5 T[3,5]~unit! i4[3,5]! gather_axis=1 quantize_axis=0 block_size=16",
              "i4[33,5]! i64[4]{0,15,16,-1} T[3,5]~unit! i4[3,5]! gather_axis=0 quantize_axis=0 block_size=16",
              "u4[3,4,32]! i64[2,1]~index:4 T[3,4,2]~unit! u4[3,4,2]! gather_axis=1 quantize_axis=2 block_size=16",
              "f8e4m3fn[5,32]! i64[3]{1,7,-2} T[5,2]~unit! block_size=16",
              "f8e5m2[5,33]! i64[3]~index:5 T[1,1]~unit! block_size=0",
              "f4e2m1[4,2,32]! i64[3]~index:4 T[4,1,2]~unit! block_size=16 quantize_axis=2",
              "u4[5,32]! i64[0] T[5,2]~unit! block_size=16"};
  return op;
}

}  // namespace

void add_packed_gather_op(OpSet& ops) { ops.add(gather_block()); }

}  // namespace unmoor
