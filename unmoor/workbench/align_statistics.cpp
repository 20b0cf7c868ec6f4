#include "unmoor/workbench/align_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/baseline.h"
#include "unmoor/workbench/noise/excess.h"
#include "unmoor/workbench/noise/grid.h"
#include "unmoor/workbench/noise/model_noise.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

bool is_off(ValueVerdict verdict) { return verdict == ValueVerdict::Differ || verdict == ValueVerdict::Suspicious; }

Metrics unknown_metrics(size_t elements) {
  Metrics m;
  for (double* const each : {&m.max_abs, &m.mean_abs, &m.max_rel, &m.mean_rel, &m.cosine, &m.rel_l2, &m.rmse, &m.nmse, &m.sqnr_db, &m.kl,
                             &m.ulp_max, &m.ulp_mean, &m.frac_over, &m.frac_over_1e3, &m.bias, &m.over})
    *each = unknown;
  m.elements = elements;
  return m;
}

size_t apart(size_t a, size_t b) { return a > b ? a - b : b - a; }

// √mean(s² + (0.3·u·y)²), the allowance of E; elements of a mask may be off by 4u.
std::optional<double> allowance(const Sampled& sampled, DType stored, bool both_round) {
  if (!has_grid(stored) || stored == DType::F64) return std::nullopt;
  const std::vector<double> spread = spread_of(sampled);
  if (spread.empty()) return std::nullopt;
  const auto exact = doubles(sampled.exact.tensor());
  const double mask = mask_size(exact);
  const Grid grid = grid_of(stored);
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!std::isfinite(exact[i])) continue;
    const double base = (std::fabs(exact[i]) < mask ? 0.3 : 4) * grid.unit() * exact[i];
    sum += spread[i] * spread[i] * (both_round ? 2 : 1) + base * base + 0.09 * grid.smallest() * grid.smallest();
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(std::sqrt(sum / static_cast<double>(count)));
}

// Integers, of which it is only known that they are not the same.
Judgement other_integers(Metrics metrics, const Sampled* sampled) {
  const bool open = sampled != nullptr && !sampled->is_exact();
  return {std::move(metrics), open ? ValueVerdict::Suspicious : ValueVerdict::Differ,
          open ? "other integers behind values that rounding moves; statistics do not tell whether these are ties" : ""};
}

Judgement judge_statistics(const ValueStatistics& expected, const ValueStatistics& actual, const Sampled* sampled) {
  const auto elements = static_cast<size_t>(expected.type.shape.elements());
  Judgement result{unknown_metrics(elements), ValueVerdict::Differ};
  const bool both_float = is_float(expected.type.dtype) && is_float(actual.type.dtype);
  if (expected.type.shape != actual.type.shape)
    result.metrics.problem = cat("the shape is ", actual.type.shape, ", not ", expected.type.shape);
  else if (!both_float && expected.type.dtype != actual.type.dtype)
    result.metrics.problem = cat("the dtype is ", actual.type.dtype, ", not ", expected.type.dtype);
  if (!result.metrics.problem.empty()) return result;
  if (expected.type.dtype == actual.type.dtype && expected.hash == actual.hash) {
    Metrics same;
    same.elements = elements;
    same.sqnr_db = std::numeric_limits<double>::infinity();
    return {std::move(same), ValueVerdict::Match};
  }
  Metrics& m = result.metrics;
  m.class_mismatch = apart(expected.nan, actual.nan) + apart(expected.positive_infinite, actual.positive_infinite) +
                     apart(expected.negative_infinite, actual.negative_infinite);
  if (!both_float) return other_integers(std::move(m), sampled);
  if (m.class_mismatch > 0) return result;
  m.rmse = estimated_distance(expected, actual);
  m.rel_l2 = m.rmse / std::max(expected.rms, std::numeric_limits<double>::min());
  m.nmse = m.rel_l2 * m.rel_l2;
  m.sqnr_db = -20 * std::log10(m.rel_l2);
  m.bias = actual.mean - expected.mean;
  const bool both_round = expected.type.dtype != DType::F64;
  const auto allowed = sampled == nullptr ? std::nullopt : allowance(*sampled, actual.type.dtype, both_round);
  if (!allowed || *allowed == 0) {
    result.verdict = m.rel_l2 <= output_limit(actual.type.dtype) ? ValueVerdict::Match : ValueVerdict::Differ;
    result.note = "no noise floor";
    return result;
  }
  m.excess_e = m.rmse / *allowed;
  result.verdict = *m.excess_e <= 3 ? ValueVerdict::Explained : *m.excess_e <= 5 ? ValueVerdict::Suspicious : ValueVerdict::Differ;
  return result;
}

