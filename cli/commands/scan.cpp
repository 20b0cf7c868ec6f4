#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/scan.h"

namespace unmoor::cli {

Outcome scan_command(const Options& options, nlohmann::json& result) {
  const Lab lab(options);
  show_note(lab.note());
  result["model"] = model_json(lab.model(), nullptr);
  ScanResult found;
  const ScanOptions scan_options{options.nodes, options.ops, cat("unmoor ", UNMOOR_VERSION)};
  for (const std::string& device : options.devices) {
    show_progress(cat("plan for ", device), 0, 0);
    const std::string name = is_engine(device) ? runner_name(device) : parse_device(device).text();
    const PlanInfo plan = lab.placement(device);
    found.platforms.push_back(scan_plan(lab.model().graph, lab.typed(), plan, name, scan_options));
    result["environment"]["devices"].push_back(name);
    add_versions(result, plan);
  }
  result.update(found.to_json());
  Outcome outcome;
  outcome.text = found.text();
  if (found.open_issues() > 0) {
    outcome.status = Status::finding;
    outcome.reason = fmt::format("{} P0 or P1", found.open_issues() == 1 ? "1 node is" : fmt::format("{} nodes are", found.open_issues()));
  }
  return outcome;
}

}  // namespace unmoor::cli
