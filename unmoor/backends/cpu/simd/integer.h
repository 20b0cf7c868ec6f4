#pragma once

#include <cstddef>
#include <cstdint>

namespace unmoor::cpu {

// c[i * c_stride + j] = Σ a[i * depth + p] * b[j * depth + p]: rows of a times rows of b, in int32, which wraps around. `depth`
// is a multiple of depth_step: rows end in zeros.
struct IntegerProduct {
  static constexpr size_t depth_step = 64;

  const int16_t* a;
  const int16_t* b;
  size_t rows, columns, depth;
  int32_t* c;
  size_t c_stride;
};
struct IntegerLoops {
  void (*multiply)(const IntegerProduct& product);
};
const IntegerLoops& integer_loops();

}  // namespace unmoor::cpu