class StatisticsAlignment {
 public:
  StatisticsAlignment(const StatisticsSide& reference, const StatisticsSide& target, const NamedData& inputs, const AlignOptions& options)
      : reference_(reference), target_(target), inputs_(inputs), options_(options) {
    for (const ShownStatistics& each : reference.values) expected_[each.name] = &each.statistics;
  }

  AlignResult run() {
    result_.reference = reference_.name;
    result_.target = target_.name;
    result_.kernels_alone = false;
    start_noise();
    for (size_t i = 0; i < target_.values.size(); ++i) {
      if (options_.progress) options_.progress("values", i, target_.values.size());
      judge_value(target_.values[i]);
    }
    judge_outputs();
    conclude();
    return std::move(result_);
  }

 private:
  void start_noise() {
    if (options_.model == nullptr) return;
    try {
      graph_.emplace(*options_.model, inputs_);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      result_.without_noise = error.what();
      return;
    }
    std::map<std::string, DType, std::less<>> stored;
    for (const ShownStatistics& each : target_.values) stored[each.name] = each.statistics.type.dtype;
    constexpr size_t copies = 4;
    noise_.emplace(*graph_, inputs_, stored, NoiseOptions{DType::F32, copies, options_.seed}, target_.stored_besides);
  }

  std::optional<Sampled> sampled(const std::string& name) { return noise_ ? noise_->take(name) : std::nullopt; }

  void judge_value(const ShownStatistics& shown) {
    const ValueStatistics& actual = shown.statistics;
    AlignedValue value{shown.name, shown.node, shown.op, actual.type.dtype};
    const auto id = graph_ && value.node.empty() ? graph_->find(value.name) : std::nullopt;
    if (const auto maker = id ? graph_->maker(*id) : std::nullopt) {
      const Node& node = graph_->graph().node(*maker);
      value.node = node.origin.name.empty() ? node.name : node.origin.name;
      value.op = node.origin.op.empty() ? node.op : node.origin.op;
    }
    value.nan = actual.nan > 0;
    value.finite = actual.nan + actual.positive_infinite + actual.negative_infinite == 0;
    const auto noise = sampled(shown.name);
    if (const auto expected = expected_.find(shown.name); expected != expected_.end())
      take(value, judge_statistics(*expected->second, actual, noise ? &*noise : nullptr));
    else
      result_.hidden.push_back(value.node.empty() ? value.name : value.node);
    result_.values.push_back(std::move(value));
  }

  void take(AlignedValue& value, Judgement found) const {
    if (options_.baseline != nullptr) options_.baseline->weigh_run(value.name, value.dtype, found);
    value.entire = std::move(found.metrics);
    value.verdict = value.entire_verdict = found.verdict;
    value.note = std::move(found.note);
  }

  // Those that both sides have in full.
  void judge_outputs() {
    for (const auto& [name, data] : target_.outputs) {
      AlignedValue value{name, "", "", data.is_tensor() ? data.tensor().dtype() : DType::F32};
      value.finite = all_finite(data);
      const auto expected = reference_.outputs.find(name);
      if (expected != reference_.outputs.end()) {
        const auto noise = sampled(name);
        JudgeOptions judging{options_.tolerance};
        judging.both_round = expected->second.is_tensor() && expected->second.tensor().dtype() != DType::F64;
        take(value, judge_after_run(expected->second, data, noise ? &*noise : nullptr, judging));
      }
      result_.outputs.push_back(std::move(value));
    }
  }

