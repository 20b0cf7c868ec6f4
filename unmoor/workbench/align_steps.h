#pragma once

#include <map>
#include <set>

#include "unmoor/workbench/align_findings.h"
#include "unmoor/workbench/step_groups.h"

namespace unmoor {

// A copy that stays when the run that showed it goes on.
Data kept(const Data& data);

// The target's kernels, each run alone as soon as the reference has shown what it reads. Both sides get the same bits: the
// reference's values, rounded to what the target stores. Of a target that has no kernels to run, a dump, each value is judged by
// what the model makes of the target's own nearest values above it. Values are held as long as a kernel that has not run yet
// needs them. One thread at a time.
class AlignSteps {
 public:
  struct Setting {
    Runner& reference;
    Runner& target;
    const NamedData& inputs;
    const std::map<std::string, DType, std::less<>>& stored;  // Of the target's values.
    const ModelGraph* graph;                                  // Null if the model is not known.
    bool exact_reference;                                     // Then exact results come from the graph.
    const AlignOptions& options;
    JudgeOptions judging;
    bool own_values = false;  // on_value gets the target's values, not the reference's.
  };
  explicit AlignSteps(const Setting& setting) : setting_(setting) {}

  // Chooses the steps to run: those asked for, whose first output is in `comparable`. Fails with InvalidArgument where a node or
  // an operator that was asked for is in no step.
  void plan(const std::set<std::string>& comparable);
  bool needs(const std::string& value) const { return uses_.contains(value); }
  void on_value(const std::string& name, const Data& data);
  void finish();  // The reference has run: what can still be run is.
  std::map<std::string, Judgement, std::less<>>& judgements() { return judgements_; }  // By value.
  double floor_ms() const { return floor_ms_; }

 private:
  struct Waiting {
    size_t step = 0;
    std::set<std::string> missing;  // Names that the reference has not shown yet.
    bool done = false;
  };

  std::vector<StepInfo> steps_between(const std::set<std::string>& visible) const;
  void choose_wanted();
  bool selected(const StepInfo& step) const;
  void run(Waiting& waiting);
  std::optional<NamedData> given_for(const StepInfo& step) const;
  void judge(size_t number, const NamedData& given, std::span<const Data> actual);
  // What is not explained as the file writes it may be by the operator that a chain of nodes stands for.
  void judge_raised(const StepInfo& step, const NamedData& given, const std::vector<size_t>& places,
                    std::span<const Data> expected, std::span<const Data> found, const JudgeOptions& judging,
                    std::vector<Judgement>& judged);
  // Draws the errors of what is off, of the first few values.
  void draw_errors(std::span<const Data> expected, std::span<const Data> found, std::vector<Judgement>& judged);
  std::map<size_t, DType> rounded_inside(const ModelGraph& graph, const Region& region);
  AlignFindings& findings();
  std::vector<Data> expected_for(const StepInfo& step, const NamedData& given);
  void release(const std::string& name);

  Setting setting_;
  std::optional<StepGroups> groups_;  // Of a target that has kernels.
  std::vector<StepInfo> steps_;
  std::vector<Waiting> waiting_;
  std::map<std::string, std::vector<size_t>, std::less<>> waits_on_;  // Name: indices into waiting_.
  std::map<std::string, size_t, std::less<>> uses_;
  NamedData held_;
  std::optional<std::map<std::string, DType, std::less<>>> reference_types_;  // Of the values that it shows.
  std::set<std::string> wanted_nodes_;
  std::map<std::string, std::pair<size_t, StepInfo>, std::less<>> reference_steps_;  // By first output.
  std::map<std::string, Judgement, std::less<>> judgements_;
  bool reference_runs_ = true;
  size_t planes_left_ = 5;  // To draw.
  std::optional<AlignFindings> findings_;
  double floor_ms_ = 0;
};

}  // namespace unmoor
