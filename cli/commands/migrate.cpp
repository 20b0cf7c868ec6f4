#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/migrate.h"

namespace unmoor::cli {
namespace {

constexpr const char* source = "cpu";  // What the target is timed against: the device that every machine has.

// A part's result, or how it failed: one tool that fails does not end the migration.
template <class Result, class Make>
Part<Result> attempt(const std::string& what, const Make& make) {
  show_progress(what, 0, 0);
  Part<Result> part;
  try {
    part.result = make();
  } catch (const std::exception& error) {
    part.failure = error.what();
  }
  return part;
}

class StepRecorder : public Observer {
 public:
  bool wants_steps() override { return true; }
  void on_step(const StepTrace& step) override { steps.push_back(step); }
  std::vector<StepTrace> steps;
};

DoctorResult run_doctor(const Options& options, const std::string& target) {
  nlohmann::json ignored = nlohmann::json::object();
  ignored["environment"]["devices"] = nlohmann::json::array();
  return doctor_result(options, is_engine(target) ? Engines::look_for : Engines::leave_out, ignored);
}

AlignResult run_align(const Lab& lab, const std::string& target_name, Runner& target, const NamedData& inputs) {
  PlanOptions options = lab.plan_options();
  options.passes.widen_to_float64 = true;
  options.passes.fuse = false;  // Every value of the file is to be seen.
  const auto reference = lab.runner("reference", options);
  AlignOptions align_options;
  align_options.progress = show_progress;
  return aligned(lab, "reference", *reference, target_name, target, inputs, align_options);
}

BenchResult run_bench(const Lab& lab, const std::string& target, const NamedData& inputs) {
  BenchOptions options;
  options.seconds = lab.options().seconds;
  options.threads = lab.options().threads;
  options.progress = show_progress;
  std::vector<std::string> devices{target};
  if (target != source) devices.emplace_back(source);
  return bench(devices, [&](const std::string& device) { return lab.runner(device, lab.plan_options(), true); }, inputs, options);
}

// What the user said about inputs and devices, to say it again.
std::string repeated(const Options& options, bool for_scan) {
  std::string text;
  const auto add = [&text](std::string_view flag, const std::string& value) { text += cat(" ", flag, " ", shell_word(value)); };
  if (!options.shapes.empty()) add("--shapes", options.shapes);
  for (const std::string& setting : options.settings) add("--set", setting);
  if (options.exact) text += " --exact";
  if (!options.python.empty()) add("--python", options.python);
  if (for_scan) return text;
  for (const std::string& input : options.inputs) add("-i", input);
  if (options.seed != 0) add("--seed", std::to_string(options.seed));
  if (!options.range.empty()) add("--range", options.range);
  if (options.threads != 0) add("--threads", std::to_string(options.threads));
  return text;
}

Migration run_parts(const Lab& lab, const std::string& target, const NamedData& inputs) {
  Migration found;
  found.model_path = lab.model().path;
  found.scan_arguments = repeated(lab.options(), true);
  found.run_arguments = repeated(lab.options(), false);
  found.source = source;
  found.target = target;
  found.doctor = attempt<DoctorResult>("doctor", [&] { return run_doctor(lab.options(), target); });
  found.scan = attempt<ScannedPlatform>("scan", [&] {
    return scan_plan(lab.model().graph, lab.typed(), lab.placement(target), target, {{}, {}, cat("unmoor ", UNMOOR_VERSION)});
  });
  std::unique_ptr<Runner> runner;
  found.plan = attempt<PlanInfo>("prepare", [&] {
    runner = lab.runner(target, lab.plan_options());
    (void)runner->run(inputs);
    return runner->plan();
  });
  if (runner == nullptr || !found.plan.result) return found;
  found.align = attempt<AlignResult>("align", [&] { return run_align(lab, target, *runner, inputs); });
  found.steps = attempt<std::vector<StepTrace>>("profile", [&] {
    (void)runner->run(inputs);
    StepRecorder recorder;
    (void)runner->run(inputs, &recorder);
    return recorder.steps;
  });
  runner.reset();
  found.bench = attempt<BenchResult>("bench", [&] { return run_bench(lab, target, inputs); });
  return found;
}

}  // namespace

Outcome migrate_command(const Options& options, nlohmann::json& result) {
  const std::string target = runner_name(options.devices.at(0));  // An unknown or absent platform is said before anything runs.
  const Lab lab(options);
  show_note(lab.note());
  const NamedData inputs = lab.inputs();
  result["model"] = model_json(lab.model(), &inputs);
  result["environment"]["devices"] = {target, source};
  const Migration found = run_parts(lab, target, inputs);
  const Verdict verdict = judge(found);
  result.update(migration_json(found, verdict));
  if (found.plan.result) add_versions(result, *found.plan.result);
  Outcome outcome;
  outcome.text = migration_text(found, verdict);
  if (verdict.verdict == "blocked") {
    outcome.status = Status::finding;
    outcome.reason = verdict.sentence;
  }
  return outcome;
}

}  // namespace unmoor::cli
