#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// One output element along an axis as a weighted sum of input elements.
struct Tap {
  int64_t from = 0;
  double weight = 0;
};
using Taps = std::vector<Tap>;

// Weights of the four neighbours of a point `ratio` past the second one: Keys' cubic convolution (1981) with parameter `a`.
std::array<double, 4> cubic_weights(double ratio, double a);

// GridSample, AffineGrid, RoiAlign, DepthToSpace, SpaceToDepth.
void add_sampling_ops(OpSet& ops);

}  // namespace unmoor
