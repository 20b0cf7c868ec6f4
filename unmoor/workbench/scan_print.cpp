#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "unmoor/workbench/scan.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t most_in_words = 3;  // Platforms whose every refusal is listed; of more, what decides each.
constexpr double days_in_days = 7, days_in_weeks = 30;

json facts_json(const ModelFacts& facts, double memory) {
  json result{{"parameters", facts.parameters},
              {"parameter_bytes", facts.parameter_bytes},
              {"flop", facts.flop},
              {"moved_bytes", facts.moved_bytes},
              {"activation_bytes", facts.activation_bytes},
              {"batch", facts.batch},
              {"dtypes", facts.dtypes},
              {"dynamic_inputs", facts.dynamic_inputs},
              {"data_dependent_nodes", facts.data_dependent}};
  if (memory > 0) result["largest_batch"] = facts.largest_batch(memory);
  return result;
}

json effort_json(const std::vector<ScanEffort>& effort) {
  json list = json::array();
  for (const ScanEffort& each : effort) {
    list.push_back({{"what", each.what},
                    {"why", each.why},
                    {"first", each.first},
                    {"nodes", each.nodes},
                    {"low", each.low},
                    {"high", each.high}});
  }
  return list;
}

// A range of days as a person reads it: whole ones from ten on.
std::string days_text(const ScannedPlatform& platform) {
  const auto text = [](double days) { return days >= 10 ? fmt::format("{:.0f}", days) : fmt::format("{:.2g}", days); };
  return platform.effort_high == 0 ? "0" : fmt::format("{}-{}", text(platform.effort_low), text(platform.effort_high));
}

std::string facts_text(const ModelFacts& facts, double memory) {
  std::string text =
      wrapped(fmt::format("model: {} parameters in {}, {}FLOP and {} moved a run, {} of values at a time{}",
                          short_number(facts.parameters), short_bytes(facts.parameter_bytes),
                          facts.flop >= 1e9 ? short_number(facts.flop / 1e9) + " G" : short_number(facts.flop / 1e6) + " M",
                          short_bytes(facts.moved_bytes), short_bytes(facts.activation_bytes),
                          facts.batch == 1 ? " at batch 1" : fmt::format(" at batch {:g}", facts.batch)));
  if (!facts.dynamic_inputs.empty()) {
    std::string list;
    for (const auto& each : facts.dynamic_inputs) list += fmt::format("{}{}", list.empty() ? "" : ", ", shortened(each, 40));
    text += wrapped(fmt::format("dynamic: {}", list));
  }
  if (facts.data_dependent > 0)
    text += wrapped(fmt::format("the data alone tells the output shape of {}", counted(facts.data_dependent, "node")));
  if (memory > 0) text += wrapped(fmt::format("in {} fits a batch of {:g}", short_bytes(memory), facts.largest_batch(memory)));
  return text;
}

// Every refusal, nodes with the same story as one entry.
std::string refusals_text(const ScannedPlatform& platform) {
  std::map<std::string, std::pair<size_t, std::string>> groups;
  for (const ScannedNode& node : platform.nodes) {
    if (node.priority.empty()) continue;
    std::string story = fmt::format("{} {} {}: {}: {}", node.priority, node.state, node.op, node.reason, node.detail);
    if (platform.source == "catalogue" && !node.advice.empty()) story += fmt::format("; {}", node.advice);
    auto& [times, first] = groups[story];
    if (++times == 1) first = node.node;
  }
  std::string text;
  for (const auto& [what, entry] : groups) {
    text +=
        wrapped(fmt::format("{}: {} ({}'{}')", platform.name, what,
                            entry.first == 1 ? "" : fmt::format("{} nodes, first ", entry.first), shortened(entry.second, 40)));
  }
  return text;
}

