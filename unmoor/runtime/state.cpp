#include "unmoor/runtime/state.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/runtime/place.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

constexpr size_t late_limit = 16;  // Kernels kept that were prepared at run time, for each node: they hold packed weights.

bool looks_into(const Tensor& tensor, Buffer& arena) {
  const std::byte* const from = arena.host();
  const std::byte* const at = tensor.bytes().data();
  return from != nullptr && at >= from && at < from + arena.bytes();
}

// What the data says, or what the plan says of a map, whose values' type an empty one does not tell.
Type late_type(const Value& value, const Data& data) {
  return data.is_map() && std::holds_alternative<MapType>(value.type) ? value.type : type_of(data);
}

// What an arena is mostly for: its largest value, and who makes it.
std::string largest_in(const Plan& plan, size_t device) {
  const auto& slots = plan.memory.slots[device];
  const auto largest = static_cast<size_t>(std::ranges::max_element(slots, {}, &Slot::bytes) - slots.begin());
  for (const Node& node : plan.graph.nodes()) {
    for (const ValueId id : node.outputs) {
      if (id == no_value || Graph::index(id) != largest) continue;
      const std::string& name = node.origin.name.empty() ? node.name : node.origin.name;
      return cat("the largest value is ", plan.graph.value(id).type, ", made by ", node.op, " '", name, "'");
    }
  }
  return cat("the largest value is ", plan.graph.values()[largest].type);
}

std::shared_ptr<Buffer> make_arena(const Plan& plan, size_t device) {
  const size_t bytes = plan.memory.arena_bytes[device];
  if (bytes == 0) return nullptr;
  try {
    return plan.devices[device]->allocate(bytes);
  } catch (Error& error) {
    if (error.kind() == ErrorKind::OutOfMemory) error.note(largest_in(plan, device));
    throw;
  }
}

}  // namespace

Session::State::State(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), host_(plan_->devices.size() - 1), infos_(value_infos(plan_->graph)), bodies_(*plan_) {
  for (size_t i = 0; i < plan_->devices.size(); ++i) {
    streams_.push_back(plan_->devices[i]->make_stream());
    arenas_.push_back(make_arena(*plan_, i));
    uploading_.emplace_back();
    workspaces_.push_back(nullptr);
    if (plan_->memory.workspace_bytes[i] > 0) workspace(i, plan_->memory.workspace_bytes[i]);
  }
  const size_t values = plan_->graph.values().size();
  host_values_.resize(values);
  pool_.resize(values);
  calls_.resize(plan_->graph.nodes().size());
  freed_after_.resize(plan_->steps.size());
  std::vector<size_t> last(values, plan_->steps.size());
  for (size_t at = 0; at < plan_->steps.size(); ++at) {
    if (const auto* copy = std::get_if<CopyStep>(&plan_->steps[at])) {
      last[Graph::index(copy->value)] = at;
      continue;
    }
    for (const auto* list : {&node_of(plan_->steps[at]).inputs, &node_of(plan_->steps[at]).outputs}) {
      for (const ValueId id : *list) {
        if (id != no_value) last[Graph::index(id)] = at;
      }
    }
  }
  for (const ValueId id : plan_->graph.outputs()) last[Graph::index(id)] = plan_->steps.size();
  for (size_t value = 0; value < values; ++value) {
    if (last[value] < plan_->steps.size()) freed_after_[last[value]].push_back(value);
  }
}

const Placement& Session::State::placement_of(const Step& step) const {
  const auto* run = std::get_if<RunStep>(&step);
  return plan_->placements[run != nullptr ? run->placement : std::get<CallStep>(step).placement];
}

const OpCall& Session::State::call_of(const Placement& placement) {
  auto& call = calls_[static_cast<size_t>(placement.node)];
  if (call == nullptr) call = std::make_unique<OpCall>(call_for(plan_->graph, plan_->graph.node(placement.node)));
  return *call;
}

Operand Session::State::workspace(size_t device, size_t bytes) {
  if (bytes == 0) return {};
  auto& buffer = workspaces_[device];
  if (buffer == nullptr || buffer->bytes() < bytes) buffer = plan_->devices[device]->allocate(bytes);
  return {buffer.get(), 0};
}

Data Session::State::host_data(ValueId id) {
  if (id == no_value) return {};
  const Value& value = plan_->graph.value(id);
  if (value.constant) return *value.constant;
  const Data& held = host_values_[Graph::index(id)];
  if (held) return held;
  if (!is_planned(host_, id)) return {};
  const auto& type = std::get<TensorType>(value.type);
  std::byte* const at = arenas_[host_]->host() + plan_->memory.slots[host_][Graph::index(id)].offset;
  return Tensor::writable_view(type, {at, type.bytes()}, arenas_[host_]);
}

