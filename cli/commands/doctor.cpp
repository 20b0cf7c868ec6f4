#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/devices.h"
#include "unmoor/base/error.h"
#include "unmoor/runtime/worker.h"
#include "unmoor/workbench/doctor.h"

namespace unmoor::cli {

DoctorResult doctor_result(const Options& options, nlohmann::json& result) {
  constexpr double patience_s = 300;  // Compilers on a cold cache are slow.
  std::vector<PlatformToProbe> wanted;
  for (const Platform& platform : platforms()) wanted.push_back({platform.name, platform.absent});
  DoctorResult found = doctor(wanted, [](const std::string& platform) {
    show_progress(cat("probe ", platform), 0, 0);
    const ToolOutput output = run_tool({"--worker-probe", platform}, patience_s);
    const bool failed = !output.ended.empty() || output.status != 0;
    return ProbeAnswer{output.json, failed ? cat("its driver ended the probe: ", output.ended.empty() ? cat("exit status ", output.status) : output.ended,
                                                 output.errors.empty() ? "" : "; it said: ", output.errors)
                                           : std::string()};
  });
  show_progress("look for engines", 0, 0);
  found.engines = find_engines(options.python);
  result.update(found.to_json());
  for (const auto& device : found.devices) {
    if (device.state == "ready") result["environment"]["devices"].push_back(device.name);
  }
  return found;
}

Outcome doctor_command(const Options& options, nlohmann::json& result) {
  const DoctorResult found = doctor_result(options, result);
  Outcome outcome;
  outcome.text = found.text();
  if (options.kernels) {
    outcome.text += found.kernels_text();
    for (const auto& device : found.devices) result["kernels"][device.name] = device.kernels;
  }
  const auto broken = std::ranges::find_if(found.devices, [](const auto& device) { return device.state == "broken"; });
  if (broken != found.devices.end()) {
    outcome.status = Status::finding;
    outcome.reason = cat(broken->name, " is broken: ", broken->reason);
  }
  return outcome;
}

}  // namespace unmoor::cli
