#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/align_statistics.h"
#include "unmoor/workbench/junit.h"
#include "unmoor/workbench/value_filter.h"

namespace unmoor::cli {
namespace {

bool is_statistics(const std::string& side) { return !is_device(side) && is_statistics_dump(side); }

// Fails with InvalidArgument on what needs the values themselves.
void check_flags(const Options& options) {
  const auto refuse = [&](bool given, const char* flag) {
    if (!given) return;
    const std::string& side = is_statistics(options.target) ? options.target : options.reference;
    fail(ErrorKind::InvalidArgument, flag, " needs values, and '", side, "' holds only statistics of them");
  };
  refuse(options.atol || options.rtol, "a tolerance");
  refuse(!options.nodes.empty() || !options.ops.empty(), "running nodes alone");
  refuse(!options.keep_curve.empty(), "--keep-curve");
  refuse(!options.reproductions.empty(), "--reproductions");
  refuse(!options.keep_float32.empty() && is_statistics(options.target), "--keep-float32");
}

std::optional<StatisticsSide> stored_side(const std::string& name) {
  return is_statistics(name) ? std::optional(read_statistics(name)) : std::nullopt;
}

}  // namespace

bool has_statistics(const Options& options) { return is_statistics(options.reference) || is_statistics(options.target); }

Outcome align_statistics_command(const Options& options, nlohmann::json& result) {
  check_flags(options);
  const Lab lab(options);
  show_note(lab.note());
  auto reference = stored_side(options.reference);
  auto target = stored_side(options.target);
  NamedData inputs = lab.inputs();
  for (const auto* side : {target ? &*target : nullptr, reference ? &*reference : nullptr}) {
    if (side == nullptr) continue;
    for (const auto& [name, data] : side->inputs) {
      if (inputs.contains(name) && !lab.is_given(name)) inputs[name] = data;
    }
  }
  result["model"] = model_json(lab.model(), &inputs);
  ValueFilter filter(options.values, options.every);
  const auto takes = [&filter](const std::string& name) { return filter.takes(name); };
  for (const bool is_reference : {false, true}) {
    auto& side = is_reference ? reference : target;
    const std::string& name = is_reference ? options.reference : options.target;
    show_progress(is_reference ? "reference run" : "target run", 0, 0);
    if (side)
      side->narrow(takes);
    else
      side = collect_statistics(*align_side(lab, name, is_reference, true), inputs, takes);
  }
  AlignOptions align_options;
  align_options.model = &lab.model().graph;
  align_options.progress = show_progress;
  const AlignResult found = align_statistics(*reference, *target, inputs, align_options);
  result.update(found.to_json());
  result["statistics"] = {{"reference", is_statistics(options.reference)}, {"target", is_statistics(options.target)}, {"not_shown", statistics_limits()}};
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
