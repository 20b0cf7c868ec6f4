#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/workbench/result.h"
#include "unmoor/workbench/scan_torch.h"

namespace unmoor {
namespace {

constexpr size_t most_listed = 12;  // Of modules and inputs in a text; --json has all.

// "float32 12, int64 1", the most first.
std::string counts_text(const std::map<std::string, size_t>& counts) {
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < most_listed; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", shortened(sorted[i].first, 60), sorted[i].second);
  if (sorted.size() > most_listed) text += fmt::format(" and {} more (see --json)", sorted.size() - most_listed);
  return text;
}

}  // namespace

nlohmann::json TorchFacts::to_json() const {
  nlohmann::json result{{"described", described},
                        {"has_graph", has_graph},
                        {"tensors", tensors},
                        {"parameters", parameters},
                        {"parameter_bytes", parameter_bytes},
                        {"stored_bytes", stored_bytes},
                        {"tensor_dtypes", tensor_dtypes},
                        {"not_known", not_known}};
  if (!has_graph) return result;
  result["dtypes"] = dtypes;
  result["dynamic_inputs"] = dynamic_inputs;
  result["data_dependent_nodes"] = data_dependent;
  result["host_calls"] = host_calls;
  result["modules"] = modules;
  return result;
}

std::string TorchFacts::text() const {
  std::string text = wrapped(fmt::format("{}: {} parameters in {}, {} in the file", described, short_number(parameters), short_bytes(parameter_bytes),
                                         short_bytes(stored_bytes)));
  if (!tensor_dtypes.empty()) text += wrapped(fmt::format("tensors: {}", counts_text(tensor_dtypes)));
  if (!dtypes.empty()) text += wrapped(fmt::format("calls by element type: {}", counts_text(dtypes)));
  if (!modules.empty()) text += wrapped(fmt::format("calls by module: {}", counts_text(modules)));
  if (!dynamic_inputs.empty()) {
    std::string list;
    for (size_t i = 0; i < dynamic_inputs.size() && i < most_listed; ++i) list += fmt::format("{}{}", i == 0 ? "" : "; ", shortened(dynamic_inputs[i], 60));
    text += wrapped(fmt::format("dynamic: {}{}", list, dynamic_inputs.size() > most_listed ? fmt::format(" and {} more", dynamic_inputs.size() - most_listed) : ""));
  }
  if (data_dependent > 0) text += wrapped(fmt::format("the data alone tells the output shape of {}", counted(data_dependent, "call")));
  if (host_calls > 0) text += wrapped(fmt::format("the host works out sizes and numbers: {}", counted(host_calls, "call")));
  for (const std::string& each : not_known) text += wrapped(fmt::format("not known: {}", each));
  return text;
}

}  // namespace unmoor
