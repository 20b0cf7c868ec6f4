#include "unmoor/workbench/noise/integers.h"

#include <algorithm>
#include <vector>

#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using Integers = std::vector<int64_t>;

// What the runs make of one element.
struct Element {
  int64_t exact = 0, low = 0, high = 0;
  size_t off = 0;       // Runs that are off.
  size_t last_off = 0;  // The last of them.
};

Element element_at(const Integers& exact, const std::vector<Integers>& runs, size_t i) {
  Element at{exact[i], exact[i], exact[i]};
  for (size_t k = 0; k < runs.size(); ++k) {
    at.low = std::min(at.low, runs[k][i]);
    at.high = std::max(at.high, runs[k][i]);
    if (runs[k][i] == at.exact) continue;
    ++at.off;
    at.last_off = k;
  }
  return at;
}

uint64_t distance(int64_t a, int64_t b) {
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b) : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

}  // namespace

IntegerAnswer explain_integers(const Sampled& sampled, std::span<const int64_t> found, bool places) {
  const Integers exact = integers(sampled.exact.tensor());
  std::vector<Integers> runs;
  for (const Data& copy : sampled.copies) {
    if (copy) runs.push_back(integers(copy.tensor()));
  }
  if (runs.empty() && !sampled.is_exact()) return IntegerAnswer::Unknown;
  std::vector<size_t> alone(runs.size());  // By run: elements in which only it is off.
  size_t found_alone = 0;
  uint64_t most = 1, furthest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const Element at = element_at(exact, runs, i);
    if (at.off == 1) ++alone[at.last_off];
    most = std::max({most, distance(at.low, at.exact), distance(at.high, at.exact)});
    if (found[i] == at.exact) continue;
    if (at.off == 0) {
      ++found_alone;
      furthest = std::max(furthest, distance(found[i], at.exact));
      continue;
    }
    const bool is_between = !places && found[i] >= at.low && found[i] <= at.high;
    const auto has = [&](const Integers& run) { return run[i] == found[i]; };
    if (!is_between && std::ranges::none_of(runs, has)) return IntegerAnswer::Wrong;
  }
  const size_t allowed = alone.empty() ? 0 : *std::ranges::max_element(alone);
  const bool fits = found_alone <= allowed && (places || furthest <= most);
  return fits ? IntegerAnswer::Explained : IntegerAnswer::Wrong;
}

}  // namespace unmoor
