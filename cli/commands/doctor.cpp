#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/devices.h"
#include "unmoor/base/error.h"
#include "unmoor/runtime/worker.h"
#include "unmoor/workbench/doctor.h"
#include "unmoor/workbench/lock.h"
#include "unmoor/workbench/machine_lock.h"

namespace unmoor::cli {
namespace {

// Devices and engines are told even where the rest cannot be read.
Machine machine_here(const std::string& python) {
  try {
    return Machine::here(python);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw;
    show_note(cat("faults, versions and libraries are not judged: ", error.what()));
    return Machine({});
  }
}

}  // namespace

DoctorResult doctor_result(const Options& options, Engines wanted_engines, nlohmann::json& result) {
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
  if (wanted_engines == Engines::look_for) {
    show_progress("look for engines", 0, 0);
    found.engines = find_engines(options.python);
  }
  show_progress("read the machine", 0, 0);
  found.judge(machine_here(found.engines.empty() ? "" : found.engines.front().python));
  result.update(found.to_json());
  for (const auto& device : found.devices) {
    if (device.state == "ready") result["environment"]["devices"].push_back(device.name);
  }
  return found;
}

namespace {

void write_lock_file(const Options& options, const DoctorResult& found, Outcome& outcome, nlohmann::json& result) {
  show_progress("hash what was used", 0, 0);
  const Lock lock = lock_of_machine(found, UNMOOR_VERSION);
  write_lock(options.lock, lock);
  result["lock"] = lock_json(lock);
  result["lock"]["path"] = options.lock;
  result["lock"]["requirements"] = requirements_path(options.lock);
  outcome.text += cat("wrote ", options.lock, " (", counted(lock.components.size(), "component"), ") and ", requirements_path(options.lock), "\n");
}

void verify_lock_file(const Options& options, const DoctorResult& found, const Lock& locked, Outcome& outcome, nlohmann::json& result) {
  show_progress("hash what was used", 0, 0);
  const auto differences = compare_locks(locked, lock_of_machine(found, UNMOOR_VERSION), absent_reasons(found, locked));
  result["lock"] = {{"path", options.verify}, {"created", locked.created}, {"components", locked.components.size()}};
  result["differences"] = differences_json(differences);
  outcome.text += cat("\n", differences.empty() ? "nothing differs" : counted(differences.size(), "difference"), " from ", options.verify, " of ", locked.created, "\n",
                      differences_text(differences));
  if (differences.empty()) return;
  outcome.status = Status::finding;
  outcome.reason = cat(counted(differences.size(), "difference"), " from ", options.verify, ", first ", differences[0].name, ": locked ",
                       differences[0].locked.empty() ? "none" : differences[0].locked, ", here ", differences[0].here.empty() ? "none" : differences[0].here);
}

DoctorResult collected_result(const Options& options, nlohmann::json& result) {
  const Machine machine = Machine::read(options.from_dump);
  DoctorResult found;
  found.collected = collected_from(machine);
  found.engines = collected_engines(machine);
  found.judge(machine);
  result.update(found.to_json());
  result["collected"]["path"] = options.from_dump;
  return found;
}

Outcome print_collector(nlohmann::json& result) {
  Outcome outcome;
  outcome.text = collector_script();
  result["script"] = outcome.text;
  return outcome;
}

}  // namespace

Outcome doctor_command(const Options& options, nlohmann::json& result) {
  if (options.collector) return print_collector(result);
  std::optional<Lock> locked;
  if (!options.lock.empty()) check_lock_path(options.lock);
  if (!options.verify.empty()) locked = read_lock(options.verify);
  const DoctorResult found = options.from_dump.empty() ? doctor_result(options, Engines::look_for, result) : collected_result(options, result);
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
  if (!found.faults.empty() && found.faults[0].severity == "high") {
    outcome.status = Status::finding;
    outcome.reason = cat(found.faults[0].text, "; what would help: ", found.faults[0].remedy);
  }
  if (!options.lock.empty()) write_lock_file(options, found, outcome, result);
  if (locked) verify_lock_file(options, found, *locked, outcome, result);
  return outcome;
}

}  // namespace unmoor::cli
