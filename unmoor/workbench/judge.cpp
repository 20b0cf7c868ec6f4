#include "unmoor/workbench/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/real.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/both.h"
#include "unmoor/workbench/exact_rules.h"
#include "unmoor/workbench/noise/excess.h"
#include "unmoor/workbench/noise/integers.h"
#include "unmoor/workbench/systematic.h"

namespace unmoor {
namespace {

// A tensor of numbers or strings.
bool is_plain(const Data& data) {
  return data.is_tensor() && data.tensor().dtype() != DType::C64 && data.tensor().dtype() != DType::C128;
}

DType stored_as(const Data& data) { return data.is_tensor() ? data.tensor().dtype() : DType::F32; }

ValueVerdict by_tolerance(const Metrics& metrics) { return metrics.over <= 1 ? ValueVerdict::Match : ValueVerdict::Differ; }

// E and P, and how the error is laid out; sets them in the metrics.
Excess set_excess(Metrics& metrics, const RealInput& exact, const RealInput& actual, const Shape& shape, std::span<const double> spread,
                  DType stored) {
  Excess found;
  const auto lay_out = [&] {
    std::vector<double> z(spread.size());
    for (size_t i = 0; i < z.size(); ++i) z[i] = (actual.numbers()[i] - exact.numbers()[i]) / spread[i];
    if (const auto effects = effects_of(z, exact.numbers(), shape)) {
      metrics.shrink = effects->shrink;
      metrics.smooth = effects->smooth;
      metrics.edge = effects->edge;
    }
  };
  both([&] { found = excess(exact.numbers(), spread, actual.numbers(), stored); }, lay_out);
  metrics.excess_e = found.e;
  metrics.excess_p = found.p;
  return found;
}

std::vector<double> widened_spread(std::vector<double> spread, bool both_round) {
  if (both_round) {
    for (double& each : spread) each *= std::numbers::sqrt2;
  }
  return spread;
}

std::vector<double> joined_spread(std::span<const double> a, std::span<const double> b) {
  std::vector<double> spread(a.size());
  for (size_t i = 0; i < spread.size(); ++i) spread[i] = std::hypot(a[i], b[i]);
  return spread;
}

bool is_off(ValueVerdict verdict) { return verdict == ValueVerdict::Differ || verdict == ValueVerdict::Suspicious; }

// Elements of which no noise run is finite are judged by the table of tolerances.
void judge_unknown(const Tensor& exact, const Tensor& actual, std::span<const double> spread, DType stored, Judgement& result) {
  const Tolerance tolerance = default_tolerance(stored);
  const auto wanted = doubles(exact);
  const auto found = doubles(actual);
  size_t unknown = 0;
  bool fits = true;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!std::isinf(spread[i]) || !std::isfinite(found[i])) continue;
    ++unknown;
    fits = fits && std::fabs(found[i] - wanted[i]) <= (tolerance.absolute + tolerance.relative) * std::fabs(wanted[i]);
  }
  result.note = cat("no noise run is finite in ", unknown, " elements: they are judged by tolerance");
  if (!fits) result.verdict = ValueVerdict::Differ;
}

// Integers that noise runs are known of, not all of which are as they should be.
void set_integer_verdict(const Sampled& sampled, const Tensor& actual, bool places, Judgement& result) {
  result.verdict = ValueVerdict::Differ;
  const bool comparable = sampled && sampled.exact.is_tensor() && !is_float(actual.dtype()) && is_plain(sampled.exact) &&
                          actual.dtype() != DType::String && sampled.exact.tensor().type() == actual.type();
  if (!comparable) return;
  switch (explain_integers(sampled, integers(actual), places)) {
    case IntegerAnswer::Explained:
      result.verdict = ValueVerdict::Explained;
      result.note = "as noise makes these integers differ";
      break;
    case IntegerAnswer::Unknown:
      result.verdict = ValueVerdict::Suspicious;
      result.note = "rounding alone changes the shape: what is in it cannot be judged";
      break;
    case IntegerAnswer::Wrong:
      break;
  }
}

