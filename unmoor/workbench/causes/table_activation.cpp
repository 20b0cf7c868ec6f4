#include <cmath>
#include <numbers>

#include "unmoor/ops/compose.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

constexpr double quick_factor = 1.702;  // Hendrycks and Gimpel, "Gaussian Error Linear Units".

bool has_activation(const Situation& at, std::string_view wanted) { return at.call.text("activation", "") == wanted; }

bool is_plain_gelu(const Situation& at) {
  return (at.op() == "Gelu" && at.call.text("approximate", "none") == "none") || at.op() == "com.microsoft:Gelu";
}

Tensor with_bias(const Situation& at) {
  return at.has(1) ? result_by(at.call, "Add", {at.tensor(0), at.tensor(1)}) : at.tensor(0);
}

// Another operator of one input in the node's place.
Change instead(const Situation& at, std::string op, Attributes attributes, Tensor input, std::string detail = {}) {
  Change change = unchanged(at);
  change.node.op = std::move(op);
  change.node.attributes = std::move(attributes);
  change.node.inputs.resize(1);
  change.inputs = {Data(std::move(input))};
  change.detail = std::move(detail);
  return change;
}

// erf(x/√2) as the tanh form has it, for an Erf that stands alone.
double erf_by_tanh(double half) {
  const double x = half * std::numbers::sqrt2;
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}

double erf_by_sigmoid(double half) { return 2 / (1 + std::exp(-quick_factor * half * std::numbers::sqrt2)) - 1; }

Change erf_instead(const Situation& at, double (*function)(double)) {
  Change change = unchanged(at);
  const Tensor values = mapped(at.tensor(0), function);
  change.compute = [values] { return std::vector<Data>{values}; };
  return change;
}

std::vector<Change> by_tanh(const Situation& at) {
  if (at.op() == "Erf") return {erf_instead(at, erf_by_tanh)};
  if (is_plain_gelu(at)) return {instead(at, "Gelu", {{"approximate", std::string("tanh")}}, at.tensor(0))};
  if (at.op() == "com.microsoft:BiasGelu") return {instead(at, "Gelu", {{"approximate", std::string("tanh")}}, with_bias(at))};
  const std::string other = "the erf form where the model asks for the tanh form";
  if (at.op() == "Gelu") return {instead(at, "Gelu", {}, at.tensor(0), other)};
  if (at.op() == "com.microsoft:FastGelu") return {instead(at, "Gelu", {}, with_bias(at), other)};
  if (has_activation(at, "Gelu")) return {with_attribute(at, "activation", std::string("GeluTanh"))};
  if (has_activation(at, "GeluTanh")) return {with_attribute(at, "activation", std::string("Gelu"), other)};
  return {};
}

std::vector<Change> by_sigmoid(const Situation& at) {
  if (at.op() == "Erf") return {erf_instead(at, erf_by_sigmoid)};
  const Attributes quick{{"alpha", static_cast<float>(quick_factor)}};
  if (at.op() == "Gelu" || at.op() == "com.microsoft:Gelu") return {instead(at, "com.microsoft:QuickGelu", quick, at.tensor(0))};
  if (at.op() == "com.microsoft:BiasGelu" || at.op() == "com.microsoft:FastGelu") {
    return {instead(at, "com.microsoft:QuickGelu", quick, with_bias(at))};
  }
  if (!has_activation(at, "Gelu") && !has_activation(at, "GeluTanh")) return {};
  Change change = with_attribute(at, "activation", std::string("Swish"));
  change.node.attributes["activation_params"] = std::vector<float>{static_cast<float>(quick_factor)};
  return {change};
}

}  // namespace

void add_activation_causes(std::vector<Entry>& table) {
  const std::vector<std::string_view> ops{
      "Gelu", "com.microsoft:Gelu", "com.microsoft:BiasGelu", "com.microsoft:FastGelu", "unmoor:FusedMatMul", "unmoor:FusedConv",
      "Erf"};
  table.push_back({"gelu-tanh", "computes GELU by the other of its two forms: tanh where the model asks for erf",
                   "Re-export the model with the form that the target computes, or set the target's exact GELU.", 1, true, ops,
                   by_tanh});
  table.push_back({"gelu-quick", "computes GELU as x·sigmoid(1.702·x)",
                   "Turn off the target's quick GELU, or train and export the model with it.", 1, true, ops, by_sigmoid});
}

}  // namespace unmoor::causes
