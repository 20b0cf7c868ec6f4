#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "unmoor/tensor/dtype.h"

namespace unmoor {

// The numbers that a floating dtype holds.
struct Grid {
  int digits = 24;             // Significant bits.
  int lowest_exponent = -126;  // Of normal numbers; below, steps stay as wide as there.
  double largest = 0;          // Beyond it lies infinity.
  double lowest = 0;           // The smallest normal number: 2^lowest_exponent.

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
inline double stochastically_rounded(const Grid& grid, double value, uint64_t random);

// The same of numbers below the normal ones, whose step is fixed.
double rounded_below(const Grid& grid, double value, uint64_t random);

inline double stochastically_rounded(const Grid& grid, double value, uint64_t random) {
  constexpr int double_digits = 53;
  if (value == 0 || !std::isfinite(value) || grid.digits >= double_digits) return value;
  if (std::fabs(value) < grid.lowest) return rounded_below(grid, value, random);
  // Random bits are added below the last digit kept; a carry moves to the next number.
  const uint64_t mask = (uint64_t{1} << (double_digits - grid.digits)) - 1;
  const double result = std::bit_cast<double>((std::bit_cast<uint64_t>(value) + (random & mask)) & ~mask);
  return std::fabs(result) > grid.largest ? std::copysign(std::numeric_limits<double>::infinity(), value) : result;
}

}  // namespace unmoor
