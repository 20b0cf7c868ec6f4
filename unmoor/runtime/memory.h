#pragma once

#include "unmoor/runtime/plan.h"

namespace unmoor {

// Gives every value of known size a place in its device's arena, so that values whose lifetimes overlap do not. Left out: constants, graph
// inputs and outputs on the host device `host` (those live in the caller's tensors), values of run-time size.
// Kernels that may write in place do so where the input is not needed again.
MemoryPlan plan_memory(const Graph& graph, const std::vector<Placement>& placements, const std::vector<Step>& steps, size_t devices,
                       size_t host);

}  // namespace unmoor
