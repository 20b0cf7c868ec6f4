#include "unmoor/workbench/report_document.h"

#include <algorithm>
#include <map>
#include <set>

#include "unmoor/workbench/report.h"
#include "unmoor/workbench/report_data.h"
#include "unmoor/workbench/scan.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr const char* align_keys[] = {
    "reference",       "target",          "verdict",          "fallback_nodes", "outputs", "values",
    "first_divergent", "first_nonfinite", "nonfinite_origin", "atol",           "rtol",    "atol_scaled_by_rms",
    "hidden",          "without_noise",   "floor_ms",        "planes_left_out",  "baseline", "bisection"};
constexpr const char* bench_keys[] = {"runs", "ratios", "warnings"};
constexpr const char* doctor_keys[] = {"devices", "engines", "pairs", "libraries"};

template <size_t count>
json picked(const json& result, const char* const (&keys)[count]) {
  json found = json::object();
  for (const char* key : keys) {
    if (result.contains(key)) found[key] = result[key];
  }
  return found;
}

json scan_section(const json& result) {
  json scan{{"platforms", member(result, "platforms")}, {"nodes", member(result, "nodes")}, {"categories", json::array()}};
  std::set<std::string> categories;
  for (const json* node : items(result, "nodes")) categories.insert(text(*node, "category"));
  for (const std::string& each : categories) {
    if (!each.empty()) scan["categories"].push_back({{"name", each}, {"difficulty", difficulty(each)}, {"alternative", alternative(each)}});
  }
  return scan;
}

// The plan of run, which lists its steps, as columns over a graph.
void add_plan_columns(json& found, const json& plan) {
  json graph{{"name", json::array()}, {"op", json::array()}};
  json columns{{"devices", member(plan, "devices")},
               {"device", json::array()},
               {"choice", json::array()},
               {"kernel", json::array()},
               {"refusals", json::array()}};
  std::map<std::string, size_t> devices;
  const json& named = member(plan, "devices");
  for (size_t i = 0; named.is_array() && i < named.size(); ++i) devices.emplace(text(named[i]), i);
  std::set<std::string> seen;
  for (const json* placed : items(plan, "placements")) {
    if (!seen.insert(text(*placed, "node")).second) continue;
    const auto device = devices.find(text(*placed, "device"));
    const std::string state = text(*placed, "state");
    graph["name"].push_back(text(*placed, "node"));
    graph["op"].push_back(text(*placed, "op"));
    columns["device"].push_back(device == devices.end() ? json(nullptr) : json(device->second));
    columns["choice"].push_back(state == "choice" || state == "host");
    columns["kernel"].push_back(text(*placed, "kernel"));
    columns["refusals"].push_back(member(*placed, "refusals"));
  }
  if (seen.empty()) return;
  found["graph"] = std::move(graph);
  found["plan"] = std::move(columns);
  found["plan"]["fallback_nodes"] = count_in(plan, "fallback_nodes");
  found["plan"]["copy_count"] = count_in(plan, "copy_count");
}

// Hidden nodes by name, whether they stand as names or as indices into the graph.
json names_of_hidden(const json& hidden, const json& graph) {
  json found = json::array();
  const json& names = member(graph, "name");
  if (!hidden.is_array()) return found;
  for (const json& each : hidden) {
    if (each.is_string())
      found.push_back(each);
    else if (each.is_number_unsigned() && names.is_array() && each.get<size_t>() < names.size())
      found.push_back(names[each.get<size_t>()]);
  }
  return found;
}

// A number of one side of a value; what has another shape or class is infinitely far.
json far(const json& metrics, std::string_view key) {
  if (!metrics.is_object()) return nullptr;
  if (!text(metrics, "problem").empty() || count_in(metrics, "class_mismatch") > 0) return "inf";
  return member(metrics, key);
}

// By node, the first value's that is known.
std::vector<json> column_of(const json& align, const std::map<std::string, size_t>& index, const char* side, std::string_view key) {
  size_t size = 0;
  for (const auto& [name, i] : index) size = std::max(size, i + 1);
  std::vector<json> column(size);
  for (const json* value : items(align, "values")) {
    const auto at = index.find(text(*value, "node"));
    if (at != index.end() && column[at->second].is_null()) column[at->second] = far(member(*value, side), key);
  }
  return column;
}

