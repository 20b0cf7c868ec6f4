#pragma once

#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

// The one node of a region as a call on what it was given. The region must outlive it.
struct RegionCall {
  const Node* node = nullptr;
  std::vector<Data> recorded;  // Its inputs, as given; constants as the graph has them.
  std::vector<Data> inputs;    // The same with floats in float64.
  OpCall call;                 // On `inputs`; only what the graph holds is a constant.
};
// Fails with InvalidArgument if the region is not one node, and as inference does.
RegionCall region_call(const Region& region);

}  // namespace unmoor
