#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/dump.h"
#include "unmoor/workbench/junit.h"
#include "unmoor/workbench/task/task.h"

namespace unmoor::cli {
namespace {

std::unique_ptr<Runner> task_side(const Lab& lab, const std::string& name, bool is_reference) {
  if (!is_device(name) && is_dump(name)) fail(ErrorKind::InvalidArgument, "'", name, "' holds values of one run, and --data runs many samples");
  return align_side(lab, name, is_reference, true);
}

std::vector<JUnitCase> junit_cases(const TaskResult& result) {
  std::vector<JUnitCase> cases;
  for (const TaskNumber& number : result.numbers) {
    JUnitCase each{result.task, number.name};
    if (!number.passed()) each.failure = fmt::format("{:.5g}, to be at least {:g}", number.gated.value_or(0), *number.limit);
    cases.push_back(std::move(each));
  }
  return cases;
}

}  // namespace

Outcome align_task_command(const Options& options, nlohmann::json& result) {
  const Lab lab(options);
  const auto samples = open_samples(options.data, declared_inputs(lab.model()), options.python);
  const auto reference = task_side(lab, options.reference, true);
  const auto target = task_side(lab, options.target, false);
  result["model"] = model_json(lab.model(), nullptr);
  const TaskResult found = run_task(*reference, *target, *samples, {options.task, options.task_output, show_progress});
  result["reference"] = found.reference;
  result["target"] = found.target;
  result["task"] = found.to_json();
  result["environment"]["devices"] = {found.reference, found.target};
  add_versions(result, reference->plan());
  add_versions(result, target->plan());
  Outcome outcome;
  outcome.text = found.text();
  if (!options.junit.empty()) {
    write_file(options.junit, junit_xml(fmt::format("align {} --task {}", options.model, options.task), junit_cases(found)));
    outcome.text += fmt::format("wrote {}\n", options.junit);
  }
  if (found.passed()) return outcome;
  outcome.status = Status::finding;
  for (const TaskNumber& number : found.numbers) {
    if (!number.passed() && outcome.reason.empty())
      outcome.reason = fmt::format("{} is {:.5g}, to be at least {:g}", number.between ? number.name : cat("the difference of ", number.name), number.gated.value_or(0), *number.limit);
  }
  return outcome;
}

}  // namespace unmoor::cli
