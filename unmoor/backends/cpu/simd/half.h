#pragma once

#include <cstddef>
#include <cstdint>

namespace unmoor::cpu {

// n float16 or bfloat16 numbers to float32 and back, rounded to nearest, ties to even; a NaN stays one. `to` does not overlap
// `from`.
struct HalfLoops {
  void (*from_f16)(const uint16_t* from, size_t n, float* to);
  void (*to_f16)(const float* from, size_t n, uint16_t* to);
  void (*from_bf16)(const uint16_t* from, size_t n, float* to);
  void (*to_bf16)(const float* from, size_t n, uint16_t* to);
};
const HalfLoops& half_loops();

}  // namespace unmoor::cpu
