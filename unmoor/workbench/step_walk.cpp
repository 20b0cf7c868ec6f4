#include "unmoor/workbench/step_walk.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// Floating values in the dtype that a step reads.
Data fitted(const Data& data, DType wanted) {
  if (!data.is_tensor() || !is_float(data.tensor().dtype()) || !is_float(wanted) || data.tensor().dtype() == wanted) return data;
  Tensor result(TensorType{wanted, data.tensor().shape()});
  store(result, std::span<const double>(doubles(data.tensor())));
  return result;
}

bool same_bits(const Data& a, const Data& b) {
  return a.is_tensor() && b.is_tensor() && a.tensor().type() == b.tensor().type() && a.tensor().dtype() != DType::String &&
         std::ranges::equal(a.tensor().bytes(), b.tensor().bytes());
}

}  // namespace

StepWalk::StepWalk(ModelRunner& runner, const NamedData& inputs) : runner_(runner), inputs_(inputs) {
  const Plan& plan = runner_.session_for(inputs_).plan();
  steps_ = runner_.steps();
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (const auto* const call = std::get_if<CallStep>(&plan.steps[i])) {
      const Node& node = plan.graph.node(plan.placements[call->placement].node);
      fail(ErrorKind::Unsupported, node.op, " '", node.origin.name, "' cannot be run alone: what happens inside of control flow is not seen");
    }
    for (const std::string& output : steps_[i].outputs) {
      if (!output.empty()) makers_[output] = i;
    }
  }
  std::map<std::string, size_t> last;
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const auto* names : {&steps_[i].inputs, &steps_[i].outputs}) {
      for (const std::string& name : *names) last[name] = i;
    }
  }
  ended_.resize(steps_.size());
  for (const auto& [name, step] : last) ended_[step].push_back(name);
}

std::optional<size_t> StepWalk::maker(const std::string& value) const {
  const auto found = makers_.find(value);
  return found == makers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Data> StepWalk::run_step(size_t step, const NamedData& first, const NamedData& second) {
  check_stop();
  const Plan& plan = runner_.default_session().plan();
  const auto& placement = plan.placements[std::get<RunStep>(plan.steps[step]).placement];
  const Node& node = plan.graph.node(placement.node);
  NamedData given;
  for (size_t i = 0; i < steps_[step].inputs.size(); ++i) {
    const std::string& name = steps_[step].inputs[i];
    if (name.empty() || given.contains(name)) continue;
    auto found = first.find(name);
    if (found == first.end() && (found = second.find(name)) == second.end())
      fail(ErrorKind::Internal, "a step of '", steps_[step].node, "' needs '", name, "'");
    const auto* const type = std::get_if<TensorType>(&plan.graph.value(node.inputs[i]).type);
    given[name] = type == nullptr ? found->second : fitted(found->second, type->dtype);
  }
  return runner_.run_step(step, given);
}

NamedData StepWalk::all(const std::function<void(const std::string&, size_t, size_t)>& progress) {
  NamedData values = inputs_;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].outputs.empty()) continue;
    if (progress) progress("float32 run", i, steps_.size());
    std::vector<Data> made = run_step(i, values, {});
    for (size_t k = 0; k < made.size(); ++k) {
      if (!steps_[i].outputs[k].empty()) values[steps_[i].outputs[k]] = std::move(made[k]);
    }
  }
  return values;
}

StepWalk::Part StepWalk::between(const std::string& value, const std::function<bool(const std::string&)>& visible) const {
  Part part;
  std::set<size_t> steps;
  std::vector<std::string> open{value};
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto made_by = maker(name);
    if (!made_by || (name != value && visible(name))) {
      part.reads.insert(name);
      continue;
    }
    if (!steps.insert(*made_by).second) continue;
    for (const std::string& input : steps_[*made_by].inputs) {
      if (!input.empty()) open.push_back(input);
    }
  }
  part.steps.assign(steps.begin(), steps.end());
  return part;
}

NamedData StepWalk::run(const Part& part, const NamedData& given) {
  NamedData values;
  for (const size_t step : part.steps) {
    std::vector<Data> made = run_step(step, values, given);
    for (size_t k = 0; k < made.size(); ++k) {
      if (!steps_[step].outputs[k].empty()) values[steps_[step].outputs[k]] = std::move(made[k]);
    }
  }
  return values;
}

StepWalk::Carried StepWalk::carried(const NamedData& changed, const NamedData& exact, const std::set<std::string>& wanted) {
  Carried result{changed, {}};
  for (const auto& [name, data] : changed) result.names.insert(name);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const bool reads = std::ranges::any_of(steps_[i].inputs, [&](const std::string& name) { return result.values.contains(name); });
    std::vector<Data> made = reads ? run_step(i, result.values, exact) : std::vector<Data>();
    for (size_t k = 0; k < made.size(); ++k) {
      const std::string& name = steps_[i].outputs[k];
      if (name.empty() || changed.contains(name) || same_bits(made[k], exact.at(name))) continue;
      result.values[name] = std::move(made[k]);
      result.names.insert(name);
    }
    for (const std::string& name : ended_[i]) {
      if (!wanted.contains(name)) result.values.erase(name);
    }
  }
  return result;
}

}  // namespace unmoor
