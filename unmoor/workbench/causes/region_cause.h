#pragma once

#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

struct RegionCause {
  std::optional<Cause> cause = std::nullopt;
  std::string note = {};  // Why there is no cause, or what was not tried; empty if there is nothing to add.
  bool searched = false;  // False if it could be told at once that there is nothing to search.
};

// Why a target's value for wanted[output] of a region is off, where the region is one node: with more of them nothing tells
// which. The target is judged against what the node gives in float64 on the region's inputs, whatever a reference gave: `floor`
// has both that and its spread, where the caller made it for a result of 32 bits; null makes them anew. Fails with Stopped.
RegionCause region_cause(const Region& region, size_t output, const NoiseFloor* floor, const Data& found);

}  // namespace unmoor
