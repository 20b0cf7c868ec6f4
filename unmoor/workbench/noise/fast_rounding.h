#pragma once

#include "unmoor/workbench/noise/grid.h"

namespace unmoor {

// stochastically_rounded() on one grid, with one comparison for numbers that are normal on it and not at its end. Immutable: any thread.
class FastRounding {
 public:
  explicit FastRounding(const Grid& grid)
      : grid_(grid), mask_((uint64_t{1} << (53 - grid.digits)) - 1), lowest_(std::bit_cast<uint64_t>(grid.lowest)),
        normal_(std::bit_cast<uint64_t>(grid.largest) - mask_ - lowest_) {}

  double operator()(double value, uint64_t random) const {
    const auto bits = std::bit_cast<uint64_t>(value);
    constexpr uint64_t sign = uint64_t{1} << 63;
    if ((bits & ~sign) - lowest_ >= normal_) return stochastically_rounded(grid_, value, random);
    return std::bit_cast<double>((bits + (random & mask_)) & ~mask_);
  }

 private:
  Grid grid_;
  uint64_t mask_, lowest_, normal_;
};

}  // namespace unmoor