// One kernel's results. The floor is made when the first output asks for it.
class KernelJudge {
 public:
  KernelJudge(const Region* region, std::string_view op, std::span<const Data> exact, std::span<const Data> actual,
              const JudgeOptions& options)
      : region_(region), op_(op), exact_(exact), actual_(actual), options_(options) {
    for (const Data& each : actual) stored_.push_back(stored_as(each));
    winograd_ = region != nullptr && may_be_winograd(*region);
  }

  Judgement judge(size_t i) {
    Judgement result;
    if (i >= exact_.size() || !exact_[i] || !actual_[i]) return result;
    Metrics& metrics = result.metrics;
    metrics = compare(exact_[i], actual_[i], stored_[i], options_.tolerance);
    result.verdict = ValueVerdict::Differ;
    if (!metrics.problem.empty()) return result;
    if (options_.tolerance && metrics.class_mismatch == 0) {
      result.verdict = by_tolerance(metrics);
      return result;
    }
    const bool is_real = exact_[i].is_tensor() && is_float(exact_[i].tensor().dtype()) && is_float(stored_[i]);
    if (region_ != nullptr && (!is_real || moves_bits(*region_)) && is_plain(exact_[i])) return exactly(i, std::move(result));
    if (!is_real) {
      const Op* const op = all_ops().find(op_);
      const bool rounds = op != nullptr && op->rounding == Rounding::Quantise && agrees_as_quantised(metrics);
      result.verdict = metrics.fine() || rounds ? ValueVerdict::Match : ValueVerdict::Differ;
      return result;
    }
    if (metrics.class_mismatch > 0) return result;
    by_floor(i, result);
    return result;
  }

 private:
  // Where rounding has no say, or decides between neighbours only.
  Judgement exactly(size_t i, Judgement result) {
    const ExactComparison found = compare_exactly(*region_, i, exact_[i], actual_[i]);
    if (found.different == 0) {
      result.verdict = found.undefined > 0 ? ValueVerdict::Undefined : ValueVerdict::Match;
      if (found.undefined > 0)
        result.note = cat(found.undefined, " elements differ where the specification leaves the result open");
    } else if (same_selection(*region_, i, actual_[i], exact_[i])) {
      result.verdict = ValueVerdict::Match;
      result.note = "other places of equal values";
    } else if (quantises(*region_) && !selects_places(*region_) && agrees_as_quantised(result.metrics)) {
      result.verdict = ValueVerdict::Match;
    } else if (!moves_bits(*region_) && !is_float(stored_[i]) && stored_[i] != DType::String) {
      by_noise_runs(i, result);
    }
    return result;
  }