Data Session::State::anywhere(ValueId id, size_t device) {
  if (device == host_) return host_data(id);
  const Slot& slot = plan_->memory.slots[device][Graph::index(id)];
  Tensor tensor(std::get<TensorType>(plan_->graph.value(id).type));
  streams_[device]->download(tensor.writable_bytes(), *arenas_[device], slot.offset);
  synchronize(device);
  return tensor;
}

void Session::State::synchronize(size_t device) {
  streams_[device]->synchronize();
  uploading_[device].clear();
}

void Session::State::finish_uploads() {
  for (size_t device = 0; device < uploading_.size(); ++device) {
    if (!uploading_[device].empty()) synchronize(device);
  }
}

void Session::State::abandon_uploads() {
  for (size_t device = 0; device < uploading_.size(); ++device) {
    try {
      if (!uploading_[device].empty()) synchronize(device);
    } catch (const Error&) {
      uploading_[device].clear();  // The error that ends the run is on its way already.
    }
  }
}

Operand Session::State::operand(size_t device, ValueId id) {
  if (id == no_value) return {};
  if (plan_->graph.value(id).constant) {
    const auto found = plan_->constants.find({device, static_cast<uint32_t>(id)});
    return found == plan_->constants.end() ? Operand{} : Operand{found->second.get(), 0};
  }
  if (device == host_ && host_values_[Graph::index(id)]) {
    held_.push_back(std::make_shared<TensorBuffer>(host_values_[Graph::index(id)].tensor()));
    return {held_.back().get(), 0};
  }
  if (is_planned(device, id)) return {arenas_[device].get(), plan_->memory.slots[device][Graph::index(id)].offset};
  return {};
}

Tensor Session::State::output_tensor(ValueId id) {
  Tensor& pooled = pool_[Graph::index(id)];
  if (!pooled || !pooled.is_unshared()) pooled = Tensor(std::get<TensorType>(plan_->graph.value(id).type));
  return pooled;
}

Operand Session::State::output_operand(size_t device, ValueId id) {
  if (id == no_value) return {};
  if (is_planned(device, id)) return {arenas_[device].get(), plan_->memory.slots[device][Graph::index(id)].offset};
  Tensor tensor = output_tensor(id);
  host_values_[Graph::index(id)] = tensor;
  held_.push_back(std::make_shared<TensorBuffer>(std::move(tensor)));
  return {held_.back().get(), 0};
}

Data Session::State::detached(Data data) const {
  if (data.is_tensor()) return arenas_[host_] != nullptr && looks_into(data.tensor(), *arenas_[host_]) ? Data(data.tensor().clone()) : data;
  if (!data.is_sequence()) return data;
  Sequence copy = data.sequence();
  for (Data& item : copy.items) item = detached(item);
  return copy;
}

void Session::State::keep(ValueId id, Data made) {
  const Value& value = plan_->graph.value(id);
  const bool planned = made && is_known(value.type);
  if (planned && (!made.is_tensor() || made.tensor().type() != std::get<TensorType>(value.type))) {
    fail(ErrorKind::Internal, "value '", value.name, "' is ", type_of(made), ", but was planned as ", value.type);
  }
  host_values_[Graph::index(id)] = std::move(made);
}

std::vector<Data> Session::State::gather(const Node& node) {
  std::vector<Data> inputs;
  inputs.reserve(node.inputs.size());
  for (const ValueId id : node.inputs) inputs.push_back(host_data(id));
  return inputs;
}

void Session::State::run_buffers(const RunStep& step, const Placement& placement) {
  const Node& node = plan_->graph.node(placement.node);
  inputs_.clear();
  outputs_.clear();
  for (const ValueId id : node.inputs) inputs_.push_back(operand(placement.device, id));
  for (const ValueId id : node.outputs) outputs_.push_back(output_operand(placement.device, id));
  step.prepared->run(*streams_[placement.device],
                     KernelArgs{inputs_, outputs_, workspace(placement.device, step.prepared->workspace_bytes)});
  held_.clear();
}

void Session::State::run_values(const Kernel& kernel, const OpCall& call, const Placement& placement) {
  if (placement.device != host_) fail(ErrorKind::Internal, "kernel ", kernel.name, " works on values, but its device is not the host");
  const auto inputs = gather(call.node);
  Outputs outputs(call.node.outputs.size());
  for (size_t i = 0; i < call.node.outputs.size(); ++i) {
    const ValueId id = call.node.outputs[i];
    if (id != no_value && is_planned(host_, id)) outputs.bind(i, host_data(id).tensor());
  }
  kernel.evaluate(call, inputs, outputs);
  for (size_t i = 0; i < call.node.outputs.size(); ++i) {
    const ValueId id = call.node.outputs[i];
    if (id == no_value) continue;
    Data& made = outputs.all()[i];
    const bool in_place = is_planned(host_, id) && made.is_tensor() && made.tensor().bytes().data() == host_data(id).tensor().bytes().data();
    if (!in_place) keep(id, detached(std::move(made)));
  }
}

