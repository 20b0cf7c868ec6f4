#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "unmoor/runtime/session.h"

namespace unmoor {

// A model's steps run one by one, each on values that the caller gives: parts of a run, and runs in which some values are
// changed. Values go by the names that StepInfo has. One thread at a time.
class StepWalk {
 public:
  // `runner` must outlive it. Fails with Unsupported where a step cannot be run alone: control flow.
  StepWalk(ModelRunner& runner, const NamedData& inputs);

  const std::vector<StepInfo>& steps() const { return steps_; }
  // The step that makes a value; nothing for inputs and names that are not known.
  std::optional<size_t> maker(const std::string& value) const;

  // Every value of a run on the inputs, these included.
  NamedData all(const std::function<void(const std::string&, size_t, size_t)>& progress);

  // What makes one value of the nearest visible ones above it.
  struct Part {
    std::vector<size_t> steps;    // In order.
    std::set<std::string> reads;  // Visible values and inputs of the model.
  };
  Part between(const std::string& value, const std::function<bool(const std::string&)>& visible) const;
  // The values that a part makes. 16-bit values given are converted to float32 where the step reads that.
  NamedData run(const Part& part, const NamedData& given);

  // What becomes of a run whose values are `exact` when some are changed.
  struct Carried {
    NamedData values;            // Of those that were wanted the ones that differ then.
    std::set<std::string> names;  // All that differ, the changed ones included.
  };
  // Values are let go after their last use.
  Carried carried(const NamedData& changed, const NamedData& exact, const std::set<std::string>& wanted);

 private:
  std::vector<Data> run_step(size_t step, const NamedData& first, const NamedData& second);

  ModelRunner& runner_;
  const NamedData& inputs_;
  std::vector<StepInfo> steps_;
  std::map<std::string, size_t, std::less<>> makers_;
  std::vector<std::vector<std::string>> ended_;  // By step: values that no later one reads.
};

}  // namespace unmoor
