#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

// What the error of a sum depends on, for each element y = Σ aᵢbᵢ of an output.
struct SumTerms {
  std::vector<double> squares;  // v = Σ (aᵢbᵢ)², by element; broadcast from one if it has one.
  double terms = 1;             // n, the most that any element adds.
};

// The terms of a call whose operator adds products, with its first output `y`: one more evaluation of the reference, on squared
// operands. Nothing if the operator is not in the table of sums.cpp.
std::optional<SumTerms> sum_terms(const Node& node, std::span<const Data> in, const Tensor& y);
bool is_known_sum(std::string_view op);

// Variance of the error of a float sum of n products, added one by one in random order, with unit roundoff u: u²/3·(y²·n/3 +
// v·(n/6 + 1)). Real kernels stay below: a sequential sum reaches 0.66 to 0.81 of the deviation, blocked ones 0.04 to 0.5
// (docs/precision.md).
double sum_variance(double y, double squares, double terms, double unit);

// By input: how far the operator's coordinates may be off, as a multiple of the unit roundoff, absolute. 0: not at all.
double coordinate_allowance(const Node& node, std::span<const Data> in, size_t input);

}  // namespace unmoor
