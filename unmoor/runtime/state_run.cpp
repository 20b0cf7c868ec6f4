#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"
#include "unmoor/runtime/place.h"
#include "unmoor/runtime/state.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A float tensor in the wider dtype that the plan runs in.
Data widened_data(const Tensor& tensor, DType dtype) {
  Tensor wide(TensorType{dtype, tensor.shape()});
  store(wide, doubles(tensor));
  return wide;
}

Data widened_items(const std::shared_ptr<const Type>& wanted, const Data& data);

// Data that is no tensor, with the floats in it widened where the plan runs in float64.
Data widened_items(const Type& wanted, const Data& data) {
  if (const auto* tensor = std::get_if<TensorType>(&wanted)) {
    const bool widens = tensor->dtype == DType::F64 && data.is_tensor() && is_float(data.tensor().dtype()) && data.tensor().dtype() != DType::F64;
    return widens ? widened_data(data.tensor(), DType::F64) : data;
  }
  if (const auto* optional = std::get_if<OptionalType>(&wanted)) return widened_items(optional->element, data);
  if (const auto* sequence = std::get_if<SequenceType>(&wanted); sequence != nullptr && data.is_sequence()) {
    Sequence result;
    for (const Data& item : data.sequence().items) result.items.push_back(widened_items(sequence->element, item));
    return result;
  }
  if (const auto* map = std::get_if<MapType>(&wanted); map != nullptr && data.is_map()) {
    Map result{data.map().keys, {}};
    for (const Data& value : data.map().values) result.values.push_back(widened_items(map->value, value));
    return result;
  }
  return data;
}

Data widened_items(const std::shared_ptr<const Type>& wanted, const Data& data) { return wanted ? widened_items(*wanted, data) : data; }

// The data as the plan wants it: widened where the plan runs in float64. Fails with InvalidArgument, naming it `what`.
Data fitted(const Value& value, const Data& data, const std::string& what) {
  const auto* wanted = std::get_if<TensorType>(&value.type);
  if (wanted == nullptr) return widened_items(value.type, data);
  if (!data.is_tensor()) fail(ErrorKind::InvalidArgument, what, " must be a tensor");
  const TensorType& found = data.tensor().type();
  if (wanted->is_known() && found.shape != wanted->shape) {
    fail(ErrorKind::InvalidArgument, what, " has shape ", found.shape, ", not ", wanted->shape);
  }
  if (found.dtype == wanted->dtype) return data;
  if (wanted->dtype == DType::F64 && is_float(found.dtype)) return widened_data(data.tensor(), DType::F64);
  fail(ErrorKind::InvalidArgument, what, " is ", found.dtype, ", not ", wanted->dtype);
}

}  // namespace

Data Session::State::checked_input(size_t index, const Data& data) const {
  const Value& value = plan_->graph.value(plan_->graph.inputs()[index]);
  return fitted(value, data, cat("input '", value.name, "'"));
}

void Session::State::execute_step(const Step& step, Observer* observer) {
  try {
    if (const auto* run = std::get_if<RunStep>(&step)) {
      run_step(*run);
    } else if (const auto* copy = std::get_if<CopyStep>(&step)) {
      copy_step(*copy);
    } else {
      call_step(std::get<CallStep>(step), observer);
    }
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::OutOfMemory, "memory ran out");
  } catch (const std::length_error&) {
    fail(ErrorKind::OutOfMemory, "a list of more elements than any memory holds was asked for");
  }
}

void Session::State::execute(const Step& step, Observer* observer) {
  try {
    execute_step(step, observer);
  } catch (Error& error) {
    held_.clear();
    if (!std::holds_alternative<CopyStep>(step)) {
      const Node& node = node_of(step);
      const std::string& kernel = placement_of(step).kernel;  // Empty where it is chosen at run time.
      error.note(cat("in ", node.op, " '", node.origin.name.empty() ? node.name : node.origin.name, "'", kernel.empty() ? "" : ", kernel ", kernel));
    }
    throw;
  }
}