  // Integers at the end of nodes that round: ties may fall either way.
  void by_noise_runs(size_t i, Judgement& result) {
    if (runs_.empty() && failure_.empty()) {
      try {
        runs_ = noise_runs(*region_, stored_, {DType::F32, 0, options_.seed});
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::Stopped) throw;
        failure_ = error.what();
      }
    }
    if (i < runs_.size()) set_integer_verdict(runs_[i], actual_[i].tensor(), selects_places(*region_), result);
  }

  void by_floor(size_t i, Judgement& result) {
    const Tensor& actual = actual_[i].tensor();
    const Tensor& exact = exact_[i].tensor();
    const RealInput wanted(exact), found_numbers(actual);
    const bool plain = is_plain_rounding(wanted.numbers(), found_numbers.numbers(), stored_[i]) ||
                       (result.metrics.ulp_max <= 0.5 && stored_[i] != DType::F64);
    if (plain && !options_.always_floor) {
      result.verdict = ValueVerdict::Match;
      return;
    }
    std::string reason;
    const auto spread = spread_with(DType::F32, i, reason);
    if (!spread) {
      result.verdict = by_tolerance(result.metrics);
      result.note = cat("no noise floor: ", reason);
      return;
    }
    const Excess found = set_excess(result.metrics, wanted, found_numbers, exact.shape(), *spread, stored_[i]);
    const Explained answer = explained(weighed(found, stored_[i]), stored_[i], winograd_);
    result.verdict = answer == Explained::Yes          ? (plain ? ValueVerdict::Match : ValueVerdict::Explained)
                     : answer == Explained::Suspicious ? ValueVerdict::Suspicious
                                                       : ValueVerdict::Differ;
    if (answer == Explained::Yes && found.p > 16 && winograd_) result.note = "as Winograd does";
    if (answer != Explained::Yes) try_narrow_steps(i, result);
    if (found.unknown > 0) judge_unknown(exact, actual, *spread, stored_[i], result);
    if (is_off(result.verdict)) result.floor = floors_[i];
  }

  // A 16-bit result is off by half a step at most, which is why its P is small. Two that were rounded are off by twice that, in spreads
  // that are √2 wider.
  Excess weighed(Excess found, DType stored) const {
    if (options_.both_round && (stored == DType::F16 || stored == DType::BF16)) found.p /= std::numbers::sqrt2;
    return found;
  }

  // Whether 16-bit arithmetic inside the operator explains what float32 does not.
  void try_narrow_steps(size_t i, Judgement& result) {
    if (stored_[i] != DType::F16 && stored_[i] != DType::BF16) return;
    std::string reason;
    const auto spread = spread_with(stored_[i], i, reason);
    if (!spread) return;
    const RealInput wanted(exact_[i].tensor()), found_numbers(actual_[i].tensor());
    const Excess found = excess(wanted.numbers(), *spread, found_numbers.numbers(), stored_[i]);
    if (found.e > 3 || found.p > 16 || found.mask_is_off) return;
    result.verdict = ValueVerdict::Suspicious;
    result.note = "16-bit arithmetic inside explains it";
  }

  std::optional<std::vector<double>> spread_with(DType step, size_t i, std::string& reason) {
    if (region_ == nullptr) {
      reason = "its nodes are not known";
      return std::nullopt;
    }
    if (!has_grid(stored_[i]) || stored_[i] == DType::F64) {
      reason = cat("none is made for ", name(stored_[i]));
      return std::nullopt;
    }
    const bool is_narrow = step != DType::F32;
    auto& floors = is_narrow ? narrow_ : floors_;
    auto& failure = is_narrow ? narrow_failure_ : failure_;
    if (floors.empty() && failure.empty()) {
      try {
        floors = noise_floor(*region_, stored_, {step, 0, options_.seed});
        if (rounds_on_the_way()) of_reference_[is_narrow] = noise_floor(*region_, stored_, {step, 0, options_.seed + 1, true, options_.rounded_inside});
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::Stopped) throw;
        failure = error.what();
      }
    }
    reason = failure;
    if (i >= floors.size() || floors[i].spread.size() != exact_[i].tensor().elements()) return std::nullopt;
    const auto reference = of_reference_.find(is_narrow);
    if (reference == of_reference_.end()) return widened_spread(floors[i].spread, options_.both_round);
    return joined_spread(floors[i].spread, reference->second.at(i).spread);
  }

  // Whether what is compared to comes from a run in 16 bits, which rounds more than this kernel's result.
  bool rounds_on_the_way() const {
    const auto is_narrow = [](const auto& each) { return each.second.is_tensor() && (stored_as(each.second) == DType::F16 || stored_as(each.second) == DType::BF16); };
    if (region_ == nullptr) return false;
    return options_.both_round && (!options_.rounded_inside.empty() || std::ranges::any_of(region_->given, is_narrow));
  }

  const Region* region_;
  std::string_view op_;
  std::span<const Data> exact_, actual_;
  const JudgeOptions& options_;
  std::vector<DType> stored_;
  bool winograd_ = false;
  std::vector<NoiseFloor> floors_, narrow_;
  std::map<bool, std::vector<NoiseFloor>> of_reference_;  // By whether steps are of 16 bits; only where it rounds more.
  std::vector<Sampled> runs_;
  std::string failure_, narrow_failure_;
};

