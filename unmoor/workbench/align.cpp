#include "unmoor/workbench/align.h"

#include <algorithm>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// A copy that stays when the run goes on.
Data kept(const Data& data) {
  if (data.is_tensor()) return data.tensor().clone();
  if (!data.is_sequence()) return data;
  Sequence copy;
  for (const Data& item : data.sequence().items) copy.items.push_back(kept(item));
  return copy;
}

// Floating values in another floating dtype; everything else as it is.
Data converted(const Data& data, DType dtype) {
  if (!data.is_tensor() || !is_float(data.tensor().dtype()) || !is_float(dtype) || data.tensor().dtype() == dtype) return data;
  Tensor result(TensorType{dtype, data.tensor().shape()});
  store(result, doubles(data.tensor()));
  return result;
}

// Whether a kernel's own error on exact inputs is one that it may have.
bool agrees(const AlignedValue& value, const Metrics& metrics) {
  if (metrics.fine()) return true;
  const Op* const op = all_ops().find(value.op);
  return op != nullptr && op->rounding == Rounding::Quantise && !is_float(value.dtype) && agrees_as_quantised(metrics);
}

// Whether a value at the end of many kernels is close enough: each element within the table, or the whole and every element within what errors
// that add up may reach.
bool agrees_after_run(const AlignedValue& value, const Metrics& metrics, bool given_tolerance) {
  if (metrics.fine()) return true;
  const bool compared = metrics.problem.empty() && metrics.class_mismatch == 0;
  if (given_tolerance || !compared || !is_float(value.dtype)) return false;
  return metrics.rel_l2 <= output_limit(value.dtype) && metrics.over <= output_spread;
}

DType dtype_of(const Data& data) { return data.is_tensor() ? data.tensor().dtype() : DType::F32; }

class Recorder : public Observer {
 public:
  explicit Recorder(NamedData& values) : values_(values) {}
  bool wants(const ValueInfo&) override { return true; }
  void on_value(const ValueInfo& info, const Data& data) override { values_[info.name] = kept(data); }

 private:
  NamedData& values_;
};

// Compares each value of the target as it is shown.
class EntireComparison : public Observer {
 public:
  EntireComparison(const NamedData& expected, const AlignOptions& options) : expected_(expected), options_(options) {}
  bool wants(const ValueInfo&) override { return true; }
  void on_value(const ValueInfo& info, const Data& data) override {
    AlignedValue value{info.name, info.node, info.op, dtype_of(data)};
    value.finite = all_finite(data);
    value.nan = !value.finite && has_nan(data);
    const auto found = expected_.find(info.name);
    if (found != expected_.end()) value.entire = compare(found->second, data, value.dtype, options_.tolerance);
    values.push_back(std::move(value));
  }

  std::vector<AlignedValue> values;

 private:
  const NamedData& expected_;
  const AlignOptions& options_;
};

class Alignment {
 public:
  Alignment(Runner& reference, Runner& target, const NamedData& inputs, const AlignOptions& options)
      : reference_(reference), target_(target), inputs_(inputs), options_(options) {}

  AlignResult run() {
    result_.reference = reference_.name();
    result_.target = target_.name();
    result_.tolerance = options_.tolerance;
    for (const auto& [name, data] : inputs_) expected_[name] = data;
    progress("reference run", 0, 0);
    Recorder recorder(expected_);
    const NamedData expected_outputs = reference_.run(inputs_, &recorder);
    progress("target run", 0, 0);
    EntireComparison entire(expected_, options_);
    const NamedData outputs = target_.run(inputs_, &entire);
    result_.values = std::move(entire.values);
    result_.fallback_nodes = target_.plan().fallback_nodes;
    compare_outputs(expected_outputs, outputs);
    compare_single();
    check_compared();
    judge();
    return std::move(result_);
  }

