#pragma once

#include <span>

#include "unmoor/workbench/compare.h"

namespace unmoor {

// Sets what metrics say of errors in units of their spread, z = (actual - exact)/s: shrink, smooth and edge. Elements without a
// spread, and what is not finite, count as 0. Sizes are those of `shape`.
void set_effects(Metrics& metrics, std::span<const double> exact, std::span<const double> actual, std::span<const double> spread,
                 const Shape& shape);

}  // namespace unmoor
