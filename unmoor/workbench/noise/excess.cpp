#include "unmoor/workbench/noise/excess.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/workbench/noise/grid.h"

namespace unmoor {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double ratio(double error, double allowed) {
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : infinity;
}

}  // namespace

double mask_size(std::span<const double> values) {
  double lowest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) lowest = std::min(lowest, value);
  }
  double rest = 0, highest = lowest;
  size_t masked = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    if (value > 0.99 * lowest) {
      rest = std::max(rest, std::fabs(value));
    } else {
      ++masked;
      highest = std::max(highest, value);
    }
  }
  const bool many = masked >= 2 && 100 * masked >= values.size() && masked < values.size();
  const bool equal = highest - lowest <= 2 * rest + 1e-6 * -lowest;
  return lowest <= -1e4 && many && equal && rest <= -lowest / 100 ? -0.99 * lowest : infinity;
}

Excess excess(std::span<const double> exact, std::span<const double> spread, std::span<const double> actual, DType stored) {
  const Grid grid = grid_of(stored);
  const double mask = mask_size(exact);
  const double unit = grid.unit();
  const double smallest = 0.3 * grid.smallest();
  const auto base = [unit, smallest](double y) {
    const double relative = 0.3 * unit * y;
    return relative * relative + smallest * smallest;
  };
  Excess result;
  double errors = 0, spreads = 0, bases = 0;
  size_t count = 0;
  const auto counts = [&](size_t i) {
    return std::isfinite(exact[i]) && std::isfinite(actual[i]) && std::isfinite(spread[i]) && std::fabs(exact[i]) < mask;
  };
  for (size_t i = 0; i < exact.size(); ++i) {
    const double e = actual[i] - exact[i];
    if (std::isinf(spread[i])) ++result.unknown;
    if (!counts(i)) {
      if (std::isfinite(e) && std::fabs(exact[i]) >= mask && std::fabs(e) > 4 * unit * std::fabs(exact[i])) result.mask_is_off = true;
      continue;
    }
    errors += e * e;
    spreads += spread[i] * spread[i];
    bases += base(exact[i]);
    ++count;
  }
  if (count == 0) return result;
  const double mean = spreads / static_cast<double>(count);
  result.e = std::sqrt(ratio(errors, spreads + bases));
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!counts(i)) continue;
    const double allowed = std::sqrt(spread[i] * spread[i] / 2 + mean / 2 + base(exact[i]));
    result.p = std::max(result.p, ratio(std::fabs(actual[i] - exact[i]), allowed));
  }
  return result;
}

ExcessLimits explained_limits(DType stored) {
  return stored == DType::F16 || stored == DType::BF16 ? ExcessLimits{1, 5} : ExcessLimits{3, 16};
}

Explained explained(const Excess& excess, DType stored, bool winograd) {
  const bool narrow = stored == DType::F16 || stored == DType::BF16;
  const ExcessLimits limits = explained_limits(stored);
  const ExcessLimits far = narrow ? ExcessLimits{1.5, 8} : ExcessLimits{5, 30};
  if (excess.mask_is_off) return Explained::No;
  if (excess.e <= limits.e && excess.p <= (winograd && !narrow ? 100 : limits.p)) return Explained::Yes;
  return excess.e > far.e || excess.p > far.p ? Explained::No : Explained::Suspicious;
}

bool explained_after_run(const Excess& excess, bool winograd) {
  const ExcessLimits limits = explained_after_run_limits;
  return !excess.mask_is_off && excess.e <= limits.e && excess.p <= (winograd ? 100 : limits.p);
}

bool is_plain_rounding(std::span<const double> exact, std::span<const double> actual, DType stored) {
  if (stored != DType::F32) return false;
  double errors = 0, squares = 0, largest = 0;
  const double mask = mask_size(exact);
  if (std::isfinite(mask)) return false;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!std::isfinite(exact[i]) || !std::isfinite(actual[i])) continue;
    const double e = actual[i] - exact[i];
    errors += e * e;
    squares += exact[i] * exact[i];
    largest = std::max(largest, std::fabs(e));
  }
  const double unit = grid_of(stored).unit();
  const auto count = static_cast<double>(std::max<size_t>(exact.size(), 1));
  return errors <= 1.44 * unit * unit * squares && largest <= 4 * unit * std::sqrt(squares / count);
}

}  // namespace unmoor
