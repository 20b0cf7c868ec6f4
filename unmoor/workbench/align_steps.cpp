#include "unmoor/workbench/align_steps.h"

#include <algorithm>
#include <chrono>

#include "unmoor/base/error.h"
#include "unmoor/ops/real.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/tensor/unset.h"
#include "unmoor/workbench/baseline.h"
#include "unmoor/workbench/noise/exact_memo.h"

namespace unmoor {
namespace {

DType dtype_of(const Data& data) { return data.is_tensor() ? data.tensor().dtype() : DType::F32; }

// Floating values in another floating dtype; everything else as it is.
Data converted(const Data& data, DType dtype) {
  if (!data.is_tensor() || !is_float(data.tensor().dtype()) || !is_float(dtype) || data.tensor().dtype() == dtype) return data;
  if (dtype == DType::F64) return float64_tensor(data.tensor());
  Tensor result = unset_tensor({dtype, data.tensor().shape()});
  store(result, RealInput(data.tensor()).numbers());
  return result;
}

// What comes from outside in float64, once for all runs of the region.
Region widened(Region region) {
  for (auto& [id, data] : region.given) data = in_float64(data);
  return region;
}

std::vector<Data> chosen(std::span<const Data> outputs, const std::vector<size_t>& places) {
  std::vector<Data> found;
  for (const size_t place : places) found.push_back(place < outputs.size() ? outputs[place] : Data());
  return found;
}

}  // namespace

Data kept(const Data& data) {
  if (data.is_tensor()) return data.tensor().clone();
  if (!data.is_sequence()) return data;
  Sequence copy;
  for (const Data& item : data.sequence().items) copy.items.push_back(kept(item));
  return copy;
}

// A fused step stands for all its nodes.
void AlignSteps::choose_wanted() {
  const auto placements = setting_.options.nodes.empty() ? std::vector<PlacementInfo>() : setting_.target.plan().placements;
  for (const std::string& node : setting_.options.nodes) {
    const auto placed = std::ranges::find_if(
        placements, [&](const PlacementInfo& each) { return std::ranges::find(each.also, node) != each.also.end(); });
    const std::string& name = placed == placements.end() ? node : placed->node;
    if (std::ranges::find(steps_, name, &StepInfo::node) == steps_.end()) {
      fail(ErrorKind::InvalidArgument, "no step of ", setting_.target.name(), " is called '", node, "'");
    }
    wanted_nodes_.insert(name);
  }
  for (const std::string& op : setting_.options.ops) {
    if (std::ranges::find(steps_, op, &StepInfo::op) == steps_.end()) {
      fail(ErrorKind::InvalidArgument, "no step of ", setting_.target.name(), " runs the operator '", op, "'");
    }
  }
}

bool AlignSteps::selected(const StepInfo& step) const {
  const auto& ops = setting_.options.ops;
  return (wanted_nodes_.empty() || wanted_nodes_.contains(step.node)) &&
         (ops.empty() || std::ranges::find(ops, step.op) != ops.end());
}

// What lies between the values that a dump shows, each as one step.
std::vector<StepInfo> AlignSteps::steps_between(const std::set<std::string>& visible) const {
  std::vector<StepInfo> steps;
  for (const Node& node : setting_.graph->graph().nodes()) {
    for (const ValueId id : node.outputs) {
      if (id == no_value || !visible.contains(setting_.graph->name_of(id))) continue;
      const auto above = setting_.graph->visible_above(id, visible);
      steps.push_back({node.origin.name.empty() ? node.name : node.origin.name,
                       node.origin.op.empty() ? node.op : node.origin.op,
                       "",
                       "",
                       {above.begin(), above.end()},
                       {setting_.graph->name_of(id)}});
    }
  }
  return steps;
}

void AlignSteps::plan(const std::set<std::string>& comparable) {
  steps_ = setting_.own_values ? steps_between(comparable) : setting_.target.steps();
  choose_wanted();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const StepInfo& step = steps_[i];
    if (step.node.empty() || step.outputs.empty() || step.outputs[0].empty() || !selected(step) ||
        !comparable.contains(step.outputs[0]))
      continue;
    Waiting waiting{i, {}, false};
    for (const auto* names : {&step.inputs, &step.outputs}) {
      for (const std::string& name : *names) {
        if (!name.empty()) waiting.missing.insert(name);
      }
    }
    for (const std::string& name : waiting.missing) {
      ++uses_[name];
      waits_on_[name].push_back(waiting_.size());
    }
    waiting_.push_back(std::move(waiting));
  }
  for (const auto& [name, data] : setting_.inputs) on_value(name, data);
}

