#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/conformance.h"

namespace unmoor::cli {

Outcome conformance_command(const Options& options, nlohmann::json& result) {
  if (options.devices.size() != 1) fail(ErrorKind::InvalidArgument, "conformance takes one device, not ", options.devices.size());
  const DeviceName device = parse_device(options.devices[0]);
  (void)make_backend(device.backend);  // Fails here rather than in the child.
  check_settings(options);
  std::vector<std::string> command{own_program(), "--worker-cases", device.text()};
  for (const auto& [key, value] : settings_of(options, device)) command.push_back(cat(key, "=", value));
  const auto cases = options.case_text.empty() ? case_texts(options.ops, options.category) : std::vector<std::string>{options.case_text};
  if (!options.case_text.empty()) (void)parse_case(options.case_text);
  if (cases.empty()) fail(ErrorKind::InvalidArgument, "no case is of an operator and a category that were both asked for");
  const ConformanceResult found = conformance(device.text(), cases, command, show_progress);
  result.update(found.to_json());
  result["environment"]["devices"] = {found.device};
  Outcome outcome;
  outcome.text = found.text();
  if (found.count("failed") > 0) {
    outcome.status = Status::finding;
    outcome.reason = fmt::format("{} cases failed on {}", found.count("failed"), found.device);
  }
  return outcome;
}

}  // namespace unmoor::cli
