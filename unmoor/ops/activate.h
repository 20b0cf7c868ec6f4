#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "unmoor/ops/formula.h"

namespace unmoor {

// Activations by the names that fused operators know: "" (none), Relu, Clip (min, max), Sigmoid, HardSigmoid (alpha, beta),
// HardSwish, Swish (alpha), Gelu, GeluTanh, LeakyRelu (alpha), Tanh; parameters that are not given have their operator's default.
// Fails with InvalidModel on another name or too many parameters.
std::function<double(double)> activation_named(std::string_view activation, std::span<const float> parameters);
// The same as operators.
ValueId add_activation(Formula& formula, ValueId x, std::string_view activation, std::span<const float> parameters);

double sigmoid(double x);
double softplus(double x);
double gelu(double x);       // x times the normal distribution function of x.
double gelu_tanh(double x);  // Its approximation: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
double swish(double x, double alpha);
double hard_sigmoid(double x, double alpha, double beta);
double hard_swish(double x);

}  // namespace unmoor