void AlignSteps::on_value(const std::string& name, const Data& data) {
  if (!uses_.contains(name) || held_.contains(name)) return;
  if (reference_steps_.empty() && !setting_.own_values) {
    const auto steps = setting_.reference.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].outputs.empty() && !steps[i].outputs[0].empty()) reference_steps_[steps[i].outputs[0]] = {i, steps[i]};
    }
  }
  held_[name] = kept(data);
  // A reference whose own kernels are asked for what is expected cannot run them in the middle of its run.
  const bool can_run_now =
      setting_.own_values || reference_steps_.empty() || (setting_.exact_reference && setting_.graph != nullptr);
  for (const size_t i : waits_on_[name]) {
    waiting_[i].missing.erase(name);
    if (waiting_[i].missing.empty() && !waiting_[i].done && can_run_now) run(waiting_[i]);
  }
}

// What the reference does not show of a step's results does not keep it from being run.
void AlignSteps::finish() {
  reference_runs_ = false;
  for (Waiting& each : waiting_) {
    if (!each.done) run(each);
  }
}

void AlignSteps::release(const std::string& name) {
  const auto found = uses_.find(name);
  if (found != uses_.end() && --found->second == 0) {
    uses_.erase(found);
    held_.erase(name);
  }
}

std::optional<NamedData> AlignSteps::given_for(const StepInfo& step) const {
  NamedData given;
  for (const std::string& name : step.inputs) {
    if (name.empty()) continue;
    const auto found = held_.find(name);
    if (found == held_.end()) return std::nullopt;
    const auto stored = setting_.stored.find(name);
    given[name] = stored == setting_.stored.end() ? found->second : converted(found->second, stored->second);
  }
  return given;
}

void AlignSteps::run(Waiting& waiting) {
  waiting.done = true;
  const StepInfo& step = steps_[waiting.step];
  if (setting_.options.progress) setting_.options.progress("kernels alone", waiting.step, steps_.size());
  if (const auto given = given_for(step)) {
    const auto shown = setting_.own_values ? held_.find(step.outputs[0]) : held_.end();
    if (!setting_.own_values)
      judge(waiting.step, *given, setting_.target.run_step(waiting.step, *given));
    else if (shown != held_.end())
      judge(waiting.step, *given, std::vector<Data>{shown->second});
  }
  std::set<std::string> names(step.inputs.begin(), step.inputs.end());
  names.insert(step.outputs.begin(), step.outputs.end());
  for (const std::string& name : names) release(name);
}

void AlignSteps::judge(size_t number, const NamedData& given, std::span<const Data> actual) {
  const StepInfo& step = steps_[number];
  const auto start = std::chrono::steady_clock::now();
  // Outputs that nobody reads may be missing in the graph.
  std::optional<Region> region;
  std::vector<size_t> places;
  if (setting_.graph != nullptr) {
    std::vector<std::string> wanted;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i].empty() || !setting_.graph->find(step.outputs[i])) continue;
      wanted.push_back(step.outputs[i]);
      places.push_back(i);
    }
    if (!wanted.empty()) region = setting_.graph->region(wanted, given);
  }
  std::vector<Data> expected;
  const ExactMemo memo;
  std::optional<Region> wide;
  const bool exact = setting_.exact_reference || setting_.own_values;
  if (region && exact) {
    try {
      wide = widened(*region);
      expected = exact_results(*wide);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      region.reset();
    }
  }
  if (setting_.own_values && !region) return;
  if (!region || !exact) {
    const std::vector<Data> all = expected_for(step, given);
    if (!region) {
      places.clear();
      for (size_t i = 0; i < step.outputs.size(); ++i) places.push_back(i);
    }
    for (const size_t place : places) expected.push_back(place < all.size() ? all[place] : Data());
  }
  const std::vector<Data> found = chosen(actual, places);
  JudgeOptions judging = setting_.judging;
  judging.both_round = std::ranges::any_of(
      expected, [](const Data& each) { return each && dtype_of(each) != DType::F64 && is_float(dtype_of(each)); });
  std::vector<Judgement> judged = judge_kernel(!region ? nullptr : wide ? &*wide : &*region, step.op, expected, found, judging);
  if (region) judge_raised(step, given, places, expected, found, judging, judged);
  for (size_t i = 0; i < judged.size() && setting_.options.baseline != nullptr; ++i) {
    setting_.options.baseline->weigh_kernel(step.inputs, step.outputs[places[i]], dtype_of(found[i]), judged[i]);
  }
  if (region) {
    AlignFindings::RunStep run_again;
    if (!setting_.own_values) run_again = [&](const NamedData& other) { return chosen(setting_.target.run_step(number, other), places); };
    findings().look({step, given, *region, found, run_again}, judged);
  }
  draw_errors(expected, found, judged);
  for (size_t i = 0; i < judged.size(); ++i) {
    judged[i].floor.reset();
    if (judged[i].verdict != ValueVerdict::Hidden) judgements_[step.outputs[places[i]]] = std::move(judged[i]);
  }
  floor_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

