#include "unmoor/ops/normalize.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/window.h"

namespace unmoor {

Moments moments_of(std::span<const double> values) {
  Moments result;
  const auto count = static_cast<double>(values.size());
  for (const double x : values) result.mean += x / count;
  for (const double x : values) result.variance += (x - result.mean) * (x - result.mean) / count;
  return result;
}

Op normalization(std::string name, std::string summary, std::vector<Port> inputs, double flop) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = std::move(inputs);
  op.outputs = {required("Y", float_types())};
  op.infer = like_first;
  op.cost = cost_per_output(flop);
  op.rounding = Rounding::Sum;
  op.category = Category::Normalization;
  return op;
}

double epsilon_of(const OpCall& call, float otherwise) { return call.real("epsilon", static_cast<double>(otherwise)); }

Centred centred(Formula& f, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  Centred result{};
  result.mean = f.reduce("ReduceMean", x, axes);
  result.difference = f.difference(x, result.mean);
  const ValueId variance = f.reduce("ReduceMean", f.square(result.difference), axes);
  result.inverse = f.add("Reciprocal", {f.add("Sqrt", {f.sum(variance, f.number(epsilon))})});
  return result;
}

ValueId per_channel(Formula& f, ValueId value, size_t rank, bool last) {
  if (last || rank <= 2) return value;
  std::vector<int64_t> shape(rank - 1, 1);
  shape[0] = -1;
  return f.reshaped(value, std::move(shape));
}

namespace {

// The axes of an attribute as a sorted list without repeats.
std::vector<size_t> axes_of(const OpCall& call, const Shape& shape, std::vector<int64_t> otherwise) {
  std::vector<size_t> axes;
  for (const int64_t axis : call.integers("axes", std::move(otherwise))) axes.push_back(axis_of(call, shape, axis));
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

constexpr double mean_variance_epsilon = 1e-9;  // Added to the deviation in ONNX's definition.

void mean_variance_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape& shape = in[0].tensor().shape();
  std::vector<double> x = doubles(in[0].tensor());
  Shape kept = shape;
  for (const size_t axis : axes_of(call, shape, {0, 2, 3})) kept.set(axis, 1);
  const std::vector<int64_t> strides = broadcast_strides(kept, shape);
  const auto groups = static_cast<size_t>(kept.elements());
  const double count = x.empty() ? 1 : static_cast<double>(x.size()) / static_cast<double>(groups);
  std::vector<double> mean(groups);
  std::vector<double> variance(groups);
  walk<1>(shape, {strides}, [&](size_t i, const auto& at) { mean[static_cast<size_t>(at[0])] += x[i] / count; });
  walk<1>(shape, {strides}, [&](size_t i, const auto& at) {
    const double away = x[i] - mean[static_cast<size_t>(at[0])];
    variance[static_cast<size_t>(at[0])] += away * away / count;
  });
  walk<1>(shape, {strides}, [&](size_t i, const auto& at) {
    const auto group = static_cast<size_t>(at[0]);
    x[i] = (x[i] - mean[group]) / (std::sqrt(variance[group]) + mean_variance_epsilon);
  });
  put(call, out, 0, std::span<const double>(x));
}

Op mean_variance() {
  Op op = normalization("MeanVarianceNormalization", "(x - mean) / deviation over axes.", {required("X", float_types())}, 6);
  op.attributes = {{"axes", std::vector<int64_t>{0, 2, 3}}};
  op.infer = [](const OpCall& call) {
    if (call.input(0).shape.has_rank()) axes_of(call, call.input(0).shape, {0, 2, 3});
    return like_first(call);
  };
  op.reference = mean_variance_reference;
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const std::vector<int64_t> axes = f.call().integers("axes", {0, 2, 3});
    const ValueId x = f.input(0);
    const ValueId away = f.difference(x, f.reduce("ReduceMean", x, axes));
    const ValueId variance = f.reduce("ReduceMean", f.square(away), axes);
    f.output(0, f.quotient(away, f.sum(f.add("Sqrt", {variance}), f.number(mean_variance_epsilon))));
  };
  op.cases = {"T[2,3,4,5]~small", "T[2,3,4]~small axes=[-1],[0,1]", "T[5,7]~small axes=[1]", "T[2,0,4,5]~small"};
  return op;
}

int64_t lp_order(const OpCall& call) {
  const int64_t p = call.integer("p", 2);
  if (p != 1 && p != 2) fail(ErrorKind::InvalidModel, title(call), ": p is ", p, ", not 1 or 2");
  return p;
}

void lp_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& input = in[0].tensor();
  const Split at = split_at(input.shape(), axis_of(call, input.shape(), call.integer("axis", -1)));
  const bool squares = lp_order(call) == 2;
  std::vector<double> x = doubles(input);
  for (size_t outer = 0; outer < at.outer && !x.empty(); ++outer) {
    for (size_t inner = 0; inner < at.inner; ++inner) {
      double* const first = &x[outer * at.length * at.inner + inner];
      double sum = 0;
      for (size_t i = 0; i < at.length; ++i) {
        const double value = first[i * at.inner];
        sum += squares ? value * value : std::fabs(value);
      }
      const double norm = squares ? std::sqrt(sum) : sum;
      for (size_t i = 0; i < at.length; ++i) first[i * at.inner] = norm == 0 ? 0 : first[i * at.inner] / norm;
    }
  }
  put(call, out, 0, std::span<const double>(x));
}

Op lp_normalization() {
  Op op = normalization("LpNormalization", "x divided by its p-norm along an axis; 0 where that is 0.",
                        {required("input", float_types())}, 3);
  op.attributes = {{"axis", int64_t{-1}}, {"p", int64_t{2}}};
  op.infer = [](const OpCall& call) {
    lp_order(call);
    if (call.input(0).shape.has_rank()) axis_of(call, call.input(0).shape, call.integer("axis", -1));
    return like_first(call);
  };
  op.reference = lp_reference;
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const ValueId x = f.input(0);
    const ValueId norm = f.reduce(lp_order(f.call()) == 1 ? "ReduceL1" : "ReduceL2", x, {f.call().integer("axis", -1)});
    f.output(0, f.quotient(x, f.add("Where", {f.add("Equal", {norm, f.number(0)}), f.number(1), norm})));
  };
  op.cases = {"T[2,3,4]~small axis=-1,0,1 p=1,2", "f32[2,2]{0,0,3,4} p=1,2", "T[257]~small", "T[0,4]", "T[3,0]"};
  return op;
}

}  // namespace

void add_other_norms(OpSet& ops) {
  ops.add(mean_variance());
  ops.add(lp_normalization());
}

void add_normalize_ops(OpSet& ops) {
  add_layer_norms(ops);
  add_channel_norms(ops);
  add_other_norms(ops);
}

}  // namespace unmoor
