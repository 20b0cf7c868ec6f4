#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/align_statistics.h"
#include "unmoor/workbench/baseline.h"
#include "unmoor/workbench/junit.h"
#include "unmoor/workbench/value_filter.h"

namespace unmoor::cli {
namespace {

bool is_statistics(const std::string& side) { return !is_device(side) && is_statistics_dump(side); }

// Fails with InvalidArgument on what needs the values themselves.
void check_flags(const Options& options) {
  const auto refuse = [&](bool given, const char* flag) {
    if (!given) return;
    const std::string& side = is_statistics(options.target) ? options.target : is_statistics(options.reference) ? options.reference : options.baseline;
    fail(ErrorKind::InvalidArgument, flag, " needs values, and '", side, "' holds only statistics of them");
  };
  refuse(options.atol || options.rtol, "a tolerance");
  refuse(!options.nodes.empty() || !options.ops.empty(), "running nodes alone");
  refuse(options.bisect, "--bisect");
  refuse(!options.keep_curve.empty(), "--keep-curve");
  refuse(!options.reproductions.empty(), "--reproductions");
  refuse(!options.keep_float32.empty() && is_statistics(options.target), "--keep-float32");
}

std::optional<StatisticsSide> stored_side(const std::string& name) {
  return !name.empty() && is_statistics(name) ? std::optional(read_statistics(name)) : std::nullopt;
}

}  // namespace

bool has_statistics(const Options& options) { return is_statistics(options.reference) || is_statistics(options.target) || is_statistics(options.baseline); }

Outcome align_statistics_command(const Options& options, nlohmann::json& result) {
  check_flags(options);
  const Lab lab(options);
  show_note(lab.note());
  NamedData inputs = lab.inputs();
  // In this order: what the reference was given decides, then the target, then the baseline.
  const std::array names{options.reference, options.target, options.baseline};
  std::array sides{stored_side(names[0]), stored_side(names[1]), stored_side(names[2])};
  for (const size_t i : {2, 1, 0}) {
    for (const auto& [name, data] : sides[i] ? sides[i]->inputs : NamedData()) {
      if (inputs.contains(name) && !lab.is_given(name)) inputs[name] = data;
    }
  }
  result["model"] = model_json(lab.model(), &inputs);
  ValueFilter filter(options.values, options.every);
  const auto takes = [&filter](const std::string& name) { return filter.takes(name); };
  constexpr std::array told{"reference run", "target run", "baseline run"};
  for (const size_t i : {1, 0, 2}) {
    if (names[i].empty()) continue;
    show_progress(told[i], 0, 0);
    if (sides[i])
      sides[i]->narrow(takes);
    else
      sides[i] = collect_statistics(*align_side(lab, names[i], i == 0, true), inputs, takes);
  }
  auto& [reference, target, baseline] = sides;
  AlignOptions align_options;
  align_options.model = &lab.model().graph;
  align_options.progress = show_progress;
  std::optional<Baseline> known;
  if (baseline) known.emplace(align_statistics(*reference, *baseline, inputs, align_options), inputs);
  if (known) align_options.baseline = &*known;
  const AlignResult found = align_statistics(*reference, *target, inputs, align_options);
  result.update(found.to_json());
  result["statistics"] = {{"reference", is_statistics(options.reference)}, {"target", is_statistics(options.target)}, {"baseline", is_statistics(options.baseline)}, {"not_shown", statistics_limits()}};
  result["environment"]["devices"] = {found.reference, found.target};
  Outcome outcome;
  outcome.text = found.text() + statistics_text(found);
  if (!options.junit.empty()) {
    write_file(options.junit, junit_xml(fmt::format("align {}", options.model), junit_cases(found)));
    outcome.text += fmt::format("wrote {}\n", options.junit);
  }
  if (found.verdict != "differ") return outcome;
  outcome.status = Status::finding;
  outcome.reason = found.first_divergent.empty() ? "outputs differ" : fmt::format("'{}' is the first value that differs, as far as statistics tell", found.first_divergent);
  return outcome;
}

}  // namespace unmoor::cli
