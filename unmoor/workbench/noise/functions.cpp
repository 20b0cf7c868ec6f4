#include "unmoor/workbench/noise/functions.h"

#include <cmath>
#include <map>

#include "unmoor/ops/formula.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// The bias of a convolution is added behind its sum. Channels are the last axis if the layout says so, else the second.
void expand_bias(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  Formula f(builder);
  const ValueId y = f.add(call.node.op, {builder.input(0), builder.input(1)}, call.node.attributes);
  std::vector<int64_t> shape{-1};
  if (call.text("layout", "NCHW") == "NCHW") shape.resize(call.input(0).shape.rank() - 1, 1);
  f.output(0, f.sum(y, f.reshaped(builder.input(2), std::move(shape))));
}

// The exponent, if it is one number for all.
std::optional<double> exponent_of(const OpCall& call) {
  if (call.input_count() < 2 || call.constant(1) == nullptr || call.constant(1)->elements() != 1) return std::nullopt;
  return doubles(*call.constant(1))[0];
}

NoiseForm power_form(const OpCall& call) {
  const auto exponent = exponent_of(call);
  if (!exponent || call.output(0) != call.input(0)) return {};
  if (*exponent == 2) return [](GraphBuilder& b) { b.output(0, b.add("Mul", {b.input(0), b.input(0)})); };
  if (*exponent == 3) {
    return [](GraphBuilder& b) { b.output(0, b.add("Mul", {b.add("Mul", {b.input(0), b.input(0)}), b.input(0)})); };
  }
  if (*exponent == 0.5) return [](GraphBuilder& b) { b.output(0, b.add("Sqrt", {b.input(0)})); };
  if (*exponent == -1) return [](GraphBuilder& b) { b.output(0, b.add("Reciprocal", {b.input(0)})); };
  return {};
}

}  // namespace

std::optional<FunctionAllowance> function_allowance(const Node& node) {
  static const std::map<std::string_view, FunctionAllowance> table{
      {"Exp", {}},
      {"Log", {}},
      {"Sin", {}},
      {"Cos", {}},
      {"Tan", {}},
      {"Asin", {}},
      {"Acos", {}},
      {"Atan", {}},
      {"Sinh", {}},
      {"Cosh", {}},
      {"Tanh", {}},
      {"Asinh", {}},
      {"Acosh", {}},
      {"Atanh", {}},
      {"Pow", {}},
      {"Erf", {1, 2, 1}},
      {"Sigmoid", {1, 2, 1}},
      {"Softplus", {1, 2, 1}},
  };
  if (const auto found = table.find(node.op); found != table.end()) return found->second;
  // e^x - 1 near 0 loses what 1 does not show, times its factor.
  const auto factor = [&node](std::string_view key, double otherwise) {
    const auto found = node.attributes.find(key);
    const auto* value = found == node.attributes.end() ? nullptr : std::get_if<float>(&found->second);
    return value == nullptr ? otherwise : std::fabs(static_cast<double>(*value));
  };
  if (node.op == "Elu" || node.op == "Celu") return FunctionAllowance{1, 2, factor("alpha", 1)};
  if (node.op == "Selu") return FunctionAllowance{1, 2, factor("alpha", 1.6733) * factor("gamma", 1.0507)};
  return std::nullopt;
}

NoiseForm noise_form(const OpCall& call) {
  const std::string& op = call.node.op;
  if ((op == "Conv" || op == "ConvTranspose") && call.has(2)) return expand_bias;
  if (op == "Pow") return power_form(call);
  if (op == "LSTM" || op == "GRU" || op == "RNN") return recurrent_form(call);
  return {};
}

}  // namespace unmoor
