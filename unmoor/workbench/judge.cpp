#include "unmoor/workbench/judge.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/exact_rules.h"
#include "unmoor/workbench/noise/effects.h"
#include "unmoor/workbench/noise/excess.h"

namespace unmoor {
namespace {

// A tensor of numbers or strings.
bool is_plain(const Data& data) {
  return data.is_tensor() && data.tensor().dtype() != DType::C64 && data.tensor().dtype() != DType::C128;
}

DType stored_as(const Data& data) { return data.is_tensor() ? data.tensor().dtype() : DType::F32; }

ValueVerdict by_tolerance(const Metrics& metrics) { return metrics.over <= 1 ? ValueVerdict::Match : ValueVerdict::Differ; }

void set_excess(Metrics& metrics, const Tensor& exact, const Tensor& actual, std::span<const double> spread,
                const Excess& found) {
  metrics.excess_e = found.e;
  metrics.excess_p = found.p;
  set_effects(metrics, doubles(exact), doubles(actual), spread, exact.shape());
}

std::vector<double> widened_spread(std::vector<double> spread, bool both_round) {
  if (both_round) {
    for (double& each : spread) each *= std::numbers::sqrt2;
  }
  return spread;
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
    } else if (quantises(*region_) && agrees_as_quantised(result.metrics)) {
      result.verdict = ValueVerdict::Match;
    }
    return result;
  }

  void by_floor(size_t i, Judgement& result) {
    const Tensor& actual = actual_[i].tensor();
    const Tensor& exact = exact_[i].tensor();
    const bool plain = is_plain_rounding(doubles(exact), doubles(actual), stored_[i]) ||
                       (result.metrics.ulp_max <= 0.5 && stored_[i] != DType::F64);
    if (plain && !options_.always_floor) {
      result.verdict = ValueVerdict::Match;
      return;
    }
    std::string reason;
    if (const auto spread = spread_with(DType::F32, i, reason)) {
      const Excess found = excess(doubles(exact), *spread, doubles(actual), stored_[i]);
      set_excess(result.metrics, exact, actual, *spread, found);
      const Explained answer = explained(found, stored_[i], winograd_);
      result.verdict = answer == Explained::Yes          ? (plain ? ValueVerdict::Match : ValueVerdict::Explained)
                       : answer == Explained::Suspicious ? ValueVerdict::Suspicious
                                                         : ValueVerdict::Differ;
      if (answer == Explained::Yes && found.p > 16 && winograd_) result.note = "as Winograd does";
      if (answer != Explained::Yes) try_narrow_steps(i, result);
      return;
    }
    result.verdict = by_tolerance(result.metrics);
    result.note = cat("no noise floor: ", reason);
  }

  // Whether 16-bit arithmetic inside the operator explains what float32 does not.
  void try_narrow_steps(size_t i, Judgement& result) {
    if (stored_[i] != DType::F16 && stored_[i] != DType::BF16) return;
    std::string reason;
    const auto spread = spread_with(stored_[i], i, reason);
    if (!spread) return;
    const Excess found = excess(doubles(exact_[i].tensor()), *spread, doubles(actual_[i].tensor()), stored_[i]);
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
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::Stopped) throw;
        failure = error.what();
      }
    }
    reason = failure;
    if (i >= floors.size() || floors[i].spread.size() != exact_[i].tensor().elements()) return std::nullopt;
    return widened_spread(floors[i].spread, options_.both_round);
  }

  const Region* region_;
  std::string_view op_;
  std::span<const Data> exact_, actual_;
  const JudgeOptions& options_;
  std::vector<DType> stored_;
  bool winograd_ = false;
  std::vector<NoiseFloor> floors_, narrow_;
  std::string failure_, narrow_failure_;
};

// The element's noise runs do not agree on it either, or came to what was found.
bool left_open(const Sampled& sampled, size_t i, int64_t found) {
  if (sampled.is_exact()) return false;
  return std::ranges::any_of(sampled.copies, [&](const Data& copy) {
    if (!copy) return true;
    const int64_t value = integers(copy.tensor()).at(i);
    return value == found || value != integers(sampled.exact.tensor()).at(i);
  });
}

// Integers that rounding before them may have changed: ties that fell, numbers that went to the next step.
ValueVerdict integers_after_run(const Data& exact, const Data& actual, const Sampled* sampled, const Metrics& metrics) {
  if (metrics.fine()) return ValueVerdict::Match;
  const bool comparable = sampled != nullptr && is_plain(actual) && actual.tensor().dtype() != DType::String &&
                          !sampled->is_exact() && sampled->exact.is_tensor() &&
                          sampled->exact.tensor().shape() == actual.tensor().shape();
  if (!comparable) return ValueVerdict::Differ;
  const auto wanted = integers(exact.tensor());
  const auto found = integers(actual.tensor());
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != wanted[i] && !left_open(*sampled, i, found[i])) return ValueVerdict::Differ;
  }
  return ValueVerdict::Explained;
}

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
    result.verdict = exact.is_tensor()                ? integers_after_run(exact, actual, sampled, metrics)
                     : fine_by_table(metrics, stored) ? ValueVerdict::Match
                                                      : ValueVerdict::Differ;
    return result;
  }
  std::vector<double> spread =
      sampled != nullptr && has_grid(stored) ? widened_spread(spread_of(*sampled), options.both_round) : std::vector<double>();
  if (spread.size() != exact.tensor().elements() || stored == DType::F64) {
    result.verdict = fine_by_table(metrics, stored) ? ValueVerdict::Match : ValueVerdict::Differ;
    result.note = "no noise floor";
    return result;
  }
  const Excess found = excess(doubles(exact.tensor()), spread, doubles(actual.tensor()), stored);
  set_excess(metrics, exact.tensor(), actual.tensor(), spread, found);
  if (explained_after_run(found, options.winograd && stored == DType::F32)) {
    result.verdict = is_plain_rounding(doubles(exact.tensor()), doubles(actual.tensor()), stored) ? ValueVerdict::Match
                                                                                                  : ValueVerdict::Explained;
  } else {
    result.verdict = found.e <= 5 && found.p <= 30 && !found.mask_is_off ? ValueVerdict::Suspicious : ValueVerdict::Differ;
  }
  return result;
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
