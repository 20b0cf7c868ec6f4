#pragma once

#include <cstdint>
#include <vector>

#include "unmoor/hal/support.h"

namespace unmoor::gpu {

// A loop over the elements of a shape in row-major order, with each operand's steps, in elements, along its axes. 0 repeats.
struct Walk {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides;  // By operand.

  size_t rank() const { return dims.size(); }
  int64_t elements() const;
};

// Most axes that a kernel walks along.
constexpr size_t most_axes = 6;
// Elements of one operand that 32-bit indices reach, with room for the last work-groups.
constexpr int64_t most_elements = 2'000'000'000;

// Steps of an operand of this shape that is broadcast to `to`.
std::vector<int64_t> broadcast_strides(const Shape& shape, const Shape& to);
// The same walk with as few axes as possible: axes of 1 are dropped, neighbours that all operands step through evenly are joined.
Walk collapsed(const Walk& walk);
// With leading axes of 1 up to `rank`.
Walk padded(Walk walk, size_t rank);

// No if an input or output has more elements than the kernels' indices reach.
Support sizes_fit(const OpCall& call);

}  // namespace unmoor::gpu
