#include <algorithm>

#include "unmoor/backends/gpu/gemm.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

// Every axis of a product: those of the batch, the rows, the columns, with each operand's steps.
struct Axes {
  std::vector<int64_t> dims;  // Batch axes, then m, n.
  int64_t depth = 0;
  std::vector<int64_t> a;  // Steps along dims; those of n are 0 for a, those of m 0 for b.
  std::vector<int64_t> b;
  int64_t a_depth = 0;
  int64_t b_depth = 0;
  std::vector<int64_t> bias;
  std::vector<int64_t> residual;
};

std::vector<int64_t> steps_of_addend(const OpCall& call, size_t input, bool has_m, bool has_n) {
  auto steps = broadcast_strides(call.input(input).shape, call.output(0).shape);
  if (!has_n) steps.push_back(0);
  if (!has_m) steps.insert(steps.end() - 1, 0);
  return steps;
}

// A vector on the left is a row, on the right a column, as in NumPy; then the output lacks that axis.
Axes axes_of(const OpCall& call, bool swap_a, bool swap_b) {
  Axes axes;
  auto a = call.input(0).shape.dims();
  auto b = call.input(1).shape.dims();
  const bool has_m = a.size() > 1;
  const bool has_n = b.size() > 1;
  if (!has_m) a.insert(a.begin(), 1);
  if (!has_n) b.push_back(1);
  const auto a_dense = Shape(a).strides();
  const auto b_dense = Shape(b).strides();
  const size_t ra = a.size();
  const size_t rb = b.size();
  const size_t a_row = swap_a && has_m ? ra - 1 : ra - 2;
  const size_t b_col = swap_b && has_n ? rb - 2 : rb - 1;
  const size_t a_depth = 2 * ra - 3 - a_row;
  const size_t b_depth = 2 * rb - 3 - b_col;
  const Shape batch = broadcast(Shape(std::vector<int64_t>(a.begin(), a.end() - 2)), Shape(std::vector<int64_t>(b.begin(), b.end() - 2)));
  axes.dims = batch.dims();
  axes.dims.insert(axes.dims.end(), {a[a_row], b[b_col]});
  axes.depth = a[a_depth];
  axes.a_depth = a_dense[a_depth];
  axes.b_depth = b_dense[b_depth];
  for (size_t i = 0; i < batch.rank(); ++i) {
    const auto step = [&](const std::vector<int64_t>& dims, const std::vector<int64_t>& dense) -> int64_t {
      if (i + dims.size() < batch.rank() + 2) return 0;
      const size_t axis = i + dims.size() - batch.rank() - 2;
      return dims[axis] == 1 ? 0 : dense[axis];
    };
    axes.a.push_back(step(a, a_dense));
    axes.b.push_back(step(b, b_dense));
  }
  axes.a.insert(axes.a.end(), {a_dense[a_row], 0});
  axes.b.insert(axes.b.end(), {0, b_dense[b_col]});
  axes.bias = call.has(2) ? steps_of_addend(call, 2, has_m, has_n) : std::vector<int64_t>(axes.dims.size(), 0);
  axes.residual = call.has(3) ? steps_of_addend(call, 3, has_m, has_n) : std::vector<int64_t>(axes.dims.size(), 0);
  return axes;
}

// The axes but the columns, as few as can be: a batch that only the left side has becomes rows.
Walk outer_walk(const Axes& axes) {
  const auto without_last = [](const std::vector<int64_t>& steps) { return std::vector<int64_t>(steps.begin(), steps.end() - 1); };
  const Shape outer(without_last(axes.dims));
  Walk walk{outer.dims(), {without_last(axes.a), without_last(axes.b), without_last(axes.bias), without_last(axes.residual)}};
  // The rows stay apart from the batch if b steps with the batch: keep them by joining only what all operands join.
  auto joined = collapsed(walk);
  const bool rows_joined = !joined.dims.empty() && joined.strides[1].back() == 0;
  if (rows_joined) return joined;
  const int64_t rows = walk.dims.back();
  Walk batch = walk;
  batch.dims.pop_back();
  for (auto& steps : batch.strides) steps.pop_back();
  batch = collapsed(batch);
  batch.dims.push_back(rows);
  for (size_t i = 0; i < walk.strides.size(); ++i) batch.strides[i].push_back(walk.strides[i].back());
  return batch;
}

