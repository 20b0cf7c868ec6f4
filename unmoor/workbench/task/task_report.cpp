#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/workbench/result.h"
#include "unmoor/workbench/task/task.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t told_flips = 5;

std::string shown(const std::optional<double>& value) { return value ? short_number(*value) : "-"; }

std::string difference_of(const TaskNumber& number) {
  return number.reference && number.target ? fmt::format("{:+.3g}", *number.target - *number.reference) : "-";
}

// What numbers are held to, a line each.
std::string gates_text(const std::vector<TaskNumber>& numbers) {
  std::string text;
  for (const TaskNumber& number : numbers) {
    if (!number.limit) continue;
    const std::string limit = number.between ? fmt::format("is to be at least {:g}", *number.limit) : fmt::format("is to fall by {:g} at most", -*number.limit);
    text += fmt::format("gate: {} {}: {}\n", number.name, limit, number.passed() ? "it is kept" : "it FAILS");
  }
  return text;
}

std::string flips_text(const TaskResult& result) {
  if (result.answers == 0) return "";
  std::string text = wrapped(fmt::format("{} of {} other on the target; {} of them near a threshold: with a tenth of the usual margin or less", result.flip_count,
                                         counted(result.answers, "answer"), result.near_count));
  if (result.flips.empty()) return text;
  Table table({"answer that flips", "row", "from", "to", "margin", "error", ""}, "lrrrrrl");
  for (size_t i = 0; i < std::min(result.flips.size(), told_flips); ++i) {
    const TaskFlip& flip = result.flips[i];
    table.add({shortened(flip.sample, 26), std::to_string(flip.row), std::to_string(flip.from), std::to_string(flip.to), short_number(flip.margin),
               short_number(flip.error), flip.is_near ? "near" : "clear"});
  }
  return text + table.text();
}

std::string worst_text(const TaskResult& result) {
  if (result.worst.empty()) return "";
  std::string text = "worst samples, by the relative L2 error of their outputs:\n";
  for (const TaskWorst& each : result.worst) {
    text += wrapped(fmt::format("  {} {}: {}", shortened(each.sample, 30), short_number(each.error), each.odd.empty() ? "nothing odd about it" : fmt::format("{}", fmt::join(each.odd, "; "))));
  }
  return text;
}

}  // namespace

bool TaskResult::passed() const {
  return std::ranges::all_of(numbers, [](const TaskNumber& number) { return number.passed(); });
}

json TaskResult::to_json() const {
  const auto optional = [](const std::optional<double>& value) { return value ? measured(*value) : json(nullptr); };
  json told = json::array();
  for (const TaskNumber& number : numbers) {
    const auto difference = number.reference && number.target ? std::optional(*number.target - *number.reference) : std::nullopt;
    told.push_back({{"name", number.name}, {"reference", optional(number.reference)}, {"target", optional(number.target)}, {"difference", optional(difference)},
                    {"between", optional(number.between)}, {"limit", optional(number.limit)}, {"passed", number.passed()}});
  }
  json flipped = json::array();
  for (const TaskFlip& flip : flips) {
    flipped.push_back({{"sample", flip.sample}, {"row", flip.row}, {"from", flip.from}, {"to", flip.to}, {"margin", measured(flip.margin)},
                       {"error", measured(flip.error)}, {"near", flip.is_near}});
  }
  json bad = json::array();
  for (const TaskWorst& each : worst) bad.push_back({{"sample", each.sample}, {"error", measured(each.error)}, {"odd", each.odd}});
  return {{"task", task}, {"output", output}, {"samples", samples}, {"numbers", std::move(told)}, {"answers", answers}, {"flips", flip_count},
          {"flips_near", near_count}, {"flipped", std::move(flipped)}, {"worst", std::move(bad)}, {"notes", notes}, {"passed", passed()}};
}

std::string TaskResult::text() const {
  std::string text = wrapped(fmt::format("{} over {}: {} against {}, by '{}'", task, counted(samples, "sample"), target, reference, shortened(output, 60)));
  Table table({"metric", "reference", "target", "difference", "of the two"}, "lrrrr");
  for (const TaskNumber& number : numbers)
    table.add({number.name, shown(number.reference), shown(number.target), difference_of(number), shown(number.between)});
  text += table.text() + gates_text(numbers) + flips_text(*this) + worst_text(*this);
  for (const std::string& note : notes) text += wrapped(fmt::format("note: {}", note));
  return text;
}

}  // namespace unmoor
