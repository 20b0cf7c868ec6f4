#include "unmoor/ops/activate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "unmoor/base/error.h"

namespace unmoor {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double gelu(double x) { return x * 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }
double swish(double x, double alpha) { return x * sigmoid(alpha * x); }
// The tests are such that NaN stays.
double hard_sigmoid(double x, double alpha, double beta) {
  const double y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}
double hard_swish(double x) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); }

namespace {

struct Known {
  std::string_view name;
  std::array<float, 2> defaults;
  size_t parameters;
  double (*function)(double x, double a, double b);
};

constexpr float top = std::numeric_limits<float>::max();

const Known known[] = {
    {"", {}, 0, [](double x, double, double) { return x; }},
    {"Relu", {}, 0, [](double x, double, double) { return x < 0 ? 0 : x; }},
    {"Clip", {-top, top}, 2, [](double x, double low, double high) { return std::min(x < low ? low : x, high); }},
    {"Sigmoid", {}, 0, [](double x, double, double) { return sigmoid(x); }},
    {"HardSigmoid", {0.2F, 0.5F}, 2, hard_sigmoid},
    {"HardSwish", {}, 0, [](double x, double, double) { return hard_swish(x); }},
    {"Swish", {1}, 1, [](double x, double alpha, double) { return swish(x, alpha); }},
    {"Gelu", {}, 0, [](double x, double, double) { return gelu(x); }},
    {"GeluTanh", {}, 0, [](double x, double, double) { return gelu_tanh(x); }},
    {"LeakyRelu", {0.01F}, 1, [](double x, double alpha, double) { return x < 0 ? alpha * x : x; }},
    {"Tanh", {}, 0, [](double x, double, double) { return std::tanh(x); }},
};

const Known& find(std::string_view activation, size_t parameters) {
  for (const Known& entry : known) {
    if (entry.name != activation) continue;
    if (parameters > entry.parameters) {
      fail(ErrorKind::InvalidModel, "activation ", activation, " has ", parameters, " parameters, not at most ",
           entry.parameters);
    }
    return entry;
  }
  fail(ErrorKind::InvalidModel, "activation '", activation,
       "' is not one of Relu, Clip, Sigmoid, HardSigmoid, HardSwish, Swish, Gelu, "
       "GeluTanh, LeakyRelu, Tanh");
}

std::array<float, 2> filled(const Known& entry, std::span<const float> parameters) {
  std::array<float, 2> values = entry.defaults;
  std::ranges::copy(parameters, values.begin());
  return values;
}

}  // namespace

std::function<double(double)> activation_named(std::string_view activation, std::span<const float> parameters) {
  const Known& entry = find(activation, parameters.size());
  const std::array<float, 2> values = filled(entry, parameters);
  return [function = entry.function, a = static_cast<double>(values[0]), b = static_cast<double>(values[1])](double x) {
    return function(x, a, b);
  };
}

ValueId add_activation(Formula& formula, ValueId x, std::string_view activation, std::span<const float> parameters) {
  const std::array<float, 2> values = filled(find(activation, parameters.size()), parameters);
  if (activation.empty()) return x;
  if (activation == "Clip") {
    return formula.add("Clip",
                       {x, formula.number(static_cast<double>(values[0])), formula.number(static_cast<double>(values[1]))});
  }
  if (activation == "GeluTanh") return formula.add("Gelu", {x}, {{"approximate", std::string("tanh")}});
  Attributes attributes;
  if (activation == "HardSigmoid") attributes = {{"alpha", values[0]}, {"beta", values[1]}};
  if (activation == "Swish" || activation == "LeakyRelu") attributes = {{"alpha", values[0]}};
  return formula.add(std::string(activation), {x}, std::move(attributes));
}

}  // namespace unmoor
