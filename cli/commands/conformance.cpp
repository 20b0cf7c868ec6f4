#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/conformance.h"
#include "unmoor/workbench/onnx_tests.h"
#include "unmoor/workbench/write_cases.h"

namespace unmoor::cli {
namespace {

std::vector<std::string> wanted_cases(const Options& options) {
  if (!options.onnx_tests.empty()) return find_onnx_tests(options.onnx_tests, options.case_text);
  if (options.case_text.empty()) return case_texts(options.ops, options.category);
  (void)parse_case(options.case_text);
  return {options.case_text};
}

const char* worker_for(const Options& options) {
  if (!options.onnx_tests.empty()) return "--worker-onnx-tests";
  return options.dry_run ? "--worker-placements" : "--worker-cases";
}

Outcome write_command(const Options& options, nlohmann::json& result) {
  const auto cases = wanted_cases(options);
  const size_t written = write_cases(cases, options.write_cases, show_progress);
  result["written"] = written;
  Outcome outcome;
  outcome.text = fmt::format("wrote {} of {} cases into {}\n", written, cases.size(), options.write_cases);
  return outcome;
}

}  // namespace

Outcome conformance_command(const Options& options, nlohmann::json& result) {
  if (!options.write_cases.empty()) return write_command(options, result);
  if (options.devices.size() != 1) fail(ErrorKind::InvalidArgument, "conformance takes one device, not ", options.devices.size());
  const DeviceName device = parse_device(options.devices[0]);
  (void)make_backend(device.backend);  // Fails here rather than in the child.
  check_settings(options);
  std::vector<std::string> command{own_program(), worker_for(options), device.text()};
  for (const auto& [key, value] : settings_of(options, device)) command.push_back(cat(key, "=", value));
  const auto cases = wanted_cases(options);
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
