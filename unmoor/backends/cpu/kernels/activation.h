#pragma once

#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/hal/support.h"

namespace unmoor::cpu {

// Whether the fused operator's `activation` and `activation_params`, names that may begin with a prefix, are ones the epilogue knows.
Support known_activation(const OpCall& call, std::string_view prefix = "");
// Puts them into an epilogue.
void set_activation(const OpCall& call, Epilogue& epilogue, std::string_view prefix = "");

}  // namespace unmoor::cpu