OpCall Session::State::late_call(const Node& node, const std::vector<Data>& inputs, bool with_values) const {
  OpCall call{node, {}, {}, {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool present = node.inputs[i] != no_value;
    call.inputs.push_back(present ? std::optional<Type>(late_type(plan_->graph.value(node.inputs[i]), inputs[i])) : std::nullopt);
    const bool fixed = present && (plan_->graph.value(node.inputs[i]).constant || (with_values && is_shape_like(inputs[i])));
    call.constants.push_back(fixed && inputs[i].is_tensor() ? &inputs[i].tensor() : nullptr);
  }
  call.outputs = infer_outputs(call);
  return call;
}

const Session::State::Late& Session::State::late_for(const OpCall& call, Device& device, const std::string& binding) {
  const Node& node = call.node;
  auto& known = late_cache_.try_emplace(&node, late_limit).first->second;
  if (const Late* const found = known.find(binding)) return *found;
  ++late_;
  Late late;
  late.outputs = call.outputs;
  if (has_known_types(call)) {
    late.kernel = choose_kernel(call, device, plan_->options.only_kernel).kernel;
  } else {
    for (const Kernel& kernel : device.kernels().find(node.op)) {
      if (late.kernel == nullptr && kernel.evaluate && kernel.supports(call)) late.kernel = &kernel;
    }
    const Kernel* const generic = device.kernels().generic();
    if (late.kernel == nullptr && generic != nullptr && generic->supports(call)) late.kernel = generic;
  }
  if (late.kernel == nullptr) fail(ErrorKind::Unsupported, device.info().id, " has no kernel for ", node.op, " on these inputs");
  if (late.kernel->prepare && device.info().host) require_memory(call);
  if (late.kernel->prepare) late.prepared = std::make_shared<const Prepared>(late.kernel->prepare(call, device));
  return known.put(binding, std::move(late));
}

void Session::State::run_late(const RunStep& step) {
  const Placement& placement = plan_->placements[step.placement];
  const Node& node = plan_->graph.node(placement.node);
  const auto inputs = gather(node);
  // Values of this run decide shapes only where types do not: what depends on values is prepared again for each.
  const bool by_values = !has_known_types(late_call(node, inputs, false));
  const OpCall call = late_call(node, inputs, by_values);
  const Late& late = late_for(call, *plan_->devices[placement.device], binding_key(inputs, by_values));
  if (late.prepared == nullptr) {
    run_values(*late.kernel, call, placement);
    return;
  }
  inputs_.clear();
  outputs_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    held_.push_back(inputs[i].is_tensor() ? std::make_shared<TensorBuffer>(inputs[i].tensor()) : nullptr);
    inputs_.push_back({held_.back().get(), 0});
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == no_value) {
      outputs_.emplace_back();
      continue;
    }
    Tensor tensor(std::get<TensorType>(late.outputs[i]));
    keep(node.outputs[i], tensor);
    held_.push_back(std::make_shared<TensorBuffer>(std::move(tensor)));
    outputs_.push_back({held_.back().get(), 0});
  }
  late.prepared->run(*streams_[placement.device],
                     KernelArgs{inputs_, outputs_, workspace(placement.device, late.prepared->workspace_bytes)});
  held_.clear();
}

void Session::State::run_step(const RunStep& step) {
  const Placement& placement = plan_->placements[step.placement];
  if (step.kernel == nullptr) {
    run_late(step);
  } else if (step.prepared != nullptr) {
    run_buffers(step, placement);
  } else {
    run_values(*step.kernel, call_of(placement), placement);
  }
}

void Session::State::copy_step(const CopyStep& step) {
  const size_t index = Graph::index(step.value);
  if (step.from == host_) {
    const Data data = host_data(step.value);
    streams_[step.to]->upload(*arenas_[step.to], plan_->memory.slots[step.to][index].offset, data.tensor().bytes());
    uploading_[step.to].push_back(data);
    // In the host's arena the next step may write over it.
    if (arenas_[host_] != nullptr && looks_into(data.tensor(), *arenas_[host_])) synchronize(step.to);
    return;
  }
  Buffer& from = *arenas_[step.from];
  const size_t offset = plan_->memory.slots[step.from][index].offset;
  Tensor to = is_planned(host_, step.value) ? host_data(step.value).tensor() : output_tensor(step.value);
  streams_[step.from]->download(to.writable_bytes(), from, offset);
  synchronize(step.from);
  if (!is_planned(host_, step.value)) host_values_[index] = std::move(to);
}

void Session::State::call_step(const CallStep& step, Observer* observer) {
  const Node& node = plan_->graph.node(plan_->placements[step.placement].node);
  auto inputs = gather(node);
  for (Data& input : inputs) input = detached(std::move(input));
  auto results = run_control_flow(node, std::move(inputs), bodies_, observer);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == no_value) continue;
    if (i >= results.size()) fail(ErrorKind::InvalidModel, "its body gives ", results.size(), " values, not ", node.outputs.size());
    keep(node.outputs[i], std::move(results[i]));
  }
}

}  // namespace unmoor
