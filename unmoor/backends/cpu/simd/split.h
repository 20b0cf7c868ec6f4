#pragma once

#include <cstddef>
#include <cstdint>

namespace unmoor::cpu {

// Float32 numbers split into three bfloat16 parts, each the nearest to what is left (ties to even), and the sets they lie in
// (amx/tiles.h). The parts' sum is the number where each part is zero or normal: |x| in [2^-103, 2^128 - 2^119), or 0.
struct SplitLoops {
  // Sets of up to 32 rows of A of k values, `step` floats apart; what is missing is zero. A row that is not to be computed so is
  // marked by a NaN in its first set: one whose largest magnitude is below 2^-60 but not 0. NaN and infinity give NaN too.
  void (*rows)(const float* a, size_t step, size_t rows, size_t k, uint16_t* sets);
  // The set of 32 k times 32 columns of B, its rows `step` floats apart.
  void (*columns)(const float* b, size_t step, uint16_t* set);
  // The columns again, [32][32].
  void (*join_columns)(const uint16_t* set, float* b);
  // to[i] += from[i].
  void (*add)(const float* from, size_t count, float* to);
  // Copies sums, whose rows are 32 floats apart. Whether all of them are finite.
  bool (*take)(const float* sums, size_t rows, size_t columns, float* c, size_t c_stride);
};
const SplitLoops& split_loops();

// Where the first number is that has a part which is not finite or not normal; `count` where there is none. At any alignment.
size_t first_unsplit(const float* numbers, size_t count);

}  // namespace unmoor::cpu