  void conclude() {
    const auto compared = [](const AlignedValue& value) { return value.entire.has_value(); };
    if (std::ranges::none_of(result_.values, compared) && std::ranges::none_of(result_.outputs, compared))
      fail(ErrorKind::InvalidArgument, reference_.name, " and ", target_.name, " show no value of the same name");
    if (noise_ && result_.without_noise.empty()) result_.without_noise = noise_->unknown();
    if (options_.baseline != nullptr) options_.baseline->attach(result_);
    bool off = false;
    bool explained = false;
    for (const auto* list : {&result_.values, &result_.outputs}) {
      for (const AlignedValue& value : *list) {
        off = off || is_off(value.verdict);
        explained = explained || value.verdict == ValueVerdict::Explained || value.verdict == ValueVerdict::AsBaseline;
      }
    }
    for (const AlignedValue& value : result_.values) {
      const std::string& label = value.node.empty() ? value.name : value.node;
      if (is_off(value.verdict) && result_.first_divergent.empty()) result_.first_divergent = label;
      const bool other_class = !value.finite && value.entire_verdict != ValueVerdict::AsBaseline && (!value.entire || value.nan || value.entire->class_mismatch > 0);
      if (other_class && result_.first_nonfinite.empty()) {
        result_.first_nonfinite = label;
        result_.nonfinite_origin = "as far as statistics tell";
      }
    }
    result_.verdict = off ? "differ" : explained ? "explained" : "match";
  }

  const StatisticsSide& reference_;
  const StatisticsSide& target_;
  const NamedData& inputs_;
  const AlignOptions& options_;
  std::map<std::string, const ValueStatistics*, std::less<>> expected_;
  std::optional<ModelGraph> graph_;
  std::optional<WholeModelNoise> noise_;
  AlignResult result_;
};

}  // namespace

AlignResult align_statistics(const StatisticsSide& reference, const StatisticsSide& target, const NamedData& inputs, const AlignOptions& options) {
  return StatisticsAlignment(reference, target, inputs, options).run();
}

std::vector<std::string> statistics_limits() {
  return {"the size of an error is estimated, to about 6 %",
          "which element is off: one wrong element is seen only if it alone is larger than what rounding does to all together",
          "where NaN and infinities lie: only how many there are",
          "a kernel alone, and so a bad kernel from what was already wrong before it; and causes",
          "ties of integers: other indices of equal values look like other integers"};
}

std::string statistics_text(const AlignResult& result) {
  std::vector<const AlignedValue*> worst;
  for (const AlignedValue& value : result.values) {
    if (value.entire && value.verdict != ValueVerdict::Match) worst.push_back(&value);
  }
  const auto badness = [](const AlignedValue* value) {
    const Metrics& m = *value->entire;
    return std::pair(is_off(value->verdict), m.excess_e.value_or(std::isnan(m.rel_l2) ? 1e9 : m.rel_l2));
  };
  std::ranges::stable_sort(worst, [&](const AlignedValue* a, const AlignedValue* b) { return badness(a) > badness(b); });
  Table table({"furthest off, entire", "op", "rel L2", "E", "verdict"}, "llrrl");
  constexpr size_t most = 8;
  for (size_t i = 0; i < std::min(worst.size(), most); ++i) {
    const AlignedValue& value = *worst[i];
    const Metrics& m = *value.entire;
    const std::string error = !m.problem.empty() ? "shape" : m.class_mismatch > 0 ? "NaN/Inf" : std::isnan(m.rel_l2) ? "other" : fmt::format("{:.2g}", m.rel_l2);
    table.add({shortened(value.node.empty() ? value.name : value.node, 34), shortened(value.op, 16), error,
               m.excess_e ? fmt::format("{:.2g}", *m.excess_e) : "-", std::string(name(value.verdict))});
  }
  std::string text = worst.empty() ? "" : table.text();
  text += "statistics do not show:\n";
  for (const std::string& limit : statistics_limits()) text += wrapped(fmt::format("- {}", limit));
  return text;
}

}  // namespace unmoor