bool fine_by_table(const Metrics& metrics, DType stored) {
  if (metrics.fine()) return true;
  if (metrics.class_mismatch > 0 || !is_float(stored)) return false;
  return metrics.rel_l2 <= output_limit(stored) && metrics.over <= output_spread;
}

}  // namespace

std::string_view name(ValueVerdict verdict) {
  switch (verdict) {
    case ValueVerdict::Match:
      return "match";
    case ValueVerdict::Explained:
      return "explained";
    case ValueVerdict::Suspicious:
      return "suspicious";
    case ValueVerdict::Differ:
      return "differ";
    case ValueVerdict::Undefined:
      return "undefined";
    case ValueVerdict::AsBaseline:
      return "as-baseline";
    case ValueVerdict::Hidden:
      break;
  }
  return "hidden";
}

std::vector<Judgement> judge_kernel(const Region* region, std::string_view op, std::span<const Data> exact,
                                    std::span<const Data> actual, const JudgeOptions& options) {
  KernelJudge judge(region, op, exact, actual, options);
  std::vector<Judgement> results;
  for (size_t i = 0; i < actual.size(); ++i) results.push_back(judge.judge(i));
  return results;
}

Judgement judge_after_run(const Data& exact, const Data& actual, const Sampled* sampled, const JudgeOptions& options) {
  const DType stored = stored_as(actual);
  Judgement result;
  Metrics& metrics = result.metrics;
  metrics = compare(exact, actual, stored, options.tolerance);
  result.verdict = ValueVerdict::Differ;
  if (!metrics.problem.empty() || metrics.class_mismatch > 0) return result;
  if (options.tolerance) {
    result.verdict = by_tolerance(metrics);
    return result;
  }
  if (!exact.is_tensor() || !is_float(stored)) {
    result.verdict = fine_by_table(metrics, stored) ? ValueVerdict::Match : ValueVerdict::Differ;
    const bool integer = exact.is_tensor() && actual.is_tensor() && sampled != nullptr;
    if (options.steps && agrees_as_quantised(metrics)) result.verdict = ValueVerdict::Match;
    if (result.verdict == ValueVerdict::Differ && integer) set_integer_verdict(*sampled, actual.tensor(), options.places, result);
    return result;
  }
  std::vector<double> spread =
      sampled != nullptr && has_grid(stored) ? widened_spread(spread_of(*sampled), options.both_round) : std::vector<double>();
  if (spread.size() != exact.tensor().elements() || stored == DType::F64) {
    result.verdict = fine_by_table(metrics, stored) ? ValueVerdict::Match : ValueVerdict::Differ;
    result.note = "no noise floor";
    return result;
  }
  const RealInput wanted(exact.tensor()), found_numbers(actual.tensor());
  const Excess found = set_excess(metrics, wanted, found_numbers, exact.tensor().shape(), spread, stored);
  if (explained_after_run(found, options.winograd && stored == DType::F32)) {
    result.verdict = is_plain_rounding(wanted.numbers(), found_numbers.numbers(), stored) ? ValueVerdict::Match
                                                                                        : ValueVerdict::Explained;
  } else {
    result.verdict = found.e <= 5 && found.p <= 30 && !found.mask_is_off ? ValueVerdict::Suspicious : ValueVerdict::Differ;
  }
  return result;
}

double shown_excess(const Metrics& metrics, ValueVerdict verdict, DType stored) {
  if (metrics.excess_e) return *metrics.excess_e;
  const bool fits = verdict == ValueVerdict::Match || verdict == ValueVerdict::Explained || verdict == ValueVerdict::Undefined;
  if (metrics.max_abs == 0 && fits) return 0;
  if (!has_grid(stored)) return fits ? 0 : std::numeric_limits<double>::infinity();
  return metrics.rel_l2 * std::numbers::sqrt3 / grid_of(stored).unit();
}

double output_limit(DType stored) {
  switch (stored) {
    case DType::F64:
      return 1e-10;
    case DType::F32:
      return 1e-4;
    case DType::F16:
      return 1e-2;
    default:
      return 5e-2;
  }
}

}  // namespace unmoor
