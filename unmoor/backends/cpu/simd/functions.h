#pragma once

#include <cstddef>

namespace unmoor::cpu {

// Functions of one float, some with one or two parameters a and b.
enum class Function {
  Identity, Clamp, Sigmoid, Tanh, Exp, Log, Sqrt, Reciprocal, Neg, Abs, Floor, Ceil, Round, Erf, Sign,
  Gelu, GeluTanh, Swish, HardSwish, HardSigmoid, LeakyRelu, Elu, Celu, Selu, Softplus, Softsign, Mish, ThresholdedRelu,
};
constexpr size_t function_count = 28;

// y[i] = f(x[i]) for n floats; y may be x.
using UnaryLoop = void (*)(const float* x, float* y, size_t n, float a, float b);

// The loop for the best instruction set here.
UnaryLoop unary_loop(Function function);

}  // namespace unmoor::cpu
