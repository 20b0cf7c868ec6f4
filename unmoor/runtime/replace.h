#pragma once

#include <map>
#include <vector>

#include "unmoor/passes/in_float32.h"
#include "unmoor/runtime/place.h"

namespace unmoor {

// What nodes become that the device refuses, or leaves to its generic kernel, although it has kernels for the same in float32:
// still one node for whoever asks, in the precision that a kernel of its own would have.
std::map<NodeId, Replacement> to_widen(const Graph& graph, const std::vector<Placement>& placements, const Device& device,
                                       const PlanOptions& options);
// What they become where it has kernels for all that they are made of.
std::map<NodeId, Replacement> to_expand(const Graph& graph, const std::vector<Placement>& placements, const Device& device,
                                        const PlanOptions& options);

}  // namespace unmoor
