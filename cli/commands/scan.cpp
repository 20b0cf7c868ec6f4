#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/scan.h"

namespace unmoor::cli {
namespace {

bool listed(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

Outcome scan_command(const Options& options, nlohmann::json& result) {
  const Lab lab(options);
  show_note(lab.note());
  result["model"] = model_json(lab.model(), nullptr);
  ScanResult found;
  for (const std::string& device : options.devices) {
    show_progress(cat("plan for ", device), 0, 0);
    const std::string name = parse_device(device).text();
    found.platforms.push_back(scan_plan(lab.model().graph, lab.placement(device), name, UNMOOR_VERSION));
    std::erase_if(found.platforms.back().nodes, [&](const ScannedNode& node) { return !listed(options.nodes, node.node) || !listed(options.ops, node.op); });
    result["environment"]["devices"].push_back(name);
  }
  result.update(found.to_json());
  Outcome outcome;
  outcome.text = found.text();
  if (found.open_issues() > 0) {
    outcome.status = Status::finding;
    outcome.reason = fmt::format("{} nodes are P0 or P1", found.open_issues());
  }
  return outcome;
}

}  // namespace unmoor::cli
