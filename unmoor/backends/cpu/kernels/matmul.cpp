#include <algorithm>
#include <optional>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/product.h"

namespace unmoor::cpu {

namespace {

// A call of MatMul, Gemm or unmoor:FusedMatMul, read.
struct Read {
  Products products;
  Bias bias = Bias::None;
  size_t bias_input = 2;
  std::optional<size_t> residual_input;
  Support support;
};

// Offsets of each of the batch's matrices in an operand whose batch dimensions broadcast to `batch`.
std::vector<size_t> batch_offsets(const Shape& shape, size_t matrix_dims, const std::vector<int64_t>& batch) {
  size_t count = 1;
  for (const int64_t dim : batch) count *= static_cast<size_t>(dim);
  const size_t own = shape.rank() - matrix_dims;
  std::vector<size_t> steps(batch.size(), 0);
  size_t step = static_cast<size_t>(shape.elements(own, shape.rank()));
  for (size_t i = own; i-- > 0;) {
    const auto dim = static_cast<size_t>(shape[i]);
    steps[batch.size() - own + i] = dim == 1 ? 0 : step;
    step *= dim;
  }
  std::vector<size_t> offsets(count, 0);
  for (size_t index = 0; index < count; ++index) {
    size_t rest = index;
    for (size_t axis = batch.size(); axis-- > 0;) {
      const auto dim = static_cast<size_t>(batch[axis]);
      offsets[index] += rest % dim * steps[axis];
      rest /= dim;
    }
  }
  return offsets;
}

bool all_zero(const std::vector<size_t>& offsets) {
  return std::ranges::all_of(offsets, [](size_t offset) { return offset == 0; });
}

// How the bias meets the products: its last two dimensions are each the product's or 1.
Support read_bias(const OpCall& call, Read& read, const std::vector<int64_t>& batch) {
  if (!call.has(read.bias_input)) {
    return yes();
  }
  const Shape& shape = call.input(read.bias_input).shape;
  const size_t rank = shape.rank();
  const auto rows = rank < 2 ? size_t{1} : static_cast<size_t>(shape[rank - 2]);
  const auto columns = rank < 1 ? size_t{1} : static_cast<size_t>(shape[rank - 1]);
  const Products& p = read.products;
  if (columns == p.n && rows == 1) {
    read.bias = Bias::Column;
  } else if (rows == p.m && columns == 1) {
    read.bias = Bias::Row;
  } else if (rows == p.m && columns == p.n) {
    read.bias = Bias::Full;
  } else {
    return no(Reason::Size, "a bias of ", shape, " for products of ", p.m, " x ", p.n);
  }
  const size_t matrix_dims = std::min<size_t>(rank, 2);
  if (rank - matrix_dims > batch.size()) {
    return no(Reason::Rank, "a bias of more dimensions than the result");
  }
  read.products.bias_offsets = batch_offsets(shape, matrix_dims, batch);
  return yes();
}

// Products that share B and follow each other in A and C are one product of more rows.
void merge_batch(Read& read, size_t batch) {
  Products& p = read.products;
  const bool bias_fits = read.bias == Bias::None || (read.bias == Bias::Column && all_zero(p.bias_offsets)) ||
                         (read.bias == Bias::Full && batch > 0 && p.bias_offsets.back() == (batch - 1) * p.m * p.n);
  if (batch <= 1 || p.transposed_a || !all_zero(p.b_offsets) || p.a_offsets.back() != (batch - 1) * p.m * p.k || !bias_fits) {
    return;
  }
  p.m *= batch;
  p.a_offsets = {0};
  p.b_offsets = {0};
  p.bias_offsets = {};
}

Read read_matmul(const OpCall& call) {
  Read read;
  const bool gemm = call.node.op == "Gemm";
  Products& p = read.products;
  const Shape& a = call.input(0).shape;
  const Shape& b = call.input(1).shape;
  p.transposed_a = a.rank() > 1 && call.integer("transA", 0) != 0;
  p.transposed_b = b.rank() > 1 && call.integer("transB", 0) != 0;
  p.epilogue.alpha = static_cast<float>(call.real("alpha", 1));
  p.epilogue.beta = gemm && call.has(2) ? static_cast<float>(call.real("beta", 1)) : 1.0F;
  if (a.rank() == 0 || b.rank() == 0) {
    read.support = no(Reason::Rank, "a scalar operand");
    return read;
  }
  const auto a_rows = a.rank() == 1 ? size_t{1} : static_cast<size_t>(a[a.rank() - 2]);
  const auto a_columns = static_cast<size_t>(a[a.rank() - 1]);
  const auto b_rows = static_cast<size_t>(b[b.rank() == 1 ? 0 : b.rank() - 2]);
  const auto b_columns = b.rank() == 1 ? size_t{1} : static_cast<size_t>(b[b.rank() - 1]);
  p.m = p.transposed_a ? a_columns : a_rows;
  p.k = p.transposed_a ? a_rows : a_columns;
  p.n = p.transposed_b ? b_rows : b_columns;
  const Shape& c = call.output(0).shape;
  const size_t matrix_dims = (a.rank() > 1 ? 1U : 0U) + (b.rank() > 1 ? 1U : 0U);
  const std::vector<int64_t> batch(c.dims().begin(), c.dims().end() - static_cast<std::ptrdiff_t>(std::min(matrix_dims, c.rank())));
  p.a_offsets = batch_offsets(a, std::min<size_t>(a.rank(), 2), batch);
  p.b_offsets = batch_offsets(b, std::min<size_t>(b.rank(), 2), batch);
  read.support = read_bias(call, read, batch);
  if (read.support && call.has(3)) {
    read.residual_input = 3;
    if (!(call.input(3).shape == c)) {
      read.support = no(Reason::Size, "a residual of ", call.input(3).shape, " for a result of ", c);
    }
  }
  if (read.support && read.bias != Bias::None && matrix_dims != 2) {
    read.support = no(Reason::Rank, "a bias with a vector operand");
  }
  if (read.support) merge_batch(read, p.batch());
  return read;
}

Support supports_matmul(const OpCall& call) {
  const Support types = all_of(inputs_are(call, {DType::F32}), known_activation(call));
  return types ? read_matmul(call).support : types;
}

// One product of rows as they lie and constant weights.
Support supports_f32x6(const OpCall& call) {
  if (Support takes = all_of(supports_matmul(call), is_constant(call, 1)); !takes) return takes;
  const Products p = read_matmul(call).products;
  if (p.batch() != 1) return no(Reason::Rank, p.batch(), " products, not one");
  return p.transposed_a ? no(Reason::Attribute, "transA") : takes_f32x6(p.m, p.n, p.k, *call.constant(1));
}

template <Precision precision>
Prepared prepare_matmul(const OpCall& call, Device& device) {
  Read read = read_matmul(call);
  set_activation(call, read.products.epilogue);
  const Tensor* const b = call.constant(1);
  // Shared by the copies of the function below.
  const auto products = std::make_shared<const PreparedProducts>(machine_of(device), std::move(read.products), b, read.bias, 0, precision);
  std::vector<bool> unused(call.input_count(), false);
  unused[1] = b != nullptr;
  return {.run =
              [products, bias = read.bias == Bias::None ? std::nullopt : std::optional(read.bias_input),
               residual = read.residual_input](Stream&, const KernelArgs& args) {
                const auto input = [&](std::optional<size_t> i) -> const float* {
                  return i ? reinterpret_cast<const float*>(args.inputs[*i].host()) : nullptr;
                };
                products->run({input(0), input(1), input(bias), input(residual), reinterpret_cast<float*>(args.outputs[0].host()),
                               reinterpret_cast<float*>(args.workspace.host())});
              },
          .workspace_bytes = products->workspace_bytes(),
          .unused_inputs = unused};
}

}  // namespace

void add_f32x6_matmul_kernels(KernelTable& table) {
  for (const char* op : {"MatMul", "unmoor:FusedMatMul"}) {
    table.add(op, {.name = "cpu.matmul.f32x6", .supports = supports_f32x6, .prepare = prepare_matmul<Precision::SixParts>});
  }
  table.add("Gemm", {.name = "cpu.gemm.f32x6", .supports = supports_f32x6, .prepare = prepare_matmul<Precision::SixParts>});
}

void add_matmul_kernels(KernelTable& table) {
  for (const char* op : {"MatMul", "Gemm", "unmoor:FusedMatMul"}) {
    table.add(op, {.name = "cpu.matmul.packed", .supports = supports_matmul, .prepare = prepare_matmul<Precision::Float32>});
  }
}

}  // namespace unmoor::cpu
