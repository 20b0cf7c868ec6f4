#include "unmoor/workbench/causes/sample.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include "unmoor/ops/compose.h"
#include "unmoor/workbench/causes/evaluate.h"

namespace unmoor::causes {
namespace {

constexpr size_t untouched = ~size_t{0};

// The output axis that is thinned out, and by input the axis that goes with it.
struct Plan {
  size_t axis = 0;
  std::vector<size_t> inputs;
};

const Shape& shape_of(const Data& data) { return data.tensor().shape(); }

bool is_elementwise(std::string_view op) {
  static const std::set<std::string_view> names{"Add",
                                                "Sub",
                                                "Mul",
                                                "Div",
                                                "Pow",
                                                "Mod",
                                                "Min",
                                                "Max",
                                                "Sum",
                                                "Mean",
                                                "Relu",
                                                "Gelu",
                                                "Erf",
                                                "Tanh",
                                                "Sigmoid",
                                                "Exp",
                                                "Log",
                                                "Sqrt",
                                                "Reciprocal",
                                                "Neg",
                                                "Abs",
                                                "Sin",
                                                "Cos",
                                                "Clip",
                                                "Elu",
                                                "Selu",
                                                "Celu",
                                                "LeakyRelu",
                                                "HardSigmoid",
                                                "HardSwish",
                                                "Swish",
                                                "Mish",
                                                "Softplus",
                                                "PRelu",
                                                "Round",
                                                "Floor",
                                                "Ceil",
                                                "Where",
                                                "Cast",
                                                "SwiGLU",
                                                "com.microsoft:Gelu",
                                                "com.microsoft:QuickGelu"};
  return names.contains(op);
}

// The axis of an input that broadcasts along the output's axis; untouched where it repeats.
size_t aligned(const Shape& input, const Shape& output, size_t axis) {
  if (input.rank() + axis < output.rank()) return untouched;
  const size_t own = input.rank() + axis - output.rank();
  return input[own] == 1 ? untouched : own;
}

std::vector<size_t> all_aligned(std::span<const Data> inputs, const Shape& output, size_t axis) {
  std::vector<size_t> axes;
  for (const Data& data : inputs) axes.push_back(data.is_tensor() ? aligned(shape_of(data), output, axis) : untouched);
  return axes;
}

// The longest of the first axes.
size_t longest(const Shape& shape, size_t count) {
  size_t best = 0;
  for (size_t axis = 1; axis < count; ++axis) {
    if (shape[axis] > shape[best]) best = axis;
  }
  return best;
}

std::vector<Plan> by_rows(const OpCall& call, std::span<const Data> inputs, const Shape& output) {
  int64_t axis = call.integer("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(output.rank());
  if (axis <= 0) return {};
  const size_t rows = longest(output, static_cast<size_t>(axis));
  return {{rows, all_aligned(inputs, output, rows)}};
}

// Rows of the first operand, and columns of the second.
std::vector<Plan> of_product(const OpCall& call, std::span<const Data> inputs, const Shape& output) {
  const size_t a = shape_of(inputs[0]).rank();
  const size_t b = shape_of(inputs[1]).rank();
  if (a < 2 || b < 2) return {};
  const size_t rows = output.rank() - 2;
  const size_t columns = output.rank() - 1;
  Plan by_row{rows, all_aligned(inputs, output, rows)};
  by_row.inputs[0] = call.integer("transA", 0) != 0 ? a - 1 : a - 2;
  by_row.inputs[1] = untouched;
  Plan by_column{columns, all_aligned(inputs, output, columns)};
  by_column.inputs[0] = untouched;
  by_column.inputs[1] = call.integer("transB", 0) != 0 ? b - 2 : b - 1;
  if (shape_of(inputs[1]).elements() > shape_of(inputs[0]).elements()) return {by_column, by_row};
  return {by_row, by_column};
}

// Output channels, then batch items.
std::vector<Plan> of_convolution(const OpCall& call, std::span<const Data> inputs) {
  std::vector<Plan> plans;
  if (call.integer("group", 1) == 1) plans.push_back({1, {untouched, 0, 0, 1}});
  plans.push_back({0, {0, untouched, untouched, 0}});
  for (Plan& plan : plans) plan.inputs.resize(inputs.size());
  return plans;
}

std::vector<Plan> plans_of(const OpCall& call, std::span<const Data> inputs) {
  const std::string_view op = call.node.op;
  const Shape& output = call.output(0).shape;
  if (output.rank() == 0 || inputs.empty() || !inputs[0].is_tensor()) return {};
  if (is_elementwise(op)) {
    const size_t axis = longest(output, output.rank());
    return {{axis, all_aligned(inputs, output, axis)}};
  }
  if (op == "Softmax" || op == "LogSoftmax" || op == "LayerNormalization" || op == "RMSNormalization")
    return by_rows(call, inputs, output);
  if (op == "MatMul" || op == "Gemm" || op == "unmoor:FusedMatMul") return of_product(call, inputs, output);
  if (call.text("layout", "NCHW") != "NCHW") return {};
  if (op == "Conv" || op == "unmoor:FusedConv") return of_convolution(call, inputs);
  if (op == "AveragePool" || op == "MaxPool" || op == "LpPool") return {{1, {1}}, {0, {0}}};
  return {};
}

double cost_in_flop(const OpCall& call) {
  double elements = static_cast<double>(call.output(0).shape.elements());
  for (size_t i = 0; i < call.input_count(); ++i)
    elements += call.has(i) ? static_cast<double>(call.input(i).shape.elements()) : 0;
  return std::max(cost_of(call).flop, 20 * elements);
}

// About `share` of `count` places, evenly spaced, and `worst`.
std::vector<int64_t> places(size_t count, double share, size_t worst) {
  const auto wanted = std::clamp<size_t>(static_cast<size_t>(static_cast<double>(count) * share), 1, count);
  std::set<int64_t> chosen{static_cast<int64_t>(worst)};
  for (size_t i = 0; i < wanted; ++i) chosen.insert(static_cast<int64_t>(i * count / wanted));
  return {chosen.begin(), chosen.end()};
}

// The sample thinned out once more along one axis.
Sample thinned(const OpCall& call, const Sample& from, const Plan& plan, double share, size_t worst) {
  const Shape& output = call.output(0).shape;
  const auto length = static_cast<size_t>(output[plan.axis]);
  const auto inner = static_cast<size_t>(output.elements(plan.axis + 1, output.rank()));
  const std::vector<int64_t> chosen = places(length, share, worst / inner % length);
  const Tensor index = Tensor::from<int64_t>(Shape{static_cast<int64_t>(chosen.size())}, chosen);
  Sample sample;
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    const size_t axis = i < plan.inputs.size() ? plan.inputs[i] : untouched;
    if (!from.inputs[i].is_tensor() || axis == untouched) {
      sample.inputs.push_back(from.inputs[i]);
    } else {
      sample.inputs.emplace_back(
          result_by(call, "Gather", {from.inputs[i].tensor(), index}, {{"axis", static_cast<int64_t>(axis)}}));
    }
  }
  const auto outer = static_cast<size_t>(output.elements(0, plan.axis));
  for (size_t i = 0; i < outer; ++i) {
    for (const int64_t place : chosen) {
      const size_t first = (i * length + static_cast<size_t>(place)) * inner;
      sample.elements.insert(sample.elements.end(), from.elements.begin() + static_cast<std::ptrdiff_t>(first),
                             from.elements.begin() + static_cast<std::ptrdiff_t>(first + inner));
    }
  }
  return sample;
}

}  // namespace

std::optional<Sample> sampled(const OpCall& call, std::span<const Data> inputs, double flop, size_t worst) {
  if (!call.output(0).is_known()) return std::nullopt;  // Only data tells the shape.
  if (cost_in_flop(call) <= flop) return std::nullopt;
  Sample sample{{inputs.begin(), inputs.end()}, std::vector<size_t>(static_cast<size_t>(call.output(0).shape.elements()))};
  std::iota(sample.elements.begin(), sample.elements.end(), size_t{0});
  bool any = false;
  for (const Plan& plan : plans_of(call, inputs)) {
    const OpCall now = call_on(call.node, sample.inputs);
    const double cost = cost_in_flop(now);
    if (cost <= flop || now.output(0).shape[plan.axis] < 2) continue;
    const auto here = std::ranges::find(sample.elements, worst);
    sample = thinned(now, sample, plan, flop / cost, static_cast<size_t>(here - sample.elements.begin()));
    any = true;
  }
  if (!any) return std::nullopt;
  return sample;
}

}  // namespace unmoor::causes
