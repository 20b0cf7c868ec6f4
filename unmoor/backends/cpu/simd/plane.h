#pragma once

#include <cstddef>

namespace unmoor::cpu {

// Sliding windows over one plane that lies split by phase with its border around it, so that output i of all taps is at
// plane[offsets[tap] + i]. Outputs at the ends of rows that the plane's border makes are junk; the caller drops them.
// Readable behind plane[offsets[tap] + n]: slack floats.
struct PlaneWindows {
  static constexpr size_t slack = 256;

  const float* plane;
  const size_t* offsets;
  size_t taps;
  size_t n;       // Outputs; y holds n rounded up by slack.
  float* y;
};

struct PlaneLoops {
  // Of sums, what lies outside of [low, high] becomes the nearer end.
  void (*weighted)(const PlaneWindows& windows, const float* weights, float bias, float low, float high);
  void (*largest)(const PlaneWindows& windows);
  void (*sum)(const PlaneWindows& windows);
  // Rows of n floats from one place to another.
  void (*copy_rows)(const float* from, size_t from_step, float* to, size_t to_step, size_t rows, size_t n);
  // to[j][i] = from[i * stride + j].
  void (*spread)(const float* from, size_t n, size_t stride, float* const* to);
};
const PlaneLoops& plane_loops();

}  // namespace unmoor::cpu
