#include <algorithm>
#include <memory>
#include <optional>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/integers.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/ops/matrix.h"

namespace unmoor::cpu {

namespace {

// Where MatMulInteger and QLinearMatMul have things.
struct Places {
  size_t a, a_zero, b, b_zero;
  std::optional<size_t> a_scale, b_scale;  // QLinearMatMul's.
};
Places places_of(const OpCall& call) {
  if (call.node.op == "MatMulInteger") return {0, 2, 1, 3, std::nullopt, std::nullopt};
  return {0, 2, 3, 5, 1, 4};
}

// Matrices of the products; b has one for all, or one for each of a.
struct Sizes {
  size_t batch, m, n, k;
  bool shared_b;
};
Sizes sizes_of(const OpCall& call, const Places& at) {
  const auto dim = [](int64_t size) { return static_cast<size_t>(size); };
  const Shape& a = call.input(at.a).shape;
  const Shape& b = call.input(at.b).shape;
  Sizes s{dim(a.elements(0, a.rank() - 2)), dim(a[a.rank() - 2]), dim(b[b.rank() - 1]), dim(a[a.rank() - 1]), b.rank() == 2};
  if (s.shared_b) {
    s.m *= s.batch;
    s.batch = 1;
  }
  return s;
}

// One number, or one for each row of a single matrix a or column of b.
bool fits(const OpCall& call, size_t i, size_t count, bool whole) {
  if (!call.has(i)) return true;
  const Shape& shape = call.input(i).shape;
  return shape.elements() == 1 || (whole && shape.rank() == 1 && shape.elements() == static_cast<int64_t>(count));
}

Support supports_product(const OpCall& call) {
  const Places at = places_of(call);
  for (const size_t i : {at.a, at.a_zero, at.b, at.b_zero}) {
    if (Support types = input_is(call, i, {DType::U8, DType::I8}); !types) return types;
  }
  const Shape& a = call.input(at.a).shape;
  const Shape& b = call.input(at.b).shape;
  if (a.rank() < 2 || b.rank() < 2) return no(Reason::Rank, "a vector operand");
  if (call.output(0).shape.elements() == 0 || a.elements() == 0) return no(Reason::Size, "an empty product");
  bool same = b.rank() == 2 || a.rank() == b.rank();
  for (size_t i = 0; same && b.rank() > 2 && i + 2 < a.rank(); ++i) same = a[i] == b[i];
  if (!same) return no(Reason::Size, "batches of ", a, " and ", b);
  const Sizes s = sizes_of(call, at);
  const bool one_matrix = a.rank() == 2;
  bool sides = fits(call, at.a_zero, s.m, one_matrix) && fits(call, at.b_zero, s.n, true);
  if (at.a_scale) sides = sides && fits(call, *at.a_scale, s.m, one_matrix) && fits(call, *at.b_scale, s.n, true);
  if (!sides) return no(Reason::Size, "zero points or scales of their own shapes");
  if (!at.a_scale) return yes();
  if (s.k > most_exact_depth) return no(Reason::Size, "sums of ", s.k, " products");
  return all_of(input_is(call, 1, {DType::F32}), input_is(call, 4, {DType::F32}), input_is(call, 6, {DType::F32}),
                input_is(call, 7, {DType::U8, DType::I8}));
}

struct Product {
  Places at;
  Sizes sizes;
  size_t depth;
  Bytes a, b, a_zeros, b_zeros, y;    // Their dtypes, without the data.
  size_t a_zero_count, b_zero_count;  // 0: none.
  size_t a_scale_count, b_scale_count;
  std::shared_ptr<const std::vector<int16_t>> packed_b;  // Of a constant b: shared by the copies of the prepared function.
};

size_t count_at(const OpCall& call, std::optional<size_t> i) {
  return i && call.has(*i) ? static_cast<size_t>(call.input(*i).shape.elements()) : 0;
}

// Columns [begin, end) of matrices b [k,n] as rows of int16 without their zero points.
void pack_columns(const Product& p, Bytes b, Bytes zeros, size_t matrix, size_t begin, size_t end, int16_t* to) {
  const Sizes& s = p.sizes;
  for (size_t j = begin; j < end; ++j) {
    int16_t* const row = to + (matrix * s.n + j) * p.depth;
    const int16_t zero = p.b_zero_count == 0 ? int16_t{0} : zeros.at(p.b_zero_count == 1 ? 0 : j);
    for (size_t k = 0; k < s.k; ++k) row[k] = static_cast<int16_t>(b.at((matrix * s.k + k) * s.n + j) - zero);
    std::fill(row + s.k, row + p.depth, int16_t{0});
  }
}

void pack_row(const Product& p, const KernelArgs& args, size_t row, int16_t* to) {
  const int16_t zero = p.a_zero_count == 0 ? int16_t{0} : p.a_zeros.of(args, p.at.a_zero).at(p.a_zero_count == 1 ? 0 : row);
  p.a.of(args, p.at.a).centred(row * p.sizes.k, p.sizes.k, zero, to);
  std::fill(to + p.sizes.k, to + p.depth, int16_t{0});
}

// Rows of sums scaled to the output's scale and quantized.
void finish_row(const Product& p, const KernelArgs& args, const int32_t* sums, size_t row) {
  const size_t n = p.sizes.n;
  const float* const a_scale = input_as(args, 1);
  const float* const b_scale = input_as(args, 4);
  const double left = static_cast<double>(a_scale[p.a_scale_count == 1 ? 0 : row]);
  const double scale = static_cast<double>(*input_as(args, 6));
  const double zero = p.y.of(args, 7).at(0);
  for (size_t j = 0; j < n; ++j) {
    const double factor = left * static_cast<double>(b_scale[p.b_scale_count == 1 ? 0 : j]);
    p.y.put_row(args.outputs[0].host(), row * n + j, 1, sums + j, 1, {0, factor, scale, zero});
  }
}

void run_product(const Machine& machine, const Product& p, const KernelArgs& args) {
  const Sizes& s = p.sizes;
  auto* const workspace = reinterpret_cast<int16_t*>(args.workspace.host());
  const int16_t* const b = p.packed_b == nullptr ? workspace : p.packed_b->data();
  const size_t matrices = s.shared_b ? 1 : s.batch;
  if (p.packed_b == nullptr) {
    machine.pool().ranges(matrices * s.n, 8192 / (s.k + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t j = begin; j < end; ++j)
        pack_columns(p, p.b.of(args, p.at.b), p.b_zeros.of(args, p.at.b_zero), j / s.n, j % s.n, j % s.n + 1, workspace);
    });
  }
  constexpr size_t block = 8;  // Rows that are packed and multiplied at once.
  const size_t blocks = (s.m + block - 1) / block;
  machine.pool().each(s.batch * blocks, [&](size_t i) {
    const size_t matrix = i / blocks;
    const size_t first = i % blocks * block;
    const size_t rows = std::min(block, s.m - first);
    auto* const a = reinterpret_cast<int16_t*>(scratch(0, block * p.depth / 2));
    auto* const sums = reinterpret_cast<int32_t*>(scratch(1, block * s.n));
    for (size_t r = 0; r < rows; ++r) pack_row(p, args, matrix * s.m + first + r, a + r * p.depth);
    int32_t* const y = p.at.a_scale ? sums : output_as<int32_t>(args, 0) + (matrix * s.m + first) * s.n;
    integer_loops().multiply({a, b + (s.shared_b ? 0 : matrix) * s.n * p.depth, rows, s.n, p.depth, y, s.n});
    for (size_t r = 0; p.at.a_scale && r < rows; ++r) finish_row(p, args, sums + r * s.n, matrix * s.m + first + r);
  });
}

Prepared prepare_product(const OpCall& call, Device& device) {
  const Places at = places_of(call);
  const Sizes sizes = sizes_of(call, at);
  const auto bytes = [&](size_t i) { return Bytes(call.has(i) ? call.input(i).dtype : DType::U8); };
  Product product{at,
                  sizes,
                  padded_depth(sizes.k),
                  bytes(at.a),
                  bytes(at.b),
                  bytes(at.a_zero),
                  bytes(at.b_zero),
                  Bytes(call.output(0).dtype),
                  count_at(call, at.a_zero),
                  count_at(call, at.b_zero),
                  count_at(call, at.a_scale),
                  count_at(call, at.b_scale),
                  nullptr};
  const size_t packed = (sizes.shared_b ? 1 : sizes.batch) * sizes.n * product.depth;
  const Tensor* const b = call.constant(at.b);
  const Tensor* const zeros = call.constant(at.b_zero);
  std::vector<bool> unused(call.input_count(), false);
  if (b != nullptr && (product.b_zero_count == 0 || zeros != nullptr)) {
    std::vector<int16_t> all(packed);
    for (size_t i = 0; i < (sizes.shared_b ? 1 : sizes.batch); ++i) {
      pack_columns(product, product.b.of(*b), zeros == nullptr ? product.b_zeros : product.b_zeros.of(*zeros), i, 0, sizes.n,
                   all.data());
    }
    product.packed_b = std::make_shared<const std::vector<int16_t>>(std::move(all));
    unused[at.b] = true;
  }
  const size_t workspace = product.packed_b == nullptr ? packed * sizeof(int16_t) : 0;
  return {.run = [&machine = machine_of(device), product = std::move(product)](
                     Stream&, const KernelArgs& args) { run_product(machine, product, args); },
          .workspace_bytes = workspace,
          .unused_inputs = unused};
}

}  // namespace

void add_integer_product_kernels(KernelTable& table) {
  table.add("MatMulInteger", {.name = "cpu.matmulinteger.rows", .supports = supports_product, .prepare = prepare_product});
  table.add("QLinearMatMul", {.name = "cpu.qlinearmatmul.rows", .supports = supports_product, .prepare = prepare_product});
}

}  // namespace unmoor::cpu
