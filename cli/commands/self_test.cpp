#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/devices.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/junit.h"
#include "unmoor/workbench/self_test.h"

namespace unmoor::cli {
namespace {

std::vector<JUnitCase> junit_cases(const SelfTestResult& result) {
  std::vector<JUnitCase> cases;
  const auto ways = self_test_ways();
  for (const SelfTestCase& each : result.cases) {
    for (size_t i = 0; i < ways.size(); ++i) {
      JUnitCase made{fmt::format("self-test.{}", ways[i]), each.name};
      if (each.results[i].empty()) made.skipped = "does not apply";
      if (each.results[i] == "missed" || each.results[i] == "flagged") made.failure = fmt::format("{} at '{}'", each.results[i], each.node);
      cases.push_back(std::move(made));
    }
  }
  return cases;
}

}  // namespace

Outcome self_test_command(const Options& options, nlohmann::json& json) {
  const SelfTestResult result = self_test(make_backend("reference")->open(0), show_progress);
  json["self_test"] = result.to_json();
  Outcome outcome;
  outcome.text = result.text();
  if (!options.junit.empty()) {
    write_file(options.junit, junit_xml("align --self-test", junit_cases(result)));
    outcome.text += fmt::format("wrote {}\n", options.junit);
  }
  if (result.wrong() == 0) return outcome;
  outcome.status = Status::finding;
  outcome.reason = fmt::format("{} of {} planted cases were told wrongly", result.wrong(), result.cases.size());
  return outcome;
}

}  // namespace unmoor::cli
