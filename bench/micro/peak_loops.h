#pragma once

#include <cstddef>

namespace unmoor::bench {

// The loops for one instruction set. What they return is of no use but that a compiler must compute it.
struct PeakLoops {
  float (*multiply_add)(size_t rounds, float factor, float addend);
  float (*read)(const float* from, size_t count);
  size_t lanes;
  const char* name;
};

}  // namespace unmoor::bench
