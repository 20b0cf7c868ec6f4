#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// How many times what rounding explains an error is, for e = actual - exact, s its spread, u the unit roundoff of the stored
// dtype, means over all elements that are finite in both:
//   E = √mean(e²) / √mean(s² + (0.3·u·y)²)
//   P = max |e| / √(s²/2 + mean(s²)/2 + (0.3·u·y)²)
// Values of a mask (see mask_size) are left out of both and may be off by 4u each.
struct Excess {
  double e = 0;
  double p = 0;
  bool mask_is_off = false;
  size_t unknown = 0;  // Elements of which no spread is known (it is infinite): they are left out, too.
};

enum class Explained { Yes, Suspicious, No };

// Up to here rounding explains a kernel's error; a run's, of every dtype.
struct ExcessLimits {
  double e = 0;
  double p = 0;
};
ExcessLimits explained_limits(DType stored);
constexpr ExcessLimits explained_after_run_limits{3, 20};

// `spread` by element. Sizes are equal.
Excess excess(std::span<const double> exact, std::span<const double> spread, std::span<const double> actual, DType stored);
// Whether an error is what rounding does. `winograd`: a convolution that Winograd's F(4×4, 3×3) may compute.
Explained explained(const Excess& excess, DType stored, bool winograd);
// Of a value that the rounding of many nodes before it has reached; `winograd`: such a convolution is among the last of them.
bool explained_after_run(const Excess& excess, bool winograd);
// A float32 error so small that no noise has to be looked at: √mean(e²) ≤ 1.2·u·√mean(y²) and max |e| ≤ 4·u·√mean(y²).
bool is_plain_rounding(std::span<const double> exact, std::span<const double> actual, DType stored);

// What is left out as a mask: the size above which values are; infinite if there is no mask. A mask is one in a hundred negative
// values or more, at least two, of 1e4 or more and a hundred times above all others, equal up to the scores that they were added
// to: they mean "minus infinity".
double mask_size(std::span<const double> values);

}  // namespace unmoor
