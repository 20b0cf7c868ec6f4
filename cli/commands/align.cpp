#include <filesystem>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/align.h"
#include "unmoor/workbench/dump.h"

namespace unmoor::cli {
namespace {

std::unique_ptr<Runner> side(const Lab& lab, const std::string& name, bool is_reference, bool fuse) {
  // A folder that is called as a device is given as ./cpu.
  if (!is_device(name) && is_dump(name)) return open_dump(name);
  PlanOptions options = lab.plan_options();
  // Of the reference in float64 every value of the file is to be seen.
  const bool exact = is_reference && !is_engine(name) && parse_device(name).backend == "reference";
  options.passes.fuse = options.passes.fuse && fuse && !exact;
  options.passes.widen_to_float64 = exact;
  return lab.runner(name, options);
}

// Where a name could mean a folder, too, which of both it means.
void note_folder(const std::string& name) {
  if (!is_device(name) || !is_dump(name)) return;
  show_note(cat("'", name, "' is the ", is_engine(name) ? "engine" : "device", "; for the folder of that name write ./", name));
}

// Inputs that a dump holds are used unless others were given.
NamedData inputs_for(const Lab& lab, Runner& reference) {
  NamedData inputs = lab.inputs();
  if (is_device(lab.options().reference)) return inputs;
  for (auto& [name, data] : reference.run({})) {
    if (const auto found = inputs.find(name); found != inputs.end() && !lab.is_given(name)) found->second = data;
  }
  return inputs;
}

}  // namespace

AlignResult aligned(const Lab& lab, const std::string& reference_name, Runner& reference, const std::string& target_name, Runner& target,
                    const NamedData& inputs, AlignOptions options) {
  options.model = &lab.model().graph;
  // Of the reference and of noise there are many runs in float64.
  const size_t threads = lab.options().threads > 0 ? lab.options().threads : usable_threads();
  const Float64Help help = float64_help(std::make_shared<ThreadPool>(threads));
  const Float64Scope scope(help);
  AlignResult result = align(reference, target, inputs, options);
  if (lab.options().no_fuse || !is_device(target_name) || (result.first_divergent.empty() && result.first_nonfinite.empty())) return result;
  const auto unfused_reference = side(lab, reference_name, true, false);
  const auto unfused_target = side(lab, target_name, false, false);
  options.reproductions.clear();  // They are written.
  refine(result, align(*unfused_reference, *unfused_target, inputs, options), target.plan());
  return result;
}

// A folder that was named must be new or empty; that beside a page is only written if it is.
std::string folder_for_findings(const Options& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto is_taken = [&error](const std::string& folder) { return fs::exists(folder, error) && !(fs::is_directory(folder, error) && fs::is_empty(folder, error)); };
  if (!options.reproductions.empty()) {
    if (is_taken(options.reproductions)) fail(ErrorKind::InvalidArgument, "the folder ", options.reproductions, " for reproductions is not empty; name a new one");
    return options.reproductions;
  }
  if (options.html.empty()) return "";
  const std::string beside = (fs::path(options.html).replace_extension("").string()) + "-reproductions";
  if (!is_taken(beside)) return beside;
  show_note(fmt::format("{} is not empty: what is off is not written there again; name a folder with --reproductions", beside));
  return "";
}

Outcome align_command(const Options& options, nlohmann::json& result) {
  const Lab lab(options);
  show_note(lab.note());
  for (const std::string& name : {options.reference, options.target}) note_folder(name);
  const auto reference = side(lab, options.reference, true, true);
  const auto target = side(lab, options.target, false, true);
  const NamedData inputs = inputs_for(lab, *reference);
  result["model"] = model_json(lab.model(), &inputs);
  AlignOptions align_options;
  if (options.atol || options.rtol) align_options.tolerance = Tolerance{options.atol.value_or(0), options.rtol.value_or(0), false};
  align_options.nodes = options.nodes;
  align_options.ops = options.ops;
  align_options.progress = show_progress;
  align_options.reproductions = folder_for_findings(options);
  align_options.model_file = options.model;
  if (is_device(options.target) && !is_engine(options.target)) align_options.replay_device = options.target;
  const AlignResult found = aligned(lab, options.reference, *reference, options.target, *target, inputs, align_options);
  result.update(found.to_json());
  result["environment"]["devices"] = {found.reference, found.target};
  add_versions(result, reference->plan());
  add_versions(result, target->plan());
  Outcome outcome;
  outcome.text = found.text();
  if (found.verdict == "differ") {
    outcome.status = Status::finding;
    outcome.reason = found.first_divergent.empty() ? "outputs differ, though every kernel that was run alone is explained"
                                                   : fmt::format("'{}' is the first {} that differs", found.first_divergent, found.kernels_alone ? "node" : "value");
  }
  return outcome;
}

}  // namespace unmoor::cli
