#include "unmoor/workbench/baseline.h"

#include <fmt/format.h>

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/workbench/noise/excess.h"

namespace unmoor {
namespace {

bool is_off(ValueVerdict verdict) { return verdict == ValueVerdict::Differ || verdict == ValueVerdict::Suspicious; }

// A run without kernels to run alone: its values are judged by its own values above them.
class WithoutSteps : public Runner {
 public:
  explicit WithoutSteps(Runner& runner) : runner_(runner) {}
  std::string name() const override { return runner_.name(); }
  std::vector<ValueInfo> inputs() const override { return runner_.inputs(); }
  std::vector<ValueInfo> outputs() const override { return runner_.outputs(); }
  std::vector<ValueInfo> values() const override { return runner_.values(); }
  NamedData run(const NamedData& inputs, Observer* observer) override { return runner_.run(inputs, observer); }
  std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds) override {
    return runner_.time_runs(inputs, count, seconds);
  }
  PlanInfo plan() override { return runner_.plan(); }

 private:
  Runner& runner_;
};

AlignResult align_baseline(Runner& reference, Runner& runner, const std::set<std::string>& shown, const NamedData& inputs, AlignOptions options) {
  options.nodes.clear();
  options.ops.clear();
  options.causes = false;
  options.reproductions.clear();
  options.baseline = nullptr;
  options.selects = [&shown, chosen = std::move(options.selects)](const std::string& name) {
    return shown.contains(name) && (!chosen || chosen(name));
  };
  if (options.progress) {
    options.progress = [told = std::move(options.progress)](const std::string& what, size_t done, size_t total) {
      told(cat("baseline: ", what), done, total);
    };
  }
  WithoutSteps alone(runner);
  return align(reference, alone, inputs, options);
}

bool is_near(double target, double baseline) { return target <= baseline_factor * baseline; }

// By the errors themselves, where no excess is known of both: then the baseline must be off itself.
bool is_as_large(const Metrics& target, const Metrics& baseline) {
  return is_near(target.rel_l2, baseline.rel_l2) && is_near(target.max_abs, baseline.max_abs) && is_near(target.frac_over, baseline.frac_over);
}

// Whether the baseline has another class than the reference wherever the target has.
bool is_shared(const std::vector<bool>& target, const std::vector<bool>& baseline) {
  if (target.empty() || target.size() != baseline.size()) return false;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] && !baseline[i]) return false;
  }
  return true;
}

struct Errors {
  const Metrics& metrics;
  bool is_off;
};

// The rule of docs/precision.md. `limits` are those up to which rounding explains an error.
bool is_as_baseline(const Metrics& target, const Errors& baseline, ExcessLimits limits) {
  const Metrics& base = baseline.metrics;
  if (!target.problem.empty() || !base.problem.empty()) return target.problem == base.problem;
  if (target.class_mismatch > 0)
    return is_shared(target.mismatched, base.mismatched) && (target.over <= 1 || is_as_large(target, base));
  const bool far_e = target.excess_e && *target.excess_e > limits.e;
  const bool far_p = target.excess_p && *target.excess_p > limits.p;
  if ((far_e || far_p) && base.excess_e)
    return (!far_e || is_near(*target.excess_e, *base.excess_e)) && (!far_p || (base.excess_p && is_near(*target.excess_p, *base.excess_p)));
  return baseline.is_off && is_as_large(target, base);
}

std::string told(const Metrics& metrics) {
  if (!metrics.problem.empty()) return metrics.problem;
  if (metrics.class_mismatch > 0) return fmt::format("{} of {} elements NaN or infinite on one side only", metrics.class_mismatch, metrics.elements);
  if (!metrics.excess_e) return fmt::format("relative L2 error {:.2g}", metrics.rel_l2);
  const std::string e = fmt::format("E {:.2g}", *metrics.excess_e);
  return metrics.excess_p ? fmt::format("{}, P {:.2g}", e, *metrics.excess_p) : e;
}

using Values = std::map<std::string, const AlignedValue*, std::less<>>;

const AlignedValue* find(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : found->second;
}

void add_note(Judgement& judged, const std::string& note) { judged.note += cat(judged.note.empty() ? "" : "; ", note); }

void weigh(const Metrics& metrics, ValueVerdict verdict, ExcessLimits limits, Judgement& judged) {
  const bool as_baseline = is_as_baseline(judged.metrics, {metrics, is_off(verdict)}, limits);
  if (as_baseline) judged.verdict = ValueVerdict::AsBaseline;
  add_note(judged, cat(as_baseline ? "the baseline is off as much: " : "beyond the baseline: ", told(metrics), as_baseline ? "" : " there"));
}

}  // namespace

Baseline::Baseline(Runner& reference, Runner& runner, const std::set<std::string>& shown, const NamedData& inputs, AlignOptions options)
    : Baseline(align_baseline(reference, runner, shown, inputs, std::move(options)), inputs) {}

Baseline::Baseline(AlignResult aligned, const NamedData& inputs) : aligned_(std::move(aligned)) {
  for (const auto* list : {&aligned_.values, &aligned_.outputs}) {
    for (const AlignedValue& value : *list) {
      if (value.single) single_[value.name] = &value;
      if (value.entire) entire_[value.name] = &value;
      known_.insert(value.name);
    }
  }
  for (const auto& [name, data] : inputs) known_.insert(name);
}

void Baseline::weigh_kernel(std::span<const std::string> reads, const std::string& value, DType stored, Judgement& judged) const {
  if (!is_off(judged.verdict)) return;
  const AlignedValue* const base = find(single_, value);
  const auto is_known = [this](const std::string& name) { return name.empty() || known_.contains(name); };
  if (base == nullptr) return add_note(judged, "the baseline does not show it: judged without");
  if (!std::ranges::all_of(reads, is_known)) return add_note(judged, "the baseline does not show what it is made of: judged without");
  if (base->dtype != stored) return add_note(judged, cat("the baseline stores ", base->dtype, ": judged without"));
  weigh(*base->single, base->single_verdict, explained_limits(stored), judged);
}

void Baseline::weigh_run(const std::string& value, DType stored, Judgement& judged) const {
  if (!is_off(judged.verdict)) return;
  const AlignedValue* const base = find(entire_, value);
  if (base == nullptr) return add_note(judged, "the baseline does not show it: judged without");
  if (base->dtype != stored) return add_note(judged, cat("the baseline stores ", base->dtype, ": judged without"));
  weigh(*base->entire, base->entire_verdict, explained_after_run_limits, judged);
}

void Baseline::attach(AlignResult& result) const {
  result.baseline = aligned_.target;
  for (auto* list : {&result.values, &result.outputs}) {
    for (AlignedValue& value : *list) {
      const AlignedValue* const single = find(single_, value.name);
      const AlignedValue* const entire = find(entire_, value.name);
      BaselineErrors errors;
      if (single != nullptr && single->dtype == value.dtype) {
        errors.single = single->single;
        errors.single_verdict = single->single_verdict;
      }
      if (entire != nullptr && entire->dtype == value.dtype) {
        errors.entire = entire->entire;
        errors.entire_verdict = entire->entire_verdict;
      }
      if (errors.single || errors.entire) value.baseline = std::move(errors);
    }
  }
}

}  // namespace unmoor
