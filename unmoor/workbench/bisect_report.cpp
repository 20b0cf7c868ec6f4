#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/workbench/bisect.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

using nlohmann::json;

std::string_view kind_name(BisectTrial::Kind kind) {
  return kind == BisectTrial::Kind::Begin ? "begin" : kind == BisectTrial::Kind::Alone ? "alone" : "rest";
}

json trial_json(const BisectTrial& trial) {
  const bool told = trial.failure.empty();
  json result{{"part", kind_name(trial.kind)}, {"value", trial.value}, {"node", trial.node}, {"op", trial.op}, {"nodes", trial.nodes}, {"outputs", trial.outputs}};
  result["wrong"] = told ? json(trial.is_wrong) : json(nullptr);
  result["verdict"] = told ? json(name(trial.judgement.verdict)) : json(nullptr);
  result["error"] = told ? metrics_json(trial.judgement.metrics) : json(nullptr);
  result["failure"] = told ? json(nullptr) : json(trial.failure);
  return result;
}

std::string trials_table(const std::vector<BisectTrial>& trials) {
  Table table({"part", "nodes", "outputs", "up to", "rel L2", "E", "verdict"}, "lrrlrrl");
  for (const BisectTrial& trial : trials) {
    const Metrics& m = trial.judgement.metrics;
    const bool told = trial.failure.empty();
    const std::string error = !told ? "-" : !m.problem.empty() ? "shape" : m.class_mismatch > 0 ? "NaN/Inf" : fmt::format("{:.2g}", m.rel_l2);
    table.add({std::string(kind_name(trial.kind)), std::to_string(trial.nodes), std::to_string(trial.outputs), shortened(trial.value, 24), error,
               told && m.excess_e ? fmt::format("{:.2g}", *m.excess_e) : "-", told ? std::string(name(trial.judgement.verdict)) : "failed"});
  }
  return table.text();
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < std::min(most, names.size()); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shortened(names[i], 30));
  return names.size() > most ? text + ", …" : text;
}

}  // namespace

json Bisection::to_json() const {
  json parts = json::array();
  for (const BisectTrial& trial : trials) parts.push_back(trial_json(trial));
  const auto text_or_null = [](const std::string& text) { return text.empty() ? json(nullptr) : json(text); };
  return {{"output", output},           {"runs", trials.size()}, {"trials", std::move(parts)},    {"node", text_or_null(node)},   {"op", text_or_null(op)},
          {"right_until", right_until}, {"within", within},      {"wrong_alone", wrong_alone},    {"wrong_behind", wrong_behind}, {"hidden", hidden},
          {"stopped", text_or_null(stopped)}, {"reading", reading()}};
}

std::string Bisection::reading() const {
  const std::string before = right_until.empty() ? "the model's inputs" : listed(right_until);
  if (node.empty()) return fmt::format("The first wrong node is among {} behind {} ({}): {}.", counted(within.size(), "node"), before, listed(within), stopped);
  std::string text = fmt::format("'{}' ({}) is the first that makes a wrong value; right until {}. ", node, op, before);
  text += wrong_alone == "yes"  ? "Alone, on the reference's values, it is wrong too."
          : wrong_alone == "no" ? "Alone, on the reference's values, it is right: the error has gathered before it, the target fuses it with others in the parts, or the reference itself is off here."
                                : "Alone it could not be run.";
  text += wrong_behind == "yes"  ? " Behind it something else is wrong, too: right values there still end in a wrong output."
          : wrong_behind == "no" ? " Behind it nothing else is."
                                 : " Whether anything behind it is wrong could not be told.";
  return text;
}

std::string Bisection::text() const {
  std::string text = wrapped(fmt::format("{} of the model were run in the target to find where '{}' goes wrong. What an engine fuses may be other in a part than in the whole.",
                                         counted(trials.size(), "part"), shortened(output, 40)));
  text += trials_table(trials) + wrapped(reading());
  for (const BisectTrial& trial : trials) {
    if (!trial.failure.empty()) text += wrapped(fmt::format("the part up to {} failed: {}", shortened(trial.value, 40), shortened(trial.failure, 240)));
  }
  return text + wrapped(fmt::format("no part showed {}{}{}", counted(hidden.size(), "value"), hidden.empty() ? "" : ": ", listed(hidden)));
}

}  // namespace unmoor
