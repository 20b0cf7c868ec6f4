#include "unmoor/workbench/noise/domain.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace unmoor {

void stay_in_domain(Sampled& moved, const Sampled& plain, bool sign) {
  if (!is_real(moved.exact)) return;
  for (size_t k = 0; k < moved.copies.size(); ++k) {
    if (!moved.copies[k] || !plain.copy(k)) continue;
    const Tensor from = moved.copies[k].tensor();
    const Tensor still = plain.copy(k).tensor();
    Tensor to(from.type());
    const auto numbers = from.span<double>();
    const auto unmoved = still.span<double>();
    const auto results = to.writable_span<double>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      const bool stays = std::isfinite(numbers[i]) && std::isfinite(unmoved[i]);
      results[i] = !stays ? unmoved[i] : sign ? std::copysign(numbers[i], unmoved[i]) : numbers[i];
    }
    moved.copies[k] = std::move(to);
  }
}

bool may_leave_domain(const Node& node, const Sampled& moved) {
  constexpr std::array bounded{"Asin", "Acos", "Acosh", "Atanh", "Pow"};
  if (std::ranges::find(bounded, node.op) != bounded.end() || !is_real(moved.exact)) return true;
  constexpr double near_overflow = 1e300;
  return std::ranges::any_of(moved.copies, [](const Data& copy) {
    return !copy || !std::ranges::all_of(copy.tensor().span<double>(), [](double y) { return std::fabs(y) < near_overflow; });
  });
}

}  // namespace unmoor