Product product_of(const OpCall& call, const Axes& axes) {
  const auto walk = padded(outer_walk(axes), 4);
  Product product;
  product.m = walk.dims[3];
  product.n = axes.dims.back();
  product.depth = axes.depth;
  std::copy_n(walk.dims.begin(), 3, product.batch.begin());
  const auto steps = [&](size_t operand, int64_t row, int64_t col) {
    const auto& of = walk.strides[operand];
    return MatrixSteps{.batch = {of[0], of[1], of[2]}, .row = row, .col = col};
  };
  product.a = steps(0, walk.strides[0][3], axes.a_depth);
  product.b = steps(1, axes.b_depth, axes.b.back());
  product.bias = steps(2, walk.strides[2][3], axes.bias.back());
  product.residual = steps(3, walk.strides[3][3], axes.residual.back());
  if (call.has(2)) product.bias_input = 2;
  if (call.has(3)) product.residual_input = 3;
  return product;
}

Support product_fits(const OpCall& call, const Axes& axes) {
  const auto walk = outer_walk(axes);
  if (walk.rank() > 4) return no(Reason::Rank, "the batch has ", walk.rank() - 1, " axes that do not join, more than 3");
  const auto product = product_of(call, axes);
  return gemm_fits(product.m, product.n, product.batch[0] * product.batch[1] * product.batch[2]);
}

Support real_inputs(const OpCall& call, const Abilities& abilities) {
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (auto answer = is_real(call, i, abilities); !answer) return answer;
    if (call.has(i) && call.input(i).dtype != call.input(0).dtype) return no(Reason::DType, "inputs of several dtypes");
  }
  return yes();
}

void add_matmul(Kernels& kernels, const std::string& op, const std::string& kernel) {
  const auto abilities = kernels.abilities();
  const auto axes = [](const OpCall& call) { return axes_of(call, call.integer("transA", 0) != 0, call.integer("transB", 0) != 0); };
  const auto supports = [abilities, axes](const OpCall& call) {
    if (auto answer = real_inputs(call, abilities); !answer) return answer;
    if (auto answer = is_known_activation(call); !answer) return answer;
    if (call.input(0).shape.rank() == 0 || call.input(1).shape.rank() == 0) return no(Reason::Rank, "an input is a scalar");
    return product_fits(call, axes(call));
  };
  const auto prepare = [axes](const OpCall& call, GpuDevice& device) {
    auto product = product_of(call, axes(call));
    product.alpha = call.real("alpha", 1);
    product.activation = *activation_of(call);
    return run_in_order(call, device, {gemm(product, call)});
  };
  kernels.add(op, kernel, supports, prepare);
}

void add_gemm(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  const auto axes = [](const OpCall& call) { return axes_of(call, call.integer("transA", 0) != 0, call.integer("transB", 0) != 0); };
  const auto supports = [abilities, axes](const OpCall& call) {
    if (auto answer = real_inputs(call, abilities); !answer) return answer;
    return product_fits(call, axes(call));
  };
  const auto prepare = [axes](const OpCall& call, GpuDevice& device) {
    auto product = product_of(call, axes(call));
    product.alpha = call.real("alpha", 1);
    product.beta = call.real("beta", 1);
    return run_in_order(call, device, {gemm(product, call)});
  };
  kernels.add("Gemm", "gemm", supports, prepare);
}

}  // namespace

void add_matmul_kernels(Kernels& kernels) {
  add_matmul(kernels, "MatMul", "gemm");
  add_matmul(kernels, "unmoor:FusedMatMul", "gemm_fused");
  add_gemm(kernels);
}

}  // namespace unmoor::gpu
