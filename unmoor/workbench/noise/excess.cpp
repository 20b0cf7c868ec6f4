#include "unmoor/workbench/noise/excess.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "unmoor/workbench/noise/grid.h"

namespace unmoor {
namespace {

double ratio(double error, double allowed) {
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : std::numeric_limits<double>::infinity();
}

// Sums over elements of about one size.
struct Class {
  size_t count = 0;
  double errors = 0, spreads = 0, bases = 0, largest = 0;

  void add(double error, double spread, double base) {
    ++count;
    errors += error * error;
    spreads += spread * spread;
    bases += base;
    largest = std::max(largest, std::fabs(error));
  }
  void join(const Class& other) {
    count += other.count;
    errors += other.errors;
    spreads += other.spreads;
    bases += other.bases;
    largest = std::max(largest, other.largest);
  }
};

// The elements by size. What has no size at all belongs to the largest: a threshold may have cut it off.
class Classes {
 public:
  Class& at(double size) { return by_size_[place(size)]; }

  // Small classes join the next larger one. Then `joined` and `groups` tell.
  void join_small() {
    bool open = false;
    for (size_t i = 0; i + 1 < by_size_.size(); ++i) {
      if (by_size_[i].count == 0) continue;
      if (!open) groups_.emplace_back();
      groups_.back().join(by_size_[i]);
      group_of_[i] = groups_.size() - 1;
      open = groups_.back().count < few;
    }
    if (by_size_.back().count == 0) return;
    if (groups_.empty()) groups_.emplace_back();
    groups_.back().join(by_size_.back());
    group_of_.back() = groups_.size() - 1;
  }
  const Class& joined(double size) const { return groups_[group_of_[place(size)]]; }
  const std::vector<Class>& groups() const { return groups_; }
  bool says_something(const Class& group) const { return group.count >= few || groups_.size() == 1; }

 private:
  static constexpr size_t few = 16;
  static constexpr int width = 6;  // Of a class, in powers of two.
  static constexpr int lowest = -1074, highest = 1023;
  static constexpr size_t count = (highest - lowest) / width + 2;

  static size_t place(double size) {
    if (size == 0) return count - 1;
    return static_cast<size_t>((std::clamp(std::ilogb(size), lowest, highest) - lowest) / width);
  }

  std::vector<Class> by_size_ = std::vector<Class>(count);
  std::vector<size_t> group_of_ = std::vector<size_t>(count);
  std::vector<Class> groups_;
};

}  // namespace

Excess excess(std::span<const double> exact, std::span<const double> spread, std::span<const double> actual, DType stored) {
  const Grid grid = grid_of(stored);
  const auto base = [&](double y) {
    const double relative = 0.3 * grid.unit() * y;
    const double smallest = 0.3 * grid.smallest();
    return relative * relative + smallest * smallest;
  };
  // Not by the spread as well: where few runs came out alike by chance, a class of them would look worse than it is.
  const auto size = [&](size_t i) { return std::fabs(exact[i]); };
  const auto counts = [&](size_t i) { return std::isfinite(exact[i]) && std::isfinite(actual[i]) && std::isfinite(spread[i]); };
  Excess result;
  Classes classes;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (counts(i)) classes.at(size(i)).add(actual[i] - exact[i], spread[i], base(exact[i]));
    if (std::isinf(spread[i])) ++result.unknown;
  }
  classes.join_small();
  for (const Class& each : classes.groups()) {
    if (classes.says_something(each)) result.e = std::max(result.e, std::sqrt(ratio(each.errors, each.spreads + each.bases)));
  }
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!counts(i)) continue;
    const Class& mine = classes.joined(size(i));
    const double mean = mine.spreads / static_cast<double>(mine.count);
    const double allowed = std::sqrt(spread[i] * spread[i] / 2 + mean / 2 + base(exact[i]));
    result.p = std::max(result.p, ratio(std::fabs(actual[i] - exact[i]), allowed));
  }
  return result;
}

Explained explained(const Excess& excess, DType stored, bool winograd) {
  struct Limits {
    double e, p, far_e, far_p;
  };
  const bool narrow = stored == DType::F16 || stored == DType::BF16;
  const Limits limits = narrow ? Limits{1, 5, 1.5, 8} : Limits{3, 16, 5, 30};
  if (excess.e <= limits.e && excess.p <= limits.p) return Explained::Yes;
  if (winograd && !narrow && excess.e <= limits.far_e && excess.p <= 100) return Explained::Yes;
  return excess.e > limits.far_e || excess.p > limits.far_p ? Explained::No : Explained::Suspicious;
}

bool explained_after_run(const Excess& excess, bool winograd) { return excess.e <= 3 && excess.p <= (winograd ? 100 : 20); }

bool is_plain_rounding(std::span<const double> exact, std::span<const double> actual, DType stored) {
  if (stored != DType::F32) return false;
  Classes classes;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (std::isfinite(exact[i]) && std::isfinite(actual[i]))
      classes.at(std::fabs(exact[i])).add(actual[i] - exact[i], 0, exact[i] * exact[i]);
  }
  classes.join_small();
  const double unit = grid_of(stored).unit();
  return std::ranges::all_of(classes.groups(), [unit](const Class& each) {
    const double size = std::sqrt(each.bases / static_cast<double>(each.count));
    return each.errors <= 1.44 * unit * unit * each.bases && each.largest <= 4 * unit * size;
  });
}

}  // namespace unmoor
