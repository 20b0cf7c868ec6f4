#pragma once

#include <cstdint>

#include "unmoor/tensor/dtype.h"

namespace unmoor {

// The numbers that a floating dtype holds.
struct Grid {
  int digits = 24;             // Significant bits.
  int lowest_exponent = -126;  // Of normal numbers; below, steps stay as wide as there.
  double largest = 0;          // Beyond it lies infinity.

  double unit() const;      // u = 2^-digits: the largest relative error of rounding to nearest.
  double smallest() const;  // The smallest positive number.
  bool operator==(const Grid&) const = default;
};
// Of float64, float32, float16 and bfloat16; has_grid says for which there is one. Fails with Internal on another dtype.
Grid grid_of(DType dtype);
bool has_grid(DType dtype);

// One of the two neighbours of `value` on the grid, each as likely as the other is far, by the random bits given: the mean is
// `value` (stochastic rounding, Croci and others, "Stochastic rounding: implementation, error analysis and applications", 2022).
// A number of the grid, an infinity and NaN stay. What rounds beyond the largest is infinite.
double stochastically_rounded(const Grid& grid, double value, uint64_t random);

}  // namespace unmoor
