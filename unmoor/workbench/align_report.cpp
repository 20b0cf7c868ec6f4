#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>

#include "unmoor/workbench/align.h"

namespace unmoor {
namespace {

using nlohmann::json;

json cause_json(const Cause& cause) {
  json hypotheses = json::array();
  for (const Hypothesis& each : cause.hypotheses) {
    hypotheses.push_back({{"id", each.id}, {"bits", measured(each.bits)}, {"excess", measured(each.excess)}});
  }
  return {{"id", cause.id},
          {"text", cause.text},
          {"advice", cause.advice},
          {"bits", measured(cause.bits)},
          {"excess", measured(cause.excess)},
          {"also", cause.also},
          {"with", cause.with.empty() ? json(nullptr) : json(cause.with)},
          {"hypotheses", std::move(hypotheses)}};
}

json value_json(const AlignedValue& value, bool by_noise) {
  const auto side = [&value, by_noise](const std::optional<Metrics>& metrics, ValueVerdict verdict) {
    if (!metrics) return json(nullptr);
    json shown = metrics_json(*metrics);
    if (metrics->problem.empty())
      shown["excess"] = by_noise ? measured(shown_excess(*metrics, verdict, value.dtype)) : json(nullptr);
    shown["verdict"] = name(verdict);
    return shown;
  };
  json result{{"name", value.name},
          {"node", value.node},
          {"op", value.op},
          {"dtype", name(value.dtype)},
          {"single", side(value.single, value.single_verdict)},
          {"entire", side(value.entire, value.entire_verdict)},
          {"verdict", name(value.verdict)},
          {"note", value.note},
          {"cause", value.cause ? cause_json(*value.cause) : json(nullptr)},
          {"pattern", value.pattern ? json{{"fired", value.pattern->fired}, {"text", value.pattern->text}} : json(nullptr)},
          {"replay", value.replay ? json{{"folder", value.replay->folder}, {"commands", value.replay->commands}} : json(nullptr)}};
  if (value.baseline) {
    result["baseline_single"] = side(value.baseline->single, value.baseline->single_verdict);
    result["baseline_entire"] = side(value.baseline->entire, value.baseline->entire_verdict);
  }
  return result;
}

// How bad a verdict is, and how far beyond rounding, to sort by.
std::pair<int, double> badness(const AlignedValue& value) {
  constexpr std::array rank{0, 1, 4, 5, 2, -1, 3};  // In the order of ValueVerdict.
  const Metrics& metrics = *value.single;
  const double excess = std::max(metrics.excess_e.value_or(0) / 3, metrics.excess_p.value_or(0) / 16);
  return {rank.at(static_cast<size_t>(value.verdict)), metrics.excess_e ? excess : std::min(metrics.over, 1.0) / 1e3};
}

// The pictures as the JSON holds them, by value: the worst one whole, the next ones small, so that together they have at most 38,000
// cells, 40 kB gzipped (report/DATA.md).
std::map<const AlignedValue*, json> planes_json(const std::vector<AlignedValue>& values) {
  constexpr size_t most_cells = 38'000;
  constexpr size_t small_cells = 2048;
  std::vector<const AlignedValue*> drawn;
  for (const AlignedValue& value : values) {
    if (value.plane && value.single) drawn.push_back(&value);
  }
  std::ranges::stable_sort(drawn, [](const AlignedValue* a, const AlignedValue* b) { return badness(*a) > badness(*b); });
  std::map<const AlignedValue*, json> planes;
  size_t left = most_cells;
  for (const AlignedValue* const value : drawn) {
    const size_t cells = value == drawn[0] ? left : small_cells;
    if (left < cells) break;
    const ErrorPlane plane = shrunk(*value->plane, cells);
    left -= plane.rows * plane.columns;
    planes[value] = plane_json(plane);
  }
  return planes;
}

std::string error_text(const std::optional<Metrics>& metrics) {
  if (!metrics) return "-";
  if (!metrics->problem.empty()) return "shape";
  if (metrics->class_mismatch > 0) return "NaN/Inf";
  return fmt::format("{:.2g}", metrics->rel_l2);
}

std::string excess_text(const std::optional<Metrics>& metrics, std::optional<double> Metrics::*which) {
  return metrics && ((*metrics).*which) ? fmt::format("{:.2g}", *((*metrics).*which)) : "-";
}

std::string baseline_excess(const AlignedValue& value, std::optional<Metrics> BaselineErrors::*side) {
  return value.baseline ? excess_text((*value.baseline).*side, &Metrics::excess_e) : "-";
}

std::string outputs_table(const std::vector<AlignedValue>& outputs, bool three) {
  std::vector<std::string> heads{"output", "dtype", "rel L2", "max abs", "E", "P", "verdict"};
  if (three) heads.insert(heads.end() - 1, "base E");
  Table table(heads, three ? "llrrrrrl" : "llrrrrl");
  for (const auto& value : outputs) {
    if (!value.entire) continue;  // A dump shows more than outputs, and the reference only those.
    const bool known = value.entire->problem.empty();
    std::vector<std::string> row{shortened(value.name, three ? 20 : 26), std::string(name(value.dtype)), error_text(value.entire),
                                 known ? fmt::format("{:.2g}", value.entire->max_abs) : shortened(value.entire->problem, 20),
                                 excess_text(value.entire, &Metrics::excess_e), excess_text(value.entire, &Metrics::excess_p),
                                 std::string(name(value.verdict))};
    if (three) row.insert(row.end() - 1, baseline_excess(value, &BaselineErrors::entire));
    table.add(row);
  }
  return table.text();
}

std::string kernels_table(const std::vector<AlignedValue>& values) {
  std::vector<const AlignedValue*> worst;
  for (const auto& value : values) {
    if (value.single) worst.push_back(&value);
  }
  if (worst.empty()) return "";
  std::ranges::stable_sort(worst, [](const AlignedValue* a, const AlignedValue* b) { return badness(*a) > badness(*b); });
  // The baseline's E stands where the entire error does without one.
  const bool three = std::ranges::any_of(values, [](const AlignedValue& value) { return value.baseline.has_value(); });
  Table table({"worst kernels alone", "op", "rel L2", "E", "P", three ? "base E" : "entire", "verdict"}, "llrrrrl");
  std::string notes;
  for (size_t i = 0; i < std::min<size_t>(worst.size(), 8); ++i) {
    const AlignedValue& value = *worst[i];
    table.add({shortened(value.node, 26), shortened(value.op, 14), error_text(value.single),
               excess_text(value.single, &Metrics::excess_e), excess_text(value.single, &Metrics::excess_p),
               three ? baseline_excess(value, &BaselineErrors::single) : error_text(value.entire), std::string(name(value.verdict))});
    if (!value.note.empty() && value.verdict != ValueVerdict::Match && value.verdict != ValueVerdict::Explained)
      notes += wrapped(fmt::format("{}: {}", shortened(value.node, 40), shortened(value.note, 300)));
  }
  return table.text() + notes;
}

std::string times_text(double times) { return times < 100 ? fmt::format("{:.2g}", times) : fmt::format("{:.0f}", times); }

std::string cause_text(const Cause& cause) {
  std::string told = fmt::format(" {} With that ({}{}) the error is {} times what rounding explains. {}", cause.text, cause.id,
                                 cause.with.empty() ? "" : " and " + cause.with, times_text(cause.excess), cause.advice);
  if (!cause.also.empty()) told += fmt::format(" These inputs cannot tell it from {}.", fmt::join(cause.also, ", "));
  return told;
}

// What was found about values that are off, each as a colleague would tell it.
std::string findings_text(const std::vector<AlignedValue>& values) {
  constexpr size_t most = 5;
  std::string text;
  size_t told = 0, left = 0;
  for (const AlignedValue& value : values) {
    if (!value.cause && !value.pattern && !value.replay) continue;
    if (told == most && !value.cause) {
      ++left;
      continue;
    }
    ++told;
    const Metrics& metrics = value.single ? *value.single : *value.entire;
    std::string line = fmt::format("{} '{}': ", shortened(value.op, 30), shortened(value.node, 60));
    if (metrics.excess_e) line += fmt::format("off by {} times what rounding explains", times_text(*metrics.excess_e));
    else line += "off";
    line += value.pattern ? fmt::format(", {}.", value.pattern->text) : ".";
    if (value.cause) line += cause_text(*value.cause);
    text += wrapped(line);
    if (!value.replay) continue;
    for (const std::string& command : value.replay->commands) text += fmt::format("    {}\n", command);
  }
  if (left > 0) text += fmt::format("{} more: --json and --html have them\n", counted(left, "finding"));
  return text;
}

// What became of the target's errors by the baseline.
std::string baseline_text(const AlignResult& result) {
  const auto is_shared = [](const AlignedValue& value) { return value.verdict == ValueVerdict::AsBaseline; };
  const auto is_alone = [](const AlignedValue& value) { return !value.baseline && (value.single || value.entire); };
  const auto shared = std::ranges::count_if(result.values, is_shared);
  const auto outputs = std::ranges::count_if(result.outputs, is_shared);
  std::string text = fmt::format("baseline {}: ", result.baseline);
  if (shared + outputs == 0) text += "it is not off where the target is";
  else text += fmt::format("{} and {} are off, but by no more than there, and count as explained", counted(static_cast<size_t>(shared), "value"), counted(static_cast<size_t>(outputs), "output"));
  if (const auto alone = std::ranges::count_if(result.values, is_alone); alone > 0)
    text += fmt::format("; of {} of {} values it says nothing: they are judged without it", alone, result.values.size());
  return wrapped(text);
}

}  // namespace

json AlignResult::to_json() const {
  json result{{"reference", reference},           {"target", target},         {"verdict", verdict},
              {"fallback_nodes", fallback_nodes}, {"outputs", json::array()}, {"values", json::array()}};
  result["first_divergent"] = first_divergent.empty() ? json(nullptr) : json(first_divergent);
  result["first_nonfinite"] = first_nonfinite.empty() ? json(nullptr) : json(first_nonfinite);
  result["nonfinite_origin"] = nonfinite_origin;
  result["baseline"] = baseline.empty() ? json(nullptr) : json(baseline);
  const Tolerance shown = tolerance.value_or(default_tolerance(DType::F32));
  result["atol"] = shown.absolute;
  result["rtol"] = shown.relative;
  result["atol_scaled_by_rms"] = shown.scaled;
  for (const auto& value : outputs) result["outputs"].push_back(value_json(value, !tolerance));
  std::map<const AlignedValue*, json> planes = planes_json(values);
  const auto drawn = std::ranges::count_if(values, [](const AlignedValue& value) { return value.plane.has_value(); });
  result["planes_left_out"] = static_cast<size_t>(drawn) - planes.size();
  for (const auto& value : values) {
    result["values"].push_back(value_json(value, !tolerance));
    if (const auto plane = planes.find(&value); plane != planes.end()) result["values"].back()["plane"] = std::move(plane->second);
  }
  result["hidden"] = hidden;
  result["without_noise"] = without_noise;
  result["floor_ms"] = measured(floor_ms);
  for (size_t i = 0; i < outputs.size(); ++i) {
    result["outputs"][i]["uncertainty"] =
        outputs[i].uncertainty > 0 ? measured(outputs[i].uncertainty / std::numbers::sqrt2) : json(nullptr);
  }
  return result;
}

std::string AlignResult::text() const {
  std::string text;
  const char* const what = kernels_alone ? "kernel" : "value";
  const size_t bad = count(ValueVerdict::Differ) + count(ValueVerdict::Suspicious);
  const std::string tally =
      values.empty() ? "only outputs were shown"
                     : fmt::format("{} {}s match, {} are explained by rounding", count(ValueVerdict::Match), what, count(ValueVerdict::Explained));
  if (verdict == "differ" && values.empty()) {
    text += wrapped(fmt::format("differ: outputs of {} are off by more than rounding explains; {}", target, tally));
  } else if (verdict == "differ" && bad == 0) {
    text += wrapped(fmt::format("differ: outputs of {} are off by more than rounding explains, though no {} alone is; {}", target, what, tally));
  } else if (verdict == "differ") {
    text += wrapped(fmt::format("differ: {} of {} {} more than rounding explains ({} suspicious); {}", counted(bad, what), target,
                                bad == 1 ? "is off by" : "are off by", count(ValueVerdict::Suspicious), tally));
  } else if (count(ValueVerdict::AsBaseline) > 0 || std::ranges::count(outputs, ValueVerdict::AsBaseline, &AlignedValue::verdict) > 0) {
    text += wrapped(fmt::format("{}: {} is off only where {} is as far off from {}; {}", verdict, target, baseline, reference, tally));
  } else {
    text += wrapped(fmt::format("{}: {} agrees with {}; {}", verdict, target, reference, tally));
  }
  if (!baseline.empty()) text += baseline_text(*this);
  const auto alone = std::ranges::count_if(values, [](const AlignedValue& value) { return value.single.has_value(); });
  if (const auto rest = std::ssize(values) - alone; kernels_alone && rest > 0) {
    text += fmt::format("{} of {} values were not run alone: in bodies, fused, or not asked for\n", rest, values.size());
  }
  if (const size_t open = count(ValueVerdict::Undefined); open > 0)
    text += fmt::format("{} differ only where the specification leaves the result open\n", counted(open, "value"));
  if (fallback_nodes > 0)
    text += fmt::format("note: {} fell back to the host: its kernels were compared there\n", counted(fallback_nodes, "node"));
  if (!without_noise.empty() && no_noise)
    text += wrapped(fmt::format("note: no noise could be made, so everything is judged by tolerance: {}", shortened(without_noise, 240)));
  else if (!without_noise.empty())
    text += fmt::format("note: no noise model for {}: what depends on it is judged by tolerance\n", shortened(without_noise, 60));
  if (!first_divergent.empty())
    text += fmt::format("first divergent {}: {}\n", kernels_alone ? "node" : "value", shortened(first_divergent, 200));
  if (!first_nonfinite.empty())
    text += fmt::format("first node that is not finite: {} ({})\n", shortened(first_nonfinite, 200),
                        shortened(nonfinite_origin, 200));
  text += outputs_table(outputs, !baseline.empty());
  // Rounding to nearest spreads less than stochastic rounding, by √2.
  for (const AlignedValue& value : outputs) {
    if (value.uncertainty > 0)
      text += wrapped(fmt::format("stored as {} '{}' is only defined to ±{:.1g}", name(value.dtype), shortened(value.name, 40),
                                  value.uncertainty / std::numbers::sqrt2));
  }
  return text + kernels_table(values) + findings_text(values);
}

}  // namespace unmoor