std::string outlook_text(const ScannedPlatform& platform, double total_flop, double link, bool brief) {
  std::string text;
  if (total_flop > 0) {
    std::string shares;
    for (const char* state : {"native", "constrained", "expanded", "fallback", "unsupported", "unknown"}) {
      const auto found = platform.flop.find(state);
      if (found != platform.flop.end())
        shares += fmt::format("{}{:.3g} % {}", shares.empty() ? "" : ", ", 100 * found->second / total_flop, state);
    }
    if (!shares.empty()) text += fmt::format("FLOP: {}. ", shares);
  }
  if (!platform.lacking.empty()) {
    std::string list;
    for (const auto& each : platform.lacking) list += fmt::format("{}{}", list.empty() ? "" : ", ", each);
    text += fmt::format("Lacks {}. ", list);
  }
  if (link > 0 || (platform.source == "catalogue" && platform.copied_bytes > 0)) {
    text += fmt::format("Copies for what the host takes: {} a run", short_bytes(platform.copied_bytes));
    text += link > 0 ? fmt::format(", {} ms. ", short_number(1e3 * platform.copied_bytes / link)) : ". ";
  }
  if (platform.effort_high > 0) {
    text += fmt::format("Work: {} ({} days); decided by ", scale_of(platform.effort_high), days_text(platform));
    for (size_t i = 0; i < platform.effort.size() && i < 3; ++i) {
      const ScanEffort& each = platform.effort[i];
      const std::string more = brief ? "" : fmt::format(", '{}': {}", shortened(each.first, 30), each.why);
      text += fmt::format("{}{} ({:g}-{:g}{})", i == 0 ? "" : "; ", each.what, each.low, each.high, more);
    }
  }
  return text.empty() ? "" : wrapped(fmt::format("{}: {}", platform.name, text));
}

}  // namespace

std::string scale_of(double days) {
  return days <= 1 ? "hours" : days <= days_in_days ? "days" : days <= days_in_weeks ? "weeks" : "a redesign";
}

json ScanResult::to_json() const {
  json result{{"platforms", json::array()}, {"nodes", json::array()}};
  for (const ScannedPlatform& p : platforms) {
    json platform{{"name", p.name},
                  {"version", p.version},
                  {"nodes", p.nodes.size()},
                  {"native", p.native},
                  {"constrained", p.constrained},
                  {"expanded", p.expanded},
                  {"fallback", p.fallback},
                  {"unsupported", p.unsupported},
                  {"unknown", p.unknown},
                  {"p0", p.p0},
                  {"p1", p.p1},
                  {"p2", p.p2},
                  {"effort_days", {p.effort_low, p.effort_high}},
                  {"scale", scale_of(p.effort_high)},
                  {"source", p.source},
                  {"flop", p.flop},
                  {"lacking_dtypes", p.lacking},
                  {"copied_bytes", p.copied_bytes},
                  {"effort", effort_json(p.effort)}};
    if (link_bytes > 0) platform["copy_ms"] = 1e3 * p.copied_bytes / link_bytes;
    result["platforms"].push_back(std::move(platform));
    for (const ScannedNode& node : p.nodes) {
      result["nodes"].push_back({{"node", node.node},
                                 {"op", node.op},
                                 {"platform", node.platform},
                                 {"state", node.state},
                                 {"reason", node.reason},
                                 {"detail", node.detail},
                                 {"advice", node.advice},
                                 {"priority", node.priority},
                                 {"category", node.category},
                                 {"form", node.form},
                                 {"source", node.source}});
    }
  }
  if (facts) result["facts"] = facts_json(*facts, memory);
  return result;
}

std::string ScanResult::text() const {
  Table table({"platform", "native", "constr.", "expand.", "fallb.", "unsup.", "unkn.", "P0/P1/P2", "days"}, "lrrrrrrrr");
  for (const ScannedPlatform& p : platforms) {
    const auto number_text = [](size_t value) { return std::to_string(value); };
    table.add({p.name, number_text(p.native), number_text(p.constrained), number_text(p.expanded), number_text(p.fallback),
               number_text(p.unsupported), number_text(p.unknown), fmt::format("{}/{}/{}", p.p0, p.p1, p.p2), days_text(p)});
  }
  const bool brief = platforms.size() > most_in_words;
  std::string text = platforms.empty() ? "" : fmt::format("{}\n", counted(platforms[0].nodes.size(), "node"));
  text += table.text();
  if (facts) text += facts_text(*facts, memory);
  for (const ScannedPlatform& p : platforms) {
    if (facts) text += outlook_text(p, facts->flop, link_bytes, brief);
    if (!brief) text += refusals_text(p);
  }
  if (brief && open_issues() > 0)
    text += wrapped(fmt::format("for every refusal, name at most {} platforms, or use --json", most_in_words));
  return text;
}

}  // namespace unmoor