 private:
  void progress(const std::string& what, size_t done, size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  void compare_outputs(const NamedData& expected, const NamedData& outputs) {
    for (const auto& [name, data] : outputs) {
      AlignedValue value{name, "", "", dtype_of(data)};
      value.finite = all_finite(data);
      const auto found = expected.find(name);
      if (found != expected.end()) value.entire = compare(found->second, data, value.dtype, options_.tolerance);
      value.verdict = value.entire ? entire_verdict(value) : "hidden";
      result_.outputs.push_back(std::move(value));
    }
    // A dump holds more than outputs, and nobody knows which of its values are some.
    if (reference_.steps().empty()) return;
    for (const auto& [name, data] : expected) {
      if (outputs.contains(name)) continue;
      AlignedValue value{name, "", "", dtype_of(data)};
      value.entire = Metrics{};
      value.entire->problem = "not shown";
      value.verdict = "differ";
      result_.outputs.push_back(std::move(value));
    }
  }

  // Fails with InvalidArgument if the two show nothing under one name, which must not read as a match.
  void check_compared() const {
    const auto compared = [](const AlignedValue& value) { return value.single || value.entire; };
    if (std::ranges::none_of(result_.values, compared) && std::ranges::none_of(result_.outputs, compared)) {
      fail(ErrorKind::InvalidArgument, reference_.name(), " and ", target_.name(), " show no value of the same name");
    }
  }

  bool selected(const StepInfo& step) const {
    return (options_.nodes.empty() || wanted_nodes_.contains(step.node)) && (options_.ops.empty() || std::ranges::find(options_.ops, step.op) != options_.ops.end());
  }

  // Which steps the nodes asked for are in: a fused step stands for all its nodes. Fails with InvalidArgument on a name that selects nothing, which
  // must not read as a match.
  void find_wanted(const std::vector<StepInfo>& steps) {
    const auto placements = options_.nodes.empty() ? std::vector<PlacementInfo>() : target_.plan().placements;
    for (const std::string& node : options_.nodes) {
      const auto placed = std::ranges::find_if(placements, [&](const PlacementInfo& each) { return std::ranges::find(each.also, node) != each.also.end(); });
      const std::string& name = placed == placements.end() ? node : placed->node;
      if (std::ranges::find(steps, name, &StepInfo::node) == steps.end()) {
        fail(ErrorKind::InvalidArgument, "no step of ", target_.name(), " is called '", node, "'");
      }
      wanted_nodes_.insert(name);
    }
    for (const std::string& op : options_.ops) {
      if (std::ranges::find(steps, op, &StepInfo::op) == steps.end()) {
        fail(ErrorKind::InvalidArgument, "no step of ", target_.name(), " runs the operator '", op, "'");
      }
    }
  }

  // The inputs of a step from the reference's values, rounded to what the target stores; empty if one is not shown.
  std::optional<NamedData> step_inputs(const StepInfo& step) const {
    NamedData given;
    for (const std::string& name : step.inputs) {
      if (name.empty()) continue;
      const auto found = expected_.find(name);
      if (found == expected_.end()) return std::nullopt;
      const auto stored = stored_.find(name);
      given[name] = stored == stored_.end() ? found->second : converted(found->second, stored->second);
    }
    return given;
  }

  // What the reference makes of exactly these inputs; its recorded values if it cannot run a step (a dump).
  std::vector<Data> expected_outputs(const StepInfo& step, const NamedData& given) {
    const auto found = reference_steps_.find(step.outputs.at(0));
    if (found != reference_steps_.end() && found->second.outputs == step.outputs) {
      NamedData widened;
      for (const std::string& name : found->second.step.inputs) {
        if (name.empty()) continue;
        const auto value = given.find(name);
        const auto recorded = expected_.find(name);
        if (value == given.end() || recorded == expected_.end()) return recorded_outputs(step);
        widened[name] = converted(value->second, dtype_of(recorded->second));
      }
      return reference_.run_step(found->second.index, widened);
    }
    return recorded_outputs(step);
  }

  std::vector<Data> recorded_outputs(const StepInfo& step) const {
    std::vector<Data> outputs;
    for (const std::string& name : step.outputs) {
      const auto found = expected_.find(name);
      outputs.push_back(found == expected_.end() ? Data() : found->second);
    }
    return outputs;
  }

  void index_reference_steps() {
    const auto steps = reference_.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].outputs.empty() && !steps[i].outputs[0].empty()) reference_steps_[steps[i].outputs[0]] = {i, steps[i], steps[i].outputs};
    }
  }

  void compare_single() {
    index_reference_steps();
    for (const auto& [name, data] : inputs_) stored_[name] = dtype_of(data);
    std::map<std::string, AlignedValue*, std::less<>> by_name;
    for (AlignedValue& value : result_.values) {
      stored_[value.name] = value.dtype;
      by_name[value.name] = &value;
    }
    const auto steps = target_.steps();
    find_wanted(steps);
    for (size_t i = 0; i < steps.size(); ++i) {
      progress("kernels alone", i, steps.size());
      if (steps[i].node.empty() || steps[i].outputs.empty() || steps[i].outputs[0].empty() || !selected(steps[i])) continue;
      if (!by_name.contains(steps[i].outputs[0])) continue;
      const auto given = step_inputs(steps[i]);
      if (!given) continue;
      const auto actual = target_.run_step(i, *given);
      const auto expected = expected_outputs(steps[i], *given);
      for (size_t k = 0; k < actual.size() && k < expected.size(); ++k) {
        const auto value = by_name.find(steps[i].outputs[k]);
        if (value == by_name.end() || !expected[k] || !actual[k]) continue;
        value->second->single = compare(expected[k], actual[k], value->second->dtype, options_.tolerance);
      }
    }
  }

  void judge() {
    // A dump has no kernels to run alone: its values are judged as they are.
    const bool without_kernels = target_.steps().empty();
    result_.kernels_alone = !without_kernels;
    std::set<std::string> finite;
    for (const auto& [name, data] : inputs_) {
      if (all_finite(data)) finite.insert(name);
    }
    for (AlignedValue& value : result_.values) {
      if (value.single) value.verdict = agrees(value, *value.single) ? "match" : "differ";
      else value.verdict = without_kernels && value.entire ? entire_verdict(value) : "hidden";
      if (!value.entire) result_.hidden.push_back(value.node);
      if (value.verdict == "differ" && result_.first_divergent.empty()) result_.first_divergent = value.node.empty() ? value.name : value.node;
      if (value.finite) finite.insert(value.name);
    }
    find_nonfinite(finite);
    const auto differs = [](const AlignedValue& value) { return value.verdict == "differ"; };
    const bool differ = std::ranges::any_of(result_.values, differs) || std::ranges::any_of(result_.outputs, differs);
    result_.verdict = differ ? "differ" : "match";
  }

  std::string entire_verdict(const AlignedValue& value) const {
    return agrees_after_run(value, *value.entire, options_.tolerance.has_value()) ? "match" : "differ";
  }

  void find_nonfinite(const std::set<std::string>& finite) {
    // Infinities that the reference has at the same places, such as those of a mask, are meant.
    const auto first = std::ranges::find_if(result_.values, [](const AlignedValue& value) {
      return !value.finite && (value.nan || !value.entire || !value.entire->problem.empty() || value.entire->class_mismatch > 0);
    });
    if (first == result_.values.end()) return;
    result_.first_nonfinite = first->node.empty() ? first->name : first->node;
    result_.nonfinite_origin = "its inputs are finite";
    for (const StepInfo& step : target_.steps()) {
      if (std::ranges::find(step.outputs, first->name) == step.outputs.end()) continue;
      for (const std::string& name : step.inputs) {
        if (!name.empty() && !finite.contains(name)) result_.nonfinite_origin = cat("its input '", name, "' is not finite either");
      }
    }
  }

  struct ReferenceStep {
    size_t index = 0;
    StepInfo step;
    std::vector<std::string> outputs;
  };

  Runner& reference_;
  Runner& target_;
  const NamedData& inputs_;
  const AlignOptions& options_;
  NamedData expected_;                               // The reference's values by name.
  std::map<std::string, DType, std::less<>> stored_;  // How the target stores each.
  std::map<std::string, ReferenceStep, std::less<>> reference_steps_;  // By first output.
  std::set<std::string> wanted_nodes_;                                 // If only some were asked for.
  AlignResult result_;
};

}  // namespace

double output_limit(DType stored) {
  switch (stored) {
    case DType::F64: return 1e-10;
    case DType::F32: return 1e-4;
    case DType::F16: return 1e-2;
    default: return 5e-2;
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
}

AlignResult align(Runner& reference, Runner& target, const NamedData& inputs, const AlignOptions& options) {
  return Alignment(reference, target, inputs, options).run();
}

}  // namespace unmoor
