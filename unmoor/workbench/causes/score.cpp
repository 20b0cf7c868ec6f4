#include "unmoor/workbench/causes/score.h"

#include <algorithm>
#include <cmath>

#include "unmoor/workbench/causes/arithmetic.h"

namespace unmoor::causes {
namespace {

constexpr double mismatch_bits = 128;

// The least spread: a third of the smallest number; of whole numbers, so much that one off by one is just beyond 30.
double least_spread(DType stored) {
  if (!is_float(stored)) return 0.03;
  return 0.3 * step_at(format_of(stored), 0);
}

// The variance of rounding a value onto the grid up or down at random, as storing in 16 bits does.
double storing_variance(const Format& format, double value) {
  const double step = step_at(format, value);
  const double steps = value / step;
  const double part = steps - std::floor(steps);
  return step * step * part * (1 - part);
}

}  // namespace

Fit fit(const Prediction& prediction, std::span<const double> target, DType stored) {
  Fit result;
  const Format format = format_of(stored);
  const bool narrow = stored == DType::F16 || stored == DType::BF16;
  const double unit = is_float(stored) ? format.unit() : 0;
  const double least = least_spread(stored);
  double squares = 0;
  double errors = 0;
  double bases = 0;
  size_t numbers = 0;
  size_t close = 0;
  result.elements = target.size();
  for (size_t i = 0; i < target.size(); ++i) {
    const double m = i < prediction.values.size() ? prediction.values[i] : NAN;
    const double a = target[i];
    if (!std::isfinite(m) || !std::isfinite(a)) {
      const bool same = m == a || (std::isnan(m) && std::isnan(a));
      if (!same) {
        ++result.mismatches;
        result.bits -= mismatch_bits;
      }
      continue;
    }
    const double s = std::isfinite(prediction.spread[i]) ? prediction.spread[i] : 0;
    const double stored_variance = narrow ? storing_variance(format, m) : 0;
    const double b2 = s * s + stored_variance + 0.09 * unit * unit * m * m + least * least;
    const double e = a - m;
    const double z2 = e * e / b2;
    result.bits -= 0.5 * std::log2(b2) + 2.5 * std::log2(1 + z2 / 4);
    squares += z2;
    errors += e * e;
    bases += b2;
    result.worst = std::max(result.worst, std::sqrt(z2));
    ++numbers;
    if (z2 <= 16) ++close;
  }
  if (numbers == 0) return result;
  const auto count = static_cast<double>(numbers);
  result.deviation = std::sqrt(squares / count);
  result.excess = std::sqrt(errors / bases);
  result.close = static_cast<double>(close) / count;
  return result;
}

bool is_accepted(const Fit& hypothesis, const Fit& unchanged) {
  const auto count = static_cast<double>(std::max<size_t>(hypothesis.elements, 1));
  const double gain = hypothesis.bits - unchanged.bits;
  const bool stands_out = gain / count >= 1 || unchanged.worst > 30;
  return hypothesis.mismatches == 0 && gain >= 30 && stands_out && (hypothesis.deviation <= 30 || hypothesis.close >= 0.98);
}

bool is_accepted_as_noise(const Fit& hypothesis, const Fit& unchanged) {
  return is_accepted(hypothesis, unchanged) && hypothesis.excess <= 3 && hypothesis.worst <= 30;
}

bool is_as_good(const Fit& hypothesis, const Fit& best) {
  const double less = best.bits - hypothesis.bits;
  return less < 8 || less / static_cast<double>(std::max<size_t>(best.elements, 1)) < 0.05;
}

}  // namespace unmoor::causes
