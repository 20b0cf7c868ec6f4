#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/workbench/align.h"
#include "unmoor/workbench/dump.h"

namespace unmoor::cli {
namespace {

std::unique_ptr<Runner> side(const Lab& lab, const std::string& name, bool is_reference) {
  if (is_dump(name)) return open_dump(name);
  PlanOptions options = lab.plan_options();
  options.passes.widen_to_float64 = is_reference && parse_device(name).backend == "reference";
  return lab.runner(name, options);
}

// Inputs that a dump holds are used unless others were given.
NamedData inputs_for(const Lab& lab, Runner& reference) {
  NamedData inputs = lab.inputs();
  if (!lab.options().inputs.empty() || !is_dump(lab.options().reference)) return inputs;
  for (auto& [name, data] : reference.run({})) {
    if (const auto found = inputs.find(name); found != inputs.end()) found->second = data;
  }
  return inputs;
}

}  // namespace

Outcome align_command(const Options& options, nlohmann::json& result) {
  const Lab lab(options);
  show_note(lab.note());
  const auto reference = side(lab, options.reference, true);
  const auto target = side(lab, options.target, false);
  const NamedData inputs = inputs_for(lab, *reference);
  result["model"] = model_json(lab.model(), &inputs);
  AlignOptions align_options;
  if (options.atol || options.rtol) align_options.tolerance = Tolerance{options.atol.value_or(0), options.rtol.value_or(0), false};
  align_options.nodes = options.nodes;
  align_options.ops = options.ops;
  align_options.progress = show_progress;
  const AlignResult aligned = align(*reference, *target, inputs, align_options);
  result.update(aligned.to_json());
  result["environment"]["devices"] = {aligned.reference, aligned.target};
  Outcome outcome;
  outcome.text = aligned.text();
  if (aligned.verdict != "match") {
    outcome.status = Status::finding;
    outcome.reason = aligned.first_divergent.empty() ? "outputs differ, though every kernel alone is within tolerance"
                                                     : fmt::format("'{}' is the first node that differs", aligned.first_divergent);
  }
  return outcome;
}

}  // namespace unmoor::cli
