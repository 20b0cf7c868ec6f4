#pragma once

#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/hal/support.h"

namespace unmoor::cpu {

// Whether the fused operator's `activation` and `activation_params` are ones the epilogue knows.
Support known_activation(const OpCall& call);
// Puts them into an epilogue.
void set_activation(const OpCall& call, Epilogue& epilogue);

}  // namespace unmoor::cpu
