#include "unmoor/workbench/step_groups.h"

#include <algorithm>
#include <set>

#include "unmoor/base/error.h"

namespace unmoor {

StepGroups::StepGroups(Runner& runner, const std::function<bool(const std::string&)>& known) : runner_(runner), own_(runner.steps()) {
  std::map<std::string, size_t, std::less<>> makers;  // Of values that the file does not have.
  for (size_t i = 0; i < own_.size(); ++i) {
    for (const std::string& output : own_[i].outputs) {
      if (!output.empty() && !known(output)) makers.emplace(output, i);
    }
  }
  for (size_t i = 0; i < own_.size(); ++i) {
    parts_.push_back(parts_of(i, makers));
    StepInfo step = own_[i];
    if (std::ranges::none_of(step.outputs, [&](const std::string& name) { return !name.empty() && known(name); })) step = {};
    if (parts_[i].size() > 1 && !step.outputs.empty()) {
      std::set<std::string> reads;
      for (const size_t part : parts_[i]) reads.insert(own_[part].inputs.begin(), own_[part].inputs.end());
      std::erase_if(reads, [&makers](const std::string& name) { return name.empty() || makers.contains(name); });
      step.inputs.assign(reads.begin(), reads.end());
    }
    steps_.push_back(std::move(step));
  }
}

std::vector<size_t> StepGroups::parts_of(size_t step, const std::map<std::string, size_t, std::less<>>& makers) const {
  std::set<size_t> parts{step};
  std::vector<size_t> open{step};
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    for (const std::string& input : own_[at].inputs) {
      const auto maker = makers.find(input);
      if (maker != makers.end() && parts.insert(maker->second).second) open.push_back(maker->second);
    }
  }
  return {parts.begin(), parts.end()};
}

std::vector<Data> StepGroups::run(size_t step, const NamedData& inputs) {
  if (parts_.at(step).size() == 1) return runner_.run_step(step, inputs);
  NamedData values = inputs;
  std::vector<Data> made;
  for (const size_t part : parts_[step]) {
    NamedData given;
    for (const std::string& name : own_[part].inputs) {
      if (name.empty()) continue;
      const auto found = values.find(name);
      if (found == values.end()) fail(ErrorKind::InvalidArgument, "value '", name, "' was not given");
      given[name] = found->second;
    }
    made = runner_.run_step(part, given);
    if (part == step) break;
    for (size_t i = 0; i < made.size() && i < own_[part].outputs.size(); ++i) {
      if (!own_[part].outputs[i].empty()) values[own_[part].outputs[i]] = made[i];
    }
  }
  return made;
}

}  // namespace unmoor
