#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/align_bisect.h"
#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/heap.h"
#include "unmoor/workbench/align.h"
#include "unmoor/workbench/baseline.h"
#include "unmoor/workbench/dump.h"
#include "unmoor/workbench/junit.h"
#include "unmoor/workbench/keep_curve.h"
#include "unmoor/workbench/keep_list.h"

namespace unmoor::cli {

std::unique_ptr<Runner> align_side(const Lab& lab, const std::string& name, bool is_reference, bool fuse) {
  // A folder that is called as a device is given as ./cpu.
  if (!is_device(name) && is_dump(name)) return open_dump(name);
  PlanOptions options = lab.plan_options();
  // Of the reference in float64 every value of the file is to be seen.
  if (is_reference) options.keep_float32.clear();
  const bool exact = is_reference && !is_engine(name) && parse_device(name).backend == "reference";
  options.passes.fuse = options.passes.fuse && fuse && !exact;
  options.passes.widen_to_float64 = exact;
  return lab.runner(name, options);
}

namespace {

// Where a name could mean a folder, too, which of both it means.
void note_folder(const std::string& name) {
  if (!is_device(name) || !is_dump(name)) return;
  show_note(cat("'", name, "' is the ", is_engine(name) ? "engine" : "device", "; for the folder of that name write ./", name));
}

// Inputs that a dump holds are used unless others were given: the reference's, else the baseline's.
NamedData inputs_for(const Lab& lab, Runner& reference) {
  NamedData inputs = lab.inputs();
  const Options& options = lab.options();
  const bool is_stored = !options.baseline.empty() && !is_device(options.baseline);
  const auto baseline = is_stored && is_device(options.reference) ? align_side(lab, options.baseline, false, true) : nullptr;
  if (is_device(options.reference) && !baseline) return inputs;
  for (auto& [name, data] : (baseline ? *baseline : reference).run({})) {
    if (const auto found = inputs.find(name); found != inputs.end() && !lab.is_given(name)) found->second = data;
  }
  return inputs;
}

// What the baseline makes of the values that the target shows. Empty if none was named.
std::unique_ptr<const Baseline> baseline_for(const Lab& lab, Runner& reference, Runner& target, const NamedData& inputs, AlignOptions options, bool fuse) {
  const std::string& name = lab.options().baseline;
  if (name.empty()) return nullptr;
  (void)target.run(inputs);  // Then it is known what it shows.
  std::set<std::string> shown;
  for (const ValueInfo& info : target.values()) shown.insert(info.name);
  options.stored_besides.clear();
  if (!is_device(name) && is_dump(name)) options.stored_besides = stored_besides(name);
  const auto runner = align_side(lab, name, false, fuse);
  return std::make_unique<const Baseline>(reference, *runner, shown, inputs, std::move(options));
}

}  // namespace

AlignResult aligned(const Lab& lab, const std::string& reference_name, Runner& reference, const std::string& target_name, Runner& target,
                    const NamedData& inputs, AlignOptions options) {
  options.model = &lab.model().graph;
  // Of the reference and of noise there are many runs in float64.
  const size_t threads = lab.options().threads > 0 ? lab.options().threads : usable_threads();
  const Float64Help help = float64_help(std::make_shared<ThreadPool>(threads));
  const Float64Scope scope(help);
  const auto baseline = baseline_for(lab, reference, target, inputs, options, true);
  options.baseline = baseline.get();
  AlignResult result = align(reference, target, inputs, options);
  if (lab.options().no_fuse || !is_device(target_name) || (result.first_divergent.empty() && result.first_nonfinite.empty())) return result;
  const auto unfused_reference = align_side(lab, reference_name, true, false);
  const auto unfused_target = align_side(lab, target_name, false, false);
  const auto unfused_baseline = baseline_for(lab, *unfused_reference, *unfused_target, inputs, options, false);
  options.baseline = unfused_baseline.get();
  options.reproductions.clear();  // They are written.
  refine(result, align(*unfused_reference, *unfused_target, inputs, options), target.plan());
  return result;
}

namespace {

// How the target's error falls as nodes are kept in float32, and the file that keeps them.
void add_keep_curve(const Lab& lab, Runner& target, const NamedData& inputs, nlohmann::json& result, std::string& text) {
  const Options& options = lab.options();
  if (!lab.keep_float32().empty()) fail(ErrorKind::InvalidArgument, "--keep-curve tells what to keep in float32, and --keep-float32 keeps it: one at a time");
  const auto wide = lab.float32_runner();
  KeepCurve curve = keep_curve(*wide, target, inputs, show_progress);
  curve.choose(options.keep_error);
  if (is_device(options.target) && !is_engine(options.target)) {
    PlanOptions kept = lab.plan_options();
    for (size_t i = 0; i < curve.chosen; ++i) kept.keep_float32.insert(curve.points[i].nodes.begin(), curve.points[i].nodes.end());
    show_progress("with these nodes kept", 0, 0);
    curve.set_applied(lab.runner(options.target, kept)->run(inputs));
  }
  write_file(options.keep_curve, curve.list());
  result["keep_float32"] = curve.to_json();
  text += curve.text() + fmt::format("wrote {}\n", options.keep_curve);
}

// Which values were looked at. Fails with InvalidArgument if none was.
void add_selection(const ValueFilter& filter, nlohmann::json& result, std::string& text) {
  if (filter.taken() == 0) fail(ErrorKind::InvalidArgument, "none of ", filter.asked(), " values is taken by ", filter.text());
  result["selected"] = {{"values", filter.taken()}, {"of", filter.asked()}};
  text += fmt::format("looked at {} of {} values: {}\n", filter.taken(), filter.asked(), filter.text());
}

// What --no-fuse changes: steps that run now and others that run without it.
void add_no_fuse(const Lab& lab, Runner& target, nlohmann::json& result, std::string& text) {
  const Options& options = lab.options();
  if (!options.no_fuse || !is_device(options.target) || is_engine(options.target)) return;
  PlanOptions fused = lab.plan_options();
  fused.passes.fuse = true;
  fused.place_only = true;
  const PlanInfo usual = lab.runner(options.target, fused)->plan();
  const size_t steps = target.plan().placements.size();
  const auto joined = std::ranges::count_if(usual.placements, [](const PlacementInfo& placed) { return !placed.also.empty(); });
  result["no_fuse"] = {{"steps", steps}, {"fused_steps", usual.placements.size()}, {"fused_nodes", joined}};
  text += wrapped(fmt::format("note: --no-fuse ran {} where {} run without it, {} of them fused: other kernels were compared than those that usually run",
                              counted(steps, "step"), usual.placements.size(), joined));
}

// Fails with InvalidArgument where the target cannot be told what to keep in float32.
void check_keep(const Options& options) {
  if (options.keep_float32.empty()) return;
  if (!is_device(options.target) || is_engine(options.target))
    fail(ErrorKind::InvalidArgument, "--keep-float32 is for Unmoor's devices, and the target '", options.target, "' is none");
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

}  // namespace

Outcome align_command(const Options& options, nlohmann::json& result) {
  keep_freed_memory();
  if (!options.data.empty()) return align_task_command(options, result);
  if (has_statistics(options)) return align_statistics_command(options, result);
  check_keep(options);
  check_bisect(options);
  const Lab lab(options);
  show_note(lab.note());
  for (const std::string& name : {options.reference, options.target, options.baseline}) note_folder(name);
  const auto reference = align_side(lab, options.reference, true, true);
  const auto target = options.bisect ? outputs_only(align_side(lab, options.target, false, true)) : align_side(lab, options.target, false, true);
  const NamedData inputs = inputs_for(lab, *reference);
  result["model"] = model_json(lab.model(), &inputs);
  AlignOptions align_options;
  if (options.atol || options.rtol) align_options.tolerance = Tolerance{options.atol.value_or(0), options.rtol.value_or(0), false};
  align_options.nodes = options.nodes;
  align_options.ops = options.ops;
  align_options.causes = !options.no_causes;
  align_options.progress = show_progress;
  align_options.reproductions = folder_for_findings(options);
  align_options.model_file = options.model;
  if (is_device(options.target) && !is_engine(options.target)) align_options.replay_device = options.target;
  ValueFilter filter(options.values, options.every);
  if (!filter.takes_all()) align_options.selects = [&filter](const std::string& name) { return filter.takes(name); };
  if (!is_device(options.target) && is_dump(options.target)) align_options.stored_besides = stored_besides(options.target);
  AlignResult found = aligned(lab, options.reference, *reference, options.target, *target, inputs, align_options);
  Outcome outcome;
  outcome.text = found.text();
  add_bisection(lab, *reference, inputs, found, result, outcome.text);
  result.update(found.to_json());
  result["environment"]["devices"] = {found.reference, found.target};
  if (!found.baseline.empty()) result["environment"]["devices"].push_back(found.baseline);
  add_versions(result, reference->plan());
  add_versions(result, target->plan());
  add_no_fuse(lab, *target, result, outcome.text);
  if (!filter.takes_all()) add_selection(filter, result, outcome.text);
  if (!lab.keep_float32().empty()) {
    result["keep_float32"] = kept_json(lab.keep_float32(), target->plan());
    outcome.text += kept_text(lab.keep_float32(), target->plan());
  }
  if (!options.keep_curve.empty()) add_keep_curve(lab, *target, inputs, result, outcome.text);
  if (!options.junit.empty()) {
    write_file(options.junit, junit_xml(fmt::format("align {}", options.model), junit_cases(found)));
    outcome.text += fmt::format("wrote {}\n", options.junit);
  }
  if (found.verdict == "differ") {
    outcome.status = Status::finding;
    outcome.reason = found.values.empty() && found.first_divergent.empty() ? "outputs differ"
                     : found.first_divergent.empty()                    ? "outputs differ, though every kernel that was run alone is explained"
                                                   : fmt::format("'{}' is the first {} that differs", found.first_divergent,
                                                                 found.kernels_alone || result.contains("bisection") ? "node" : "value");
  }
  return outcome;
}

}  // namespace unmoor::cli
