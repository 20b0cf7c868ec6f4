#include "unmoor/workbench/align_findings.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "unmoor/base/error.h"
#include "unmoor/workbench/align.h"
#include "unmoor/workbench/causes/region_cause.h"

namespace unmoor {
namespace {

bool is_off(ValueVerdict verdict) { return verdict == ValueVerdict::Suspicious || verdict == ValueVerdict::Differ; }
bool judged_off(const Judgement& each) { return is_off(each.verdict); }

void add_note(Judgement& judged, const std::string& note) {
  if (!note.empty()) judged.note += cat(judged.note.empty() ? "" : "; ", note);
}

// A name that every file system takes.
std::string folder_name(size_t number, const std::string& op, const std::string& node) {
  std::string name = fmt::format("{:02}-{}-{}", number, op, node);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.' && c != '_') c = '_';
  }
  return name.substr(0, 80);
}

}  // namespace

const ModelGraph& AlignFindings::raised() {
  if (!raised_) raised_.emplace(*options_.model, inputs_, ModelGraph::Form::Raised);
  return *raised_;
}

AlignFindings::Searched AlignFindings::searched_region(const Step& step) {
  if (step.region.nodes.size() != 1) {
    std::vector<std::string> wanted;
    for (const ValueId id : step.region.wanted) wanted.push_back(graph_.name_of(id));
    if (auto region = raised().region(wanted, step.given)) return {std::move(*region), raised()};
  }
  return {step.region, graph_};
}

void AlignFindings::look(const Step& step, std::vector<Judgement>& judged) {
  if (options_.tolerance || std::ranges::none_of(judged, judged_off)) return;
  if (!options_.causes && options_.reproductions.empty()) return;
  const Searched searched = searched_region(step);
  for (size_t i = 0; i < judged.size() && i < step.region.wanted.size(); ++i) {
    if (!judged_off(judged[i])) continue;
    if (options_.causes) {
      judged[i].pattern = error_pattern(step.region, i, step.found[i], options_.seed);
      name_cause(step, searched, i, judged[i]);
    }
    write_folder(step, searched, step.found[i], judged[i]);
  }
}

void AlignFindings::name_cause(const Step& step, const Searched& searched, size_t i, Judgement& judged) {
  if (causes_left_ == 0)
    return add_note(judged, cat("no cause is looked for: only the first ", most_causes, " values that are off are searched"));
  if (options_.progress) options_.progress(cat("cause of ", step.info.node), 0, 0);
  RegionCause answer = region_cause(searched.region, i, judged.floor ? &*judged.floor : nullptr, step.found[i]);
  if (answer.searched) --causes_left_;
  add_note(judged, answer.note);
  if (answer.cause && step.run) {
    const auto run_again = [&](const std::vector<std::pair<ValueId, Data>>& given) {
      NamedData named = step.given;
      for (const auto& [id, data] : given) named[searched.graph.name_of(id)] = data;
      return step.run(named);
    };
    add_note(judged, break_tie(*answer.cause, searched.region, i, run_again, options_.seed));
  }
  judged.cause = std::move(answer.cause);
}

void AlignFindings::write_folder(const Step& step, const Searched& searched, const Data& found, Judgement& judged) {
  if (options_.reproductions.empty()) return;
  if (folders_ == most_folders)
    return add_note(judged, cat("only the first ", most_folders, " findings get a folder: narrow with --node"));
  const std::string name = folder_name(folders_ + 1, step.info.op, step.info.node);
  try {
    const DType stored = found.is_tensor() ? found.tensor().dtype() : DType::F32;
    judged.replay = write_replay(searched.region, stored,
                                 {fmt::format("{}/{}", options_.reproductions, name), options_.replay_device, options_.model_file});
    ++folders_;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped || error.kind() == ErrorKind::Io) throw;
    add_note(judged, cat("no folder replays it: ", error.what()));
  }
}

void refine(AlignResult& result, const AlignResult& unfused, const PlanInfo& plan) {
  const auto inside = [&plan](const std::string& node, const std::string& wanted) {
    const auto placed = std::ranges::find(plan.placements, node, &PlacementInfo::node);
    return placed != plan.placements.end() && std::ranges::find(placed->also, wanted) != placed->also.end();
  };
  if (inside(result.first_divergent, unfused.first_divergent)) result.first_divergent = unfused.first_divergent;
  if (inside(result.first_nonfinite, unfused.first_nonfinite)) {
    result.first_nonfinite = unfused.first_nonfinite;
    result.nonfinite_origin = unfused.nonfinite_origin;
  }
  for (AlignedValue& value : result.values) {
    const auto known = std::ranges::find_if(unfused.values, [&](const AlignedValue& each) {
      return each.cause && (each.node == value.node || inside(value.node, each.node));
    });
    if (is_off(value.verdict) && !value.cause && known != unfused.values.end()) value.cause = known->cause;
  }
}

}  // namespace unmoor
