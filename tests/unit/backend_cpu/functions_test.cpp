#include "unmoor/backends/cpu/simd/functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "tests/unit/backend_cpu/support.h"
#include "unmoor/ops/activate.h"

namespace unmoor::test {
namespace {

using cpu::Function;

// A function, what it should give, and how far it may be off: units of the result, units of the argument's size (where the formula cancels), and
// a floor below which results may become zero.
struct Checked {
  Function function;
  const char* label;
  double (*exact)(double x);
  double units;
  double of_argument = 0;
  double floor = 0;
  float a = 0;
  float b = 0;
};

constexpr double smallest_normal = 1.18e-38;

// Without the cancellation of 1 + tanh.
double gelu_by_tanh(double x) { return x * sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }

const Checked checked[] = {
    {Function::Exp, "exp", [](double x) { return std::exp(x); }, 2},
    {Function::Log, "log", [](double x) { return std::log(x); }, 4},
    {Function::Tanh, "tanh", [](double x) { return std::tanh(x); }, 4},
    {Function::Sigmoid, "sigmoid", sigmoid, 4, 0, smallest_normal},
    {Function::Erf, "erf", [](double x) { return std::erf(x); }, 5},
    {Function::Gelu, "gelu", gelu, 4, 3},
    {Function::GeluTanh, "gelu_tanh", gelu_by_tanh, 40, 0, 1e-12},  // The rounding of u, up to 14 here, moves its exponential.
    {Function::Swish, "swish", [](double x) { return swish(x, 1); }, 6, 0, 1e-36, 1},
    {Function::Softplus, "softplus", softplus, 4},
    {Function::Softsign, "softsign", [](double x) { return x / (1 + std::fabs(x)); }, 2},
    {Function::Mish, "mish", [](double x) { return x * std::tanh(softplus(x)); }, 8, 0, 1e-42},
    {Function::HardSwish, "hard_swish", hard_swish, 4, 1},
    {Function::Elu, "elu", [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; }, 4, 0, 0, 0.5F},
    {Function::Celu, "celu", [](double x) { return x < 0 ? -2 * std::expm1(x / -2) : x; }, 6, 0, 0, -2.0F},
    {Function::Sqrt, "sqrt", [](double x) { return std::sqrt(x); }, 1},
    {Function::Reciprocal, "reciprocal", [](double x) { return 1 / x; }, 1},
    {Function::Floor, "floor", [](double x) { return std::floor(x); }, 0},
    {Function::Ceil, "ceil", [](double x) { return std::ceil(x); }, 0},
    {Function::Round, "round", [](double x) { return std::nearbyint(x); }, 0},
};

// Floats of every size, sign and class: each 4099th bit pattern, and the limits.
std::vector<float> arguments() {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099 * 16) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float x = -110; x < 110; x += 0.0137F) values.push_back(x);
  for (const uint32_t bits : {0x80000000U, 0x00000001U, 0x80000001U, 0x007fffffU, 0x00800000U, 0x7f7fffffU, 0xff7fffffU, 0x7f800000U, 0xff800000U,
                              0x7fc00000U, 0x42b17218U, 0x42b17217U, 0xc2aeac50U, 0xc2cff1b5U}) {
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

// The error in units in the last place of `exact`.
double units_off(float found, double exact) {
  const double size = std::max(std::fabs(exact), 0x1p-126);
  return std::fabs(static_cast<double>(found) - exact) / std::ldexp(1.0, std::ilogb(size) - 23);
}

bool same_class(float found, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(found);
  if (std::isinf(found) != std::isinf(nearest)) return false;
  return !std::isinf(found) || std::signbit(found) == std::signbit(exact);
}

void check(const Checked& one, const std::vector<float>& x, const std::string& target) {
  std::vector<float> y(x.size());
  cpu::unary_loop(one.function)(x.data(), y.data(), x.size(), one.a, one.b);
  double worst = 0;
  float worst_at = 0;
  size_t classes = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = one.exact(static_cast<double>(x[i]));
    if (!same_class(y[i], exact) && !(std::fabs(exact) > 3.4e38)) {  // At the edge to infinity either is right.
      if (++classes <= 3) ADD_FAILURE() << one.label << "(" << x[i] << ") is " << y[i] << ", not " << exact << ", " << target;
      continue;
    }
    if (!std::isfinite(exact) || !std::isfinite(y[i])) continue;
    const double slack = one.floor + one.of_argument * std::fabs(static_cast<double>(x[i])) * 0x1p-24;
    if (std::fabs(static_cast<double>(y[i]) - exact) <= slack) continue;
    const double off = units_off(y[i], exact);
    if (off > worst) {
      worst = off;
      worst_at = x[i];
    }
  }
  EXPECT_LE(worst, one.units) << one.label << " at " << worst_at << ", " << target;
}

TEST(CpuFunctions, are_right_to_a_few_units_for_floats_of_every_size) {
  const std::vector<float> x = arguments();
  for_each_target([&](const std::string& target) {
    for (const Checked& one : checked) check(one, x, target);
  });
}

TEST(CpuFunctions, keep_the_sign_of_zero) {
  for_each_target([](const std::string& target) {
    for (const Function function : {Function::Tanh, Function::Erf, Function::Floor, Function::Ceil, Function::Round, Function::Sqrt, Function::Abs,
                                    Function::Neg, Function::Softsign, Function::Gelu, Function::Swish, Function::HardSwish}) {
      for (const size_t n : std::initializer_list<size_t>{1, 64}) {
        std::vector<float> x(n, -0.0F);
        cpu::unary_loop(function)(x.data(), x.data(), n, 1, 0);
        const bool negative = function != Function::Abs && function != Function::Neg;
        for (const float y : x) EXPECT_TRUE(y == 0 && std::signbit(y) == negative) << static_cast<int>(function) << ": " << y << ", " << target;
      }
    }
  });
}

}  // namespace
}  // namespace unmoor::test