json graph_of_values(const json& align) {
  json graph{{"name", json::array()}, {"op", json::array()}};
  std::set<std::string> seen;
  for (const json* value : items(align, "values")) {
    const std::string node = text(*value, "node");
    if (node.empty() || !seen.insert(node).second) continue;
    graph["name"].push_back(node);
    graph["op"].push_back(text(*value, "op"));
  }
  return graph;
}

}  // namespace

json report_sections(const json& result) {
  json found = json::object();
  const std::string tool = text(result, "tool");
  for (const char* part : report_parts) {
    if (member(result, part).is_object()) found[part] = result[part];
  }
  if (member(result, "graph").is_object()) found["graph"] = result["graph"];
  if (found.contains("plan") && member(found["plan"], "placements").is_array()) {
    const json plan = std::move(found["plan"]);
    found.erase("plan");
    add_plan_columns(found, plan);
  }
  if (!found.contains("graph")) {  // Columns mean nothing without it.
    found.erase("plan");
    found.erase("profile");
  }
  if (tool == "scan" && member(result, "platforms").is_array()) found["scan"] = scan_section(result);
  if (tool == "align" && member(result, "values").is_array()) found["align"] = picked(result, align_keys);
  if (tool == "bench" && member(result, "runs").is_array()) found["bench"] = picked(result, bench_keys);
  if (tool == "doctor" && member(result, "devices").is_array()) found["doctor"] = picked(result, doctor_keys);
  if (found.contains("align"))
    found["align"]["hidden"] = names_of_hidden(member(found["align"], "hidden"), member(result, "graph"));
  return found;
}

void add_align_columns(json& page) {
  json& align = page["align"];
  if (!member(page, "graph").is_object()) page["graph"] = graph_of_values(align);
  std::map<std::string, size_t> index;
  const json& names = member(page["graph"], "name");
  for (size_t i = 0; names.is_array() && i < names.size(); ++i) index.emplace(text(names[i]), i);
  // What was judged by a given tolerance, or by an older version, knows no excess.
  const auto known = [](const json* value) {
    return number_in(member(*value, "single"), "excess").has_value() || number_in(member(*value, "entire"), "excess").has_value();
  };
  const std::vector<const json*> values = items(align, "values");
  const char* const far_key = std::ranges::any_of(values, known) ? "excess" : "over";
  std::set<size_t> hidden;
  for (const json& name : align["hidden"]) {
    if (const auto at = index.find(text(name)); at != index.end()) hidden.insert(at->second);
  }
  align["single"] = column_of(align, index, "single", "rel_l2");
  align["entire"] = column_of(align, index, "entire", "rel_l2");
  if (!text(align, "baseline").empty()) {
    align["baseline_entire"] = column_of(align, index, "baseline_entire", "rel_l2");
    align[std::string("baseline_") + far_key] = column_of(align, index, "baseline_entire", far_key);
  }
  align["metrics"] = {"kernel alone", "whole run"};
  align[far_key] = column_of(align, index, "single", far_key);
  align[std::string(far_key) + "_entire"] = column_of(align, index, "entire", far_key);
  // Two lists that begin with a text would be an object.
  align["heat"] = json::array({align[far_key], align[std::string(far_key) + "_entire"]});
  align["hidden"] = hidden;
}

json report_document(json result) {
  if (!result.is_object() || member(result, "schema").is_number()) return result;
  json sections = report_sections(result);
  const std::string tool = text(result, "tool");
  if (tool == "scan" || tool == "align" || tool == "bench" || tool == "doctor") {
    for (const char* key : align_keys) result.erase(key);  // They stand under the section now.
    for (const char* key : bench_keys) result.erase(key);
    for (const char* key : doctor_keys) result.erase(key);
    result.erase("platforms");
    result.erase("nodes");
  }
  result.erase("plan");
  for (auto& [name, section] : sections.items()) result[name] = std::move(section);
  result["schema"] = 1;
  if (result.contains("align")) {
    add_align_columns(result);
    if (text(result, "target").empty()) result["target"] = text(result["align"], "target");
  }
  add_report_words(result);
  for (const char* part : report_parts) {
    const std::string answer = text(result["answers"], part);
    if (text(result, "sentence").empty() && !answer.empty()) result["sentence"] = answer;
  }
  return result;
}

}  // namespace unmoor