void Session::State::trace(size_t index, const Step& step, Observer& observer) {
  StepTrace trace;
  trace.step = index;
  if (const auto* copy = std::get_if<CopyStep>(&step)) {
    const auto start = Clock::now();
    execute(step, &observer);
    if (copy->to != host_) synchronize(copy->to);  // So that the time is that of the copy.
    trace.milliseconds = milliseconds_since(start);
    trace.copied_bytes = copy->bytes;
    trace.device = plan_->devices[copy->to]->info().id;
  } else {
    const Placement& placement = placement_of(step);
    const Node& node = node_of(step);
    Stream& stream = *streams_[placement.device];
    stream.synchronize();
    const auto before = stream.record();
    execute(step, &observer);
    const auto after = stream.record();
    after->wait();
    trace.milliseconds = after->milliseconds_since(*before);
    trace.node = node.origin.name.empty() ? node.name : node.origin.name;
    trace.op = node.origin.op.empty() ? node.op : node.origin.op;
    trace.kernel = placement.kernel;
    trace.device = plan_->devices[placement.device]->info().id;
  }
  observer.on_step(trace);
}

void Session::State::show(const Step& step, Observer& observer) {
  if (std::holds_alternative<CopyStep>(step)) return;
  for (const ValueId id : node_of(step).outputs) {
    if (id == no_value) continue;
    const ValueInfo& info = infos_[Graph::index(id)];
    if (!info.name.empty() && observer.wants(info)) observer.on_value(info, in_file_layout(plan_->graph.value(id), anywhere(id, placement_of(step).device)));
  }
}

void Session::State::release(size_t step) {
  for (const size_t value : freed_after_[step]) host_values_[value] = {};
}

void Session::State::run_steps(Observer* observer) {
  const bool traced = observer != nullptr && observer->wants_steps();
  for (size_t at = 0; at < plan_->steps.size(); ++at) {
    check_stop();
    if (traced) {
      trace(at, plan_->steps[at], *observer);
    } else {
      execute(plan_->steps[at], observer);
    }
    if (observer != nullptr) show(plan_->steps[at], *observer);
    release(at);
  }
}

std::vector<Data> Session::State::run(std::vector<Data> inputs, Observer* observer) {
  const Graph& graph = plan_->graph;
  if (inputs.size() != graph.inputs().size()) {
    fail(ErrorKind::InvalidArgument, inputs.size(), " inputs were given, not ", graph.inputs().size());
  }
  std::ranges::fill(host_values_, Data());
  for (size_t i = 0; i < inputs.size(); ++i) host_values_[Graph::index(graph.inputs()[i])] = checked_input(i, inputs[i]);
  inputs.clear();
  const UploadsEnd end(*this);
  run_steps(observer);
  finish_uploads();
  std::vector<Data> results;
  results.reserve(graph.outputs().size());
  for (const ValueId id : graph.outputs()) results.push_back(detached(host_data(id)));
  std::ranges::fill(host_values_, Data());
  return results;
}

std::vector<Data> Session::State::run_alone(size_t step, const std::vector<Data>& inputs) {
  const auto* run = step < plan_->steps.size() ? std::get_if<RunStep>(&plan_->steps[step]) : nullptr;
  if (run == nullptr) fail(ErrorKind::InvalidArgument, "step ", step, " cannot be run alone");
  const Placement& placement = plan_->placements[run->placement];
  const UploadsEnd end(*this);
  const Node& node = plan_->graph.node(placement.node);
  std::ranges::fill(host_values_, Data());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == no_value || plan_->graph.value(id).constant) continue;
    if (i >= inputs.size() || !inputs[i]) fail(ErrorKind::InvalidArgument, "input ", i, " of step ", step, " was not given");
    host_values_[Graph::index(id)] = fitted(plan_->graph.value(id), inputs[i], cat("input ", i, " of step ", step));
    // What the kernel does not read may have no place on its device, or one that is another value's at this step.
    const bool read = run->prepared == nullptr || i >= run->prepared->unused_inputs.size() || !run->prepared->unused_inputs[i];
    if (placement.device != host_ && read) copy_step(CopyStep{id, host_, placement.device, 0});
  }
  execute(plan_->steps[step], nullptr);
  finish_uploads();
  std::vector<Data> results;
  for (const ValueId id : node.outputs) results.push_back(id == no_value ? Data() : detached(anywhere(id, placement.device)));
  std::ranges::fill(host_values_, Data());
  return results;
}

}  // namespace unmoor
