#pragma once

#include <span>
#include <vector>

#include "unmoor/tensor/dtype.h"

namespace unmoor::causes {

// Values that a hypothesis expects, and how far rounding may move each.
struct Prediction {
  std::vector<double> values;
  std::vector<double> spread;
};

// How well a prediction fits what the target gave.
struct Fit {
  double bits = 0;        // Log-likelihood, in bits, of all elements: only differences of two fits to one target mean something.
  double excess = 0;      // √mean(e²) / √mean(b²), with b² = spread² + (0.3·u·value)².
  double deviation = 0;   // √mean(z²), with z = e/b.
  double worst = 0;       // The greatest |z|.
  double close = 1;       // Share of elements within 4b.
  size_t mismatches = 0;  // NaN or an infinity on one side only.
  size_t elements = 0;    // Compared.
};

// Student's t with 4 degrees of freedom: each element gives -log₂ b - 2.5·log₂(1 + z²/4). An element that is a number on one side
// only costs as much as a far outlier. `stored` is how the target stores its values.
Fit fit(const Prediction& prediction, std::span<const double> target, DType stored);

// Whether a hypothesis explains the target, where no change gives `unchanged`: no mismatch; at least 30 bits in all and 1 bit an
// element (or one element beyond 30b unchanged) better; and either √mean(z²) ≤ 30 or 98 % of the elements within 4b.
bool is_accepted(const Fit& hypothesis, const Fit& unchanged);
// Likewise for one that predicts larger errors and no values: it must explain them as rounding is asked to, excess ≤ 3 and |z| ≤
// 30, or it would name any difference of about its size.
bool is_accepted_as_noise(const Fit& hypothesis, const Fit& unchanged);
// Whether two accepted hypotheses cannot be told apart by these elements: within 0.05 bits an element, or 8 bits in all.
bool is_as_good(const Fit& hypothesis, const Fit& best);

}  // namespace unmoor::causes
