#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "unmoor/workbench/keep_curve.h"
#include "unmoor/workbench/keep_list.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

using nlohmann::json;

std::string part_text(double part) { return fmt::format("{:.2f}", part); }
std::string percent(double share) { return share >= 0.1 ? fmt::format("{:.0f} %", 100 * share) : fmt::format("{:.1f} %", 100 * share); }

// Rows of the table: 1, 2, 4, … points, those chosen, and all.
std::vector<size_t> told_counts(const KeepCurve& curve) {
  std::vector<size_t> counts;
  for (size_t count = 1; count < curve.points.size(); count *= 2) counts.push_back(count);
  counts.push_back(curve.chosen);
  counts.push_back(curve.points.size());
  std::ranges::sort(counts);
  const auto repeated = std::ranges::unique(counts);
  counts.erase(repeated.begin(), repeated.end());
  std::erase(counts, size_t{0});
  return counts;
}

// Whether the prediction holds: docs/precision.md.
constexpr double prediction_limit = 0.1;
constexpr size_t enough_elements = 500;

std::string doubt_of(const KeepCurve::Output& output) {
  if (output.applied < 0 || std::fabs(output.applied - output.predicted) <= prediction_limit) return "";
  const std::string off = fmt::format("'{}' was predicted to come to {} and came to {}: ", shortened(output.name, 30), part_text(output.predicted),
                                      part_text(output.applied));
  if (output.effective < enough_elements) {
    return fmt::format("{}its error is spread over about {:.0f} of {}; less than {} are a draw or two, and tell little", off, output.effective,
                       counted(output.elements, "element"), enough_elements);
  }
  return fmt::format("{}single errors come to {} of the whole, so they do not simply add up here", off, part_text(output.sum_over_whole));
}

}  // namespace

json KeepCurve::to_json() const {
  json curve = json::array();
  for (const Point& point : points) {
    curve.push_back({{"node", point.node}, {"op", point.op}, {"nodes", point.nodes}, {"share", measured(point.share)}, {"error", measured(point.left)}});
  }
  json told = json::array();
  for (const Output& output : outputs) {
    told.push_back({{"name", output.name},
                    {"elements", output.elements},
                    {"effective", measured(output.effective)},
                    {"rmse", measured(output.error)},
                    {"sum_over_whole", measured(output.sum_over_whole)},
                    {"predicted", measured(output.predicted)},
                    {"applied", output.applied < 0 ? json(nullptr) : measured(output.applied)}});
  }
  return {{"curve", std::move(curve)},
          {"outputs", std::move(told)},
          {"unavoidable", measured(unavoidable)},
          {"chosen", chosen},
          {"predicted", measured(predicted())},
          {"applied", applied() < 0 ? json(nullptr) : measured(applied())}};
}

std::string KeepCurve::text() const {
  std::string text = wrapped(fmt::format("keep in float32: {} round, {} of the error stays whatever is kept", counted(points.size(), "step"), part_text(unavoidable)));
  Table table({"steps kept", "error falls to", "the last of them", "op", "its share"}, "rrllr");
  for (const size_t count : told_counts(*this)) {
    const Point& last = points[count - 1];
    table.add({fmt::format("{}{}", count == chosen ? "> " : "", count), part_text(last.left), shortened(last.node, 30), shortened(last.op, 14), percent(last.share)});
  }
  text += table.text();
  if (applied() >= 0)
    text += fmt::format("with {} kept the error was to fall to {}, and falls to {}\n", counted(chosen, "step"), part_text(predicted()), part_text(applied()));
  for (const Output& output : outputs) {
    if (const std::string doubt = doubt_of(output); !doubt.empty()) text += wrapped(fmt::format("note: {}", doubt));
  }
  return text;
}

std::string KeepCurve::list() const {
  std::string text = "# Nodes to keep in float32, one a line, for --keep-float32. What begins with # is left out.\n";
  NodeNames written;
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    if (i == chosen) text += "# Kept so far: the next ones would bring less.\n";
    std::string head = fmt::format("# {}. {}: {} of the error; falls to {}", i + 1, printable(point.op), percent(point.share), part_text(point.left));
    std::ranges::replace(head, '\n', ' ');
    text += head + "\n";
    for (const std::string& node : point.nodes) {
      if (written.insert(node).second) text += fmt::format("{}{}\n", i < chosen ? "" : "# ", keep_list_line(node));
    }
  }
  return text;
}

}  // namespace unmoor
