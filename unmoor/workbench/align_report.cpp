#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/workbench/align.h"

namespace unmoor {
namespace {

using nlohmann::json;

json value_json(const AlignedValue& value) {
  return {{"name", value.name}, {"node", value.node}, {"op", value.op}, {"dtype", name(value.dtype)},
          {"single", value.single ? metrics_json(*value.single) : json(nullptr)},
          {"entire", value.entire ? metrics_json(*value.entire) : json(nullptr)}, {"verdict", value.verdict}, {"cause", nullptr}};
}

std::string over_text(const std::optional<Metrics>& metrics) {
  if (!metrics) return "-";
  if (!metrics->problem.empty()) return "shape";
  if (metrics->class_mismatch > 0) return "NaN/Inf";
  return metrics->over == 0 ? "0" : fmt::format("{:.2g}", metrics->over);
}

std::string error_text(const std::optional<Metrics>& metrics) {
  return metrics && metrics->problem.empty() ? fmt::format("{:.2g}", metrics->rel_l2) : "-";
}

}  // namespace

json AlignResult::to_json() const {
  json result{{"reference", reference}, {"target", target}, {"verdict", verdict}, {"fallback_nodes", fallback_nodes},
              {"outputs", json::array()}, {"values", json::array()}};
  result["first_divergent"] = first_divergent.empty() ? json(nullptr) : json(first_divergent);
  result["first_nonfinite"] = first_nonfinite.empty() ? json(nullptr) : json(first_nonfinite);
  result["nonfinite_origin"] = nonfinite_origin;
  const Tolerance shown = tolerance.value_or(default_tolerance(DType::F32));
  result["atol"] = shown.absolute;
  result["rtol"] = shown.relative;
  result["atol_scaled_by_rms"] = shown.scaled;
  for (const auto& value : outputs) result["outputs"].push_back(value_json(value));
  for (const auto& value : values) result["values"].push_back(value_json(value));
  result["hidden"] = hidden;
  return result;
}

std::string AlignResult::text() const {
  std::string text;
  const auto count = [this](std::string_view which) {
    return std::ranges::count_if(values, [which](const AlignedValue& value) { return value.verdict == which; });
  };
  const auto alone = std::ranges::count_if(values, [](const AlignedValue& value) { return value.single.has_value(); });
  if (verdict == "match") {
    text += fmt::format("match: {} agrees with {}", target, reference);
    text += kernels_alone ? fmt::format("; {} kernels alone are within tolerance\n", count("match")) : fmt::format("; {} values are within tolerance\n", count("match"));
  } else if (kernels_alone) {
    text += fmt::format("differ: {} kernels of {} are outside of tolerance alone, {} within\n", count("differ"), target, count("match"));
  } else {
    text += fmt::format("differ: {} values of {} are outside of tolerance, {} within\n", count("differ"), target, count("match"));
  }
  if (const auto rest = std::ssize(values) - alone; kernels_alone && rest > 0) {
    text += fmt::format("{} of {} values were not run alone: in bodies, fused, or not asked for\n", rest, values.size());
  }
  if (fallback_nodes > 0) text += fmt::format("note: {} fell back to the host: its kernels were compared there\n", counted(fallback_nodes, "node"));
  if (!first_divergent.empty()) text += fmt::format("first divergent {}: {}\n", kernels_alone ? "node" : "value", shortened(first_divergent, 200));
  if (!first_nonfinite.empty()) text += fmt::format("first node that is not finite: {} ({})\n", shortened(first_nonfinite, 200), shortened(nonfinite_origin, 200));
  Table outs({"output", "dtype", "rel L2", "max abs", "cosine", "verdict"}, "llrrrl");
  for (const auto& value : outputs) {
    const bool known = value.entire && value.entire->problem.empty();
    outs.add({shortened(value.name, 30), std::string(name(value.dtype)), error_text(value.entire),
              known ? fmt::format("{:.2g}", value.entire->max_abs) : value.entire ? value.entire->problem : "-",
              known ? fmt::format("{:.6f}", value.entire->cosine) : "-", value.verdict});
  }
  text += outs.text();
  std::vector<const AlignedValue*> worst;
  for (const auto& value : values) {
    if (value.single) worst.push_back(&value);
  }
  std::ranges::stable_sort(worst, [](const AlignedValue* a, const AlignedValue* b) { return a->single->over > b->single->over; });
  if (verdict == "differ") {
    std::stable_partition(worst.begin(), worst.end(), [](const AlignedValue* value) { return value->verdict == "differ"; });
  }
  Table table({"worst kernels alone", "op", "rel L2", "of tol.", "entire", "verdict"}, "llrrrl");
  for (size_t i = 0; i < std::min<size_t>(worst.size(), 8); ++i) {
    table.add({shortened(worst[i]->node, 30), shortened(worst[i]->op, 18), error_text(worst[i]->single), over_text(worst[i]->single),
               error_text(worst[i]->entire), worst[i]->verdict});
  }
  return worst.empty() ? text : text + table.text();
}

}  // namespace unmoor
