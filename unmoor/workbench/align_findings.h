#pragma once

#include <functional>
#include <optional>
#include <span>

#include "unmoor/workbench/align.h"
#include "unmoor/workbench/noise/model_noise.h"

namespace unmoor {

// Looks closer at what is off: whether the error is systematic, the cause, and a folder that replays it. One thread at a time.
class AlignFindings {
 public:
  // The target's kernel of this step on other inputs, by name; empty where it has none to run alone.
  using RunStep = std::function<std::vector<Data>(const NamedData& given)>;
  struct Step {
    const StepInfo& info;
    const NamedData& given;      // What it was given.
    const Region& region;        // What makes its outputs, of `graph`.
    std::span<const Data> found;  // By wanted output of the region.
    RunStep run;
  };
  // All must outlive it.
  AlignFindings(const AlignOptions& options, const ModelGraph& graph, const NamedData& inputs)
      : options_(options), graph_(graph), inputs_(inputs) {}

  // Adds to the judgements of the step's outputs, by wanted output of the region, those that are off.
  void look(const Step& step, std::vector<Judgement>& judged);
  // The graph in which chains of nodes stand as the operators they mean: made when it is first needed.
  const ModelGraph& raised();

 private:
  // The region that is searched: one node if anything makes it so.
  struct Searched {
    Region region;
    const ModelGraph& graph;
  };
  Searched searched_region(const Step& step);
  void name_cause(const Step& step, const Searched& searched, size_t i, Judgement& judged);
  void write_folder(const Step& step, const Searched& searched, const Data& found, Judgement& judged);

  static constexpr size_t most_causes = 5;    // Each takes up to a minute or so.
  static constexpr size_t most_folders = 20;  // Each may hold all weights of its node.
  const AlignOptions& options_;
  const ModelGraph& graph_;
  const NamedData& inputs_;
  std::optional<ModelGraph> raised_;
  size_t causes_left_ = most_causes;
  size_t folders_ = 0;
};

}  // namespace unmoor
