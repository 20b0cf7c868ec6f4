#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/real.h"

namespace unmoor {

namespace {

// Works on each line along the axis: `rule` gets it as a contiguous span and replaces it.
template <class Rule>
void by_line(const OpCall& call, std::span<const Data> in, Outputs& out, Rule rule) {
  const Tensor& input = in[0].tensor();
  const Split at = split_at(input.shape(), axis_of(call, input.shape(), call.integer("axis", -1)));
  const RealInput x(input);
  RealOutput y(out.allocate(0, call.output(0)));
  constexpr double element_cost = 20;
  side_by_side_ranges(at.outer * at.inner, element_cost * static_cast<double>(at.length), [&](size_t begin, size_t end) {
    std::vector<double> line(at.length);
    for (size_t number = begin; number < end; ++number) {
      const size_t first = number / at.inner * at.length * at.inner + number % at.inner;
      for (size_t i = 0; i < at.length; ++i) line[i] = x.numbers()[first + i * at.inner];
      rule(std::span<double>(line));
      for (size_t i = 0; i < at.length; ++i) y.numbers()[first + i * at.inner] = line[i];
    }
  });
  y.store();
}

// Replaces x by x - max and returns log Σ e^(x - max).
double shifted(std::span<double> line) {
  const double top = *std::ranges::max_element(line);
  double sum = 0;
  for (double& x : line) {
    x -= top;
    sum += std::exp(x);
  }
  return std::log(sum);
}

void softmax_line(std::span<double> line) {
  shifted(line);
  double sum = 0;
  for (double& x : line) sum += x = std::exp(x);
  for (double& x : line) x /= sum;
}

void log_softmax_line(std::span<double> line) {
  const double log_sum = shifted(line);
  for (double& x : line) x -= log_sum;
}

// 1 at the first greatest, else 0. NaN is the greatest, as for ArgMax.
void hardmax_line(std::span<double> line) {
  size_t best = 0;
  for (size_t i = 1; i < line.size() && !std::isnan(line[best]); ++i) {
    if (line[i] > line[best] || std::isnan(line[i])) best = i;
  }
  std::ranges::fill(line, 0);
  line[best] = 1;
}

Op along_axis(std::string name, std::string summary, double flop, Rounding rounding, void (*rule)(std::span<double>)) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("input", float_types())};
  op.outputs = {required("output", float_types())};
  op.attributes = {{"axis", int64_t{-1}}};
  op.infer = [](const OpCall& call) {
    if (call.input(0).shape.has_rank()) axis_of(call, call.input(0).shape, call.integer("axis", -1));
    return like_first(call);
  };
  op.reference = [rule](const OpCall& call, std::span<const Data> in, Outputs& out) { by_line(call, in, out, rule); };
  op.cost = cost_per_output(flop);
  op.rounding = rounding;
  op.category = Category::Activation;
  op.cases = {"T[2,17,3] axis=-1,0,1",
              "T[5,257]",
              "T[2,3,4,5] axis=1",
              "T[1]",
              "T[2,1] axis=-1",
              "T[0,4]",
              "T[4,0]",
              "T[3,1000]~small",
              "f32[1,4]{1000,1000,999,-1000}",
              "f32[2,4]~mask",
              "f32[3,3]{-inf,-inf,-inf,0,-inf,0,inf,0,nan}",
              "T[1099511627776,3,0] axis=1"};
  return op;
}

void expand_softmax(GraphBuilder& builder, bool logarithm) {
  Formula f(builder);
  const std::vector<int64_t> axes{f.call().integer("axis", -1)};
  const ValueId x = f.input(0);
  const ValueId below = f.difference(x, f.reduce("ReduceMax", x, axes));
  const ValueId power = f.add("Exp", {below});
  const ValueId sum = f.reduce("ReduceSum", power, axes);
  f.output(0, logarithm ? f.difference(below, f.add("Log", {sum})) : f.quotient(power, sum));
}

}  // namespace

void add_softmax_ops(OpSet& ops) {
  Op softmax = along_axis("Softmax", "e^x divided by its sum along an axis.", 12, Rounding::Function, softmax_line);
  softmax.expand = [](GraphBuilder& builder) { expand_softmax(builder, false); };
  ops.add(std::move(softmax));
  Op logarithm = along_axis("LogSoftmax", "The logarithm of Softmax.", 12, Rounding::Function, log_softmax_line);
  logarithm.expand = [](GraphBuilder& builder) { expand_softmax(builder, true); };
  ops.add(std::move(logarithm));
  Op hardmax =
      along_axis("Hardmax", "1 at the first greatest element along an axis, else 0.", 1, Rounding::MoveBits, hardmax_line);
  hardmax.cases = {"T[2,17,3] axis=-1,0,1", "f32[2,3]{1,3,3,2,2,1}", "f32[2,4]{1,nan,3,nan,-inf,-inf,-inf,-inf}", "T[1]",
                   "T[0,4]",                "T[4,0]"};
  ops.add(std::move(hardmax));
}

}  // namespace unmoor
