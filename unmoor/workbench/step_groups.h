#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"

namespace unmoor {

// A runner's steps as ones between values that the file has. A device runs one node of the file in several steps where it has no
// kernel of its own for it: the node's expansion, or a 16-bit node in float32 between two conversions. What these steps pass on
// among them has no name in the file, and so they are run as one. One thread at a time.
class StepGroups {
 public:
  // `known`: whether the file has a value of this name. `runner` must outlive it.
  StepGroups(Runner& runner, const std::function<bool(const std::string&)>& known);

  // One for each step of the runner, with its index. A step that gives no value of the file is empty. Of others `inputs` are
  // values of the file, as far as steps make the others.
  const std::vector<StepInfo>& steps() const { return steps_; }
  // As Runner::run_step; what the first of several steps gives besides is let go.
  std::vector<Data> run(size_t step, const NamedData& inputs);

 private:
  std::vector<size_t> parts_of(size_t step, const std::map<std::string, size_t, std::less<>>& makers) const;

  Runner& runner_;
  std::vector<StepInfo> own_;               // The runner's.
  std::vector<StepInfo> steps_;
  std::vector<std::vector<size_t>> parts_;  // Of each step, in order, itself the last.
};

}  // namespace unmoor
