#pragma once

#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

// Why a target's value for wanted[output] of a region is off, where the region is one node: with more of them nothing tells
// which. `exact` is the value in float64. Empty where nothing explains it, or the operator cannot be searched. Fails with
// Stopped.
std::optional<Cause> region_cause(const Region& region, size_t output, const Data& exact, const Data& found);

}  // namespace unmoor
