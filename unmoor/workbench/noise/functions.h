#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "unmoor/ops/builder.h"

namespace unmoor {

// What an honest kernel of a function may be off by, in units of the roundoff u.
struct FunctionAllowance {
  double argument = 1;  // Relative to the argument: it is often made by a division or a product.
  double result = 2;    // Relative to the result.
  double absolute = 0;  // Of functions that saturate: kernels clamp, and 1 - tiny is not told from 1.
};
// For an operator that is one function of its elements; nothing for others.
std::optional<FunctionAllowance> function_allowance(const Node& node);

// The operator as a graph of steps where its own expansion is missing or is not the least accurate legitimate form: convolutions
// with the bias apart, small powers as products, recurrent layers step by step. Empty if there is none for this call.
using NoiseForm = std::function<void(GraphBuilder&)>;
NoiseForm noise_form(const OpCall& call);
NoiseForm recurrent_form(const OpCall& call);

}  // namespace unmoor
