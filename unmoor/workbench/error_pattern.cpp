#include "unmoor/workbench/error_pattern.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/systematic.h"

namespace unmoor {
namespace {

// What an element may be off by: half its own spread and half the mean, as P of noise/excess.h has it.
std::vector<double> allowances(std::span<const double> exact, const std::vector<double>& spread, DType stored) {
  double squares = 0;
  for (const double each : spread) squares += std::isfinite(each) ? each * each : 0;
  const double mean = squares / static_cast<double>(std::max<size_t>(spread.size(), 1));
  const double unit = grid_of(stored).unit();
  std::vector<double> allowed(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    const double own = std::isfinite(spread[i]) ? spread[i] : 0;
    const double storing = 0.3 * unit * exact[i];
    allowed[i] = std::sqrt(own * own / 2 + mean / 2 + storing * storing);
  }
  return allowed;
}

std::vector<double> errors_of(const Tensor& values, std::span<const double> exact, const std::vector<double>& allowed) {
  std::vector<double> z = doubles(values);
  for (size_t i = 0; i < z.size(); ++i) z[i] = (z[i] - exact[i]) / allowed[i];
  return z;
}

std::string words_of(const Systematic& found) {
  std::string text;
  for (const std::string& each : found.fired) {
    text += text.empty() ? "systematic: " : "; ";
    if (each == "bias") text += found.effects.bias > 0 ? "results are too high on the whole" : "results are too low on the whole";
    if (each == "shrink") text += found.effects.shrink < 0 ? "results are too close to zero" : "results are too far from zero";
    if (each == "smooth") text += "neighbours are off alike";
    if (each == "edge") text += *found.effects.edge > 0 ? "the border is off more than the inside" : "the inside is off more than the border";
  }
  return text.empty() ? "random: it has no more pattern than rounding has" : text;
}

}  // namespace

std::optional<ErrorPattern> error_pattern(const Region& region, size_t output, const Data& found, uint64_t seed) {
  if (!found.is_tensor() || !has_grid(found.tensor().dtype()) || found.tensor().dtype() == DType::F64) return std::nullopt;
  const DType stored = found.tensor().dtype();
  std::vector<Sampled> runs;
  try {
    constexpr size_t copies = 8;
    runs = noise_runs(region, std::vector<DType>(region.wanted.size(), stored), {DType::F32, copies, seed});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return std::nullopt;
  }
  const Sampled& run = runs.at(output);
  const std::vector<double> spread = spread_of(run);
  if (run.is_exact() || spread.empty() || run.exact.tensor().shape() != found.tensor().shape()) return std::nullopt;
  const auto exact = doubles(run.exact.tensor());
  const std::vector<double> allowed = allowances(exact, spread, stored);
  std::vector<std::vector<double>> noise;
  for (const Data& copy : run.copies) {
    if (copy) noise.push_back(errors_of(copy.tensor(), exact, allowed));
  }
  const auto systematic = find_systematic(errors_of(found.tensor(), exact, allowed), exact, found.tensor().shape(), noise);
  if (!systematic) return std::nullopt;
  return ErrorPattern{systematic->fired, words_of(*systematic)};
}

void agree(ErrorPattern& pattern, ErrorPlane& plane) {
  if (!pattern.fired.empty()) {
    add_reason(plane, pattern.text + ".");
  } else if (plane.systematic) {
    pattern.fired.emplace_back("plane");
    const std::string& reason = plane.pattern.at(0);
    pattern.text = "systematic: " + reason.substr(0, reason.rfind('.'));
  }
}

}  // namespace unmoor
