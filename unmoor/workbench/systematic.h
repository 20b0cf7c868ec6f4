#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unmoor/tensor/shape.h"

namespace unmoor {

// How far errors are from random ones. Of z = error / spread, limited to ±8 and divided by its own root mean square:
struct Effects {
  double bias = 0;    // Its mean.
  double shrink = 0;  // The mean of z·sign(value): errors away from zero, or towards it.
  std::optional<double> smooth = {};  // The largest correlation of neighbours, over axes of 8 elements or more.
  std::optional<double> edge =
      {};  // log₁₀ of mean square at the border over the interior's, of [N, C, H, W] planes of 8×8 or more.
};
// `z` and `values` (what is exact) have the shape's elements, in order. Elements where z is not finite count as 0. Empty if all
// are 0.
std::optional<Effects> effects_of(std::span<const double> z, std::span<const double> values, const Shape& shape);

struct Systematic {
  Effects effects;
  std::vector<std::string> fired;  // "bias", "shrink", "smooth", "edge": which are not as in noise.
};
// Compares the effects with those of runs that differ by rounding noise alone, each as z of the same elements (8 are usual, 4 the
// least that judge): one fires if it differs from their mean by 0.2 (edge: 0.3) and by 6 deviations, 1/√elements added to the
// deviation. It describes a difference; it is no verdict: a few in a hundred correct kernels are truly a little biased.
std::optional<Systematic> find_systematic(std::span<const double> z, std::span<const double> values, const Shape& shape,
                                          std::span<const std::vector<double>> noise);

}  // namespace unmoor
