#include "unmoor/runtime/session.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/runtime/state.h"

namespace unmoor {
namespace {

std::string key_of(const Value& value) { return value.origin.name.empty() ? value.name : value.origin.name; }

std::vector<Data> ordered_inputs(const Graph& graph, const NamedData& inputs) {
  std::vector<Data> ordered;
  std::set<std::string_view> known;
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name;
    known.insert(name);
    const auto found = inputs.find(name);
    if (found == inputs.end()) fail(ErrorKind::InvalidArgument, "input '", name, "' was not given");
    ordered.push_back(found->second);
  }
  for (const auto& [name, data] : inputs) {
    if (!known.contains(name)) {
      std::string names;
      for (const auto& each : known) names += cat(names.empty() ? "" : ", ", each);
      fail(ErrorKind::InvalidArgument, "the model has no input '", name, "'; its inputs are: ", names);
    }
  }
  return ordered;
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Session::Session(std::shared_ptr<const Plan> plan) : state_(std::make_unique<State>(std::move(plan))) {}
Session::~Session() = default;

const Plan& Session::plan() const { return state_->plan(); }
std::vector<ValueInfo> Session::values() const {
  std::vector<ValueInfo> result;
  for (const Node& node : plan().graph.nodes()) {
    for (const ValueId id : node.outputs) {
      if (id != no_value && !state_->infos()[Graph::index(id)].name.empty()) result.push_back(state_->infos()[Graph::index(id)]);
    }
  }
  return result;
}

std::vector<Data> Session::run_in_order(std::vector<Data> inputs, Observer* observer) { return state_->run(std::move(inputs), observer); }

NamedData Session::run(const NamedData& inputs, Observer* observer) {
  auto results = state_->run(ordered_inputs(plan().graph, inputs), observer);
  NamedData named;
  for (size_t i = 0; i < results.size(); ++i) named[plan().graph.output_names()[i]] = std::move(results[i]);
  return named;
}

std::vector<double> Session::time_runs(const NamedData& inputs, size_t count, double seconds) {
  const auto ordered = ordered_inputs(plan().graph, inputs);
  std::vector<double> times;
  const double start = now_ms();
  while (times.size() < count || now_ms() - start < seconds * 1000) {
    const double before = now_ms();
    (void)state_->run(ordered, nullptr);
    times.push_back(now_ms() - before);
  }
  return times;
}

std::vector<StepInfo> Session::steps() const {
  std::vector<StepInfo> result;
  for (const Step& step : plan().steps) {
    StepInfo info;
    // A change of layout is no step of the file's, nor is a copy.
    if (std::holds_alternative<RunStep>(step) && !changes_layout(plan().graph, state_->node_of(step))) {
      const Placement& placement = state_->placement_of(step);
      const Node& node = state_->node_of(step);
      info.node = node.origin.name.empty() ? node.name : node.origin.name;
      info.op = node.origin.op.empty() ? node.op : node.origin.op;
      info.kernel = placement.kernel;
      info.device = plan().devices[placement.device]->info().id;
      for (const ValueId id : node.inputs) {
        const bool given = id != no_value && !plan().graph.value(id).constant;
        info.inputs.push_back(given ? key_of(plan().graph.value(id)) : "");
      }
      for (const ValueId id : node.outputs) info.outputs.push_back(id == no_value ? "" : key_of(plan().graph.value(id)));
    }
    result.push_back(std::move(info));
  }
  return result;
}

std::vector<Data> Session::run_step(size_t step, const NamedData& inputs) {
  if (step >= plan().steps.size() || !std::holds_alternative<RunStep>(plan().steps[step])) {
    fail(ErrorKind::InvalidArgument, "step ", step, " cannot be run alone");
  }
  std::vector<Data> ordered;
  const Node& node = state_->node_of(plan().steps[step]);
  for (const ValueId id : node.inputs) {
    const bool wanted = id != no_value && !plan().graph.value(id).constant;
    const auto found = wanted ? inputs.find(key_of(plan().graph.value(id))) : inputs.end();
    if (wanted && found == inputs.end()) fail(ErrorKind::InvalidArgument, "value '", key_of(plan().graph.value(id)), "' was not given");
    ordered.push_back(wanted ? in_plan_layout(plan().graph.value(id), found->second) : Data());
  }
  std::vector<Data> results = state_->run_alone(step, ordered);
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.outputs[i] != no_value) results[i] = in_file_layout(plan().graph.value(node.outputs[i]), std::move(results[i]));
  }
  return results;
}

PlanInfo Session::plan_info() const { return state_->plan_info(); }
size_t Session::late_preparations() const { return state_->late_preparations(); }

}  // namespace unmoor
