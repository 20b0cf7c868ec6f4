#pragma once

#include "unmoor/ops/formula.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {

// How a rotation pairs the elements of a head: element c with c + half, or, interleaved, 2c with 2c + 1.
struct Rotation {
  int64_t half = 0;  // Pairs; elements from 2·half on stay.
  bool interleaved = false;
};

// Turns each pair (a, b) of a head in place into (cos·a - sin·b, sin·a + cos·b).
void rotate(std::span<double> head, const double* cos, const double* sin, Rotation rotation);
// The same as operators: x has heads of `width` in its last axis; cos and sin end in `half` and broadcast to it.
ValueId add_rotation(GraphBuilder& builder, ValueId x, ValueId cos, ValueId sin, int64_t width, Rotation rotation);

}  // namespace unmoor