AlignFindings& AlignSteps::findings() {
  if (!findings_) findings_.emplace(setting_.options, *setting_.graph, setting_.inputs);
  return *findings_;
}

void AlignSteps::judge_raised(const StepInfo& step, const NamedData& given, const std::vector<size_t>& places,
                              std::span<const Data> expected, std::span<const Data> found, const JudgeOptions& judging,
                              std::vector<Judgement>& judged) {
  const auto is_off = [](const Judgement& each) {
    return each.metrics.excess_e && (each.verdict == ValueVerdict::Suspicious || each.verdict == ValueVerdict::Differ);
  };
  if (std::ranges::none_of(judged, is_off)) return;
  std::vector<std::string> wanted;
  for (const size_t place : places) wanted.push_back(step.outputs[place]);
  const auto region = findings().raised().region(wanted, given);
  if (!region) return;
  std::vector<Judgement> others = judge_kernel(&*region, step.op, expected, found, judging);
  for (size_t i = 0; i < judged.size(); ++i) {
    if (is_off(judged[i]) && others[i].verdict == ValueVerdict::Explained) judged[i] = std::move(others[i]);
  }
}

void AlignSteps::draw_errors(std::span<const Data> expected, std::span<const Data> found, std::vector<Judgement>& judged) {
  for (size_t i = 0; i < judged.size() && planes_left_ > 0; ++i) {
    const bool is_off = judged[i].verdict == ValueVerdict::Suspicious || judged[i].verdict == ValueVerdict::Differ;
    if (!is_off || !expected[i].is_tensor() || !found[i].is_tensor()) continue;
    const Tensor& exact = expected[i].tensor();
    const Tensor& actual = found[i].tensor();
    if (!is_float(exact.dtype()) || !is_float(actual.dtype()) || exact.shape() != actual.shape()) continue;
    judged[i].plane = error_plane(doubles(exact), doubles(actual), exact.shape());
    if (!judged[i].plane) continue;
    --planes_left_;
    if (judged[i].pattern) agree(*judged[i].pattern, *judged[i].plane);
  }
}

// What the reference makes of exactly these inputs; its recorded values if it cannot run the step.
std::vector<Data> AlignSteps::expected_for(const StepInfo& step, const NamedData& given) {
  const auto found = reference_steps_.find(step.outputs.at(0));
  if (!reference_runs_ && found != reference_steps_.end() && found->second.second.outputs == step.outputs) {
    NamedData widened;
    bool known = true;
    for (const std::string& name : found->second.second.inputs) {
      if (name.empty()) continue;
      const auto value = given.find(name);
      const auto recorded = held_.find(name);
      known = known && value != given.end() && recorded != held_.end();
      if (known) widened[name] = converted(value->second, dtype_of(recorded->second));
    }
    if (known) return setting_.reference.run_step(found->second.first, widened);
  }
  std::vector<Data> outputs;
  for (const std::string& name : step.outputs) {
    const auto recorded = held_.find(name);
    outputs.push_back(recorded == held_.end() ? Data() : recorded->second);
  }
  return outputs;
}

}  // namespace unmoor
