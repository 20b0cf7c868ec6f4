#pragma once

#include <span>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// How many times what rounding explains an error is, for e = actual - exact, s its spread, u the unit roundoff of the stored
// dtype:
//   E = √mean(e²) / √mean(s² + (0.3·u·y)²)
//   P = max |e| / √(s²/2 + mean(s²)/2 + (0.3·u·y)²)
// Means are over elements of about one size |y|, within a factor of 64: what is large in a tensor must not hide what is
// small. Classes of fewer than 16 elements join the next larger one. Both numbers are those of the worst class; E of a class of
// fewer than 16 elements (the largest ones) does not count beside others. Elements that are not finite in both are left out.
struct Excess {
  double e = 0;
  double p = 0;
  size_t unknown = 0;  // Elements of which no spread is known (it is infinite): they are left out, too.
};

enum class Explained { Yes, Suspicious, No };

// `spread` by element. Sizes are equal.
Excess excess(std::span<const double> exact, std::span<const double> spread, std::span<const double> actual, DType stored);
// Whether an error is what rounding does. `winograd`: a convolution that Winograd's F(4×4, 3×3) may compute.
Explained explained(const Excess& excess, DType stored, bool winograd);
// Of a value that the rounding of many nodes before it has reached; `winograd`: such a convolution is among the last of them.
bool explained_after_run(const Excess& excess, bool winograd);
// A float32 error so small that no noise has to be looked at: in every class of elements of about one size |y|, √mean(e²) ≤
// 1.2·u·√mean(y²) and max |e| ≤ 4·u·√mean(y²).
bool is_plain_rounding(std::span<const double> exact, std::span<const double> actual, DType stored);

}  // namespace unmoor
