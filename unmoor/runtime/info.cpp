#include <algorithm>
#include <fstream>

#include "unmoor/base/error.h"
#include "unmoor/runtime/body.h"

namespace unmoor {
namespace {

std::string op_label(const Node& node) { return node.origin.op.empty() ? node.op : node.origin.op; }

// Calls what(node, "node/body", body) for every body of control flow in a graph.
template <class What>
void each_body(const Graph& graph, const What& what) {
  for (const Node& node : graph.nodes()) {
    for (const auto& [key, attribute] : node.attributes) {
      const auto* body = std::get_if<SubGraph>(&attribute);
      if (body != nullptr && *body != nullptr) what(node, cat(node_label(node), "/", key), **body);
    }
  }
}

// What happens inside of a body becomes part of what happens around it.
void add_inside(PlanInfo inside, const std::string& prefix, PlanInfo& info) {
  for (PlacementInfo& placed : inside.placements) {
    placed.node = cat(prefix, "/", placed.node);
    for (std::string& also : placed.also) also = cat(prefix, "/", also);
    info.placements.push_back(std::move(placed));
  }
  info.fallback_nodes += inside.fallback_nodes;
  if (inside.fallback_summary.empty()) return;
  info.fallback_summary += cat(info.fallback_summary.empty() ? "" : "\n", "in ", prefix, ": ", inside.fallback_summary);
}

// A body of a plan that is only read is planned with what is known about its inputs.
void add_read_body(const Plan& plan, const Node& node, const std::string& prefix, const Graph& body, PlanInfo& info) {
  try {
    add_inside(plan_info(*make_body_plan(body, body_inputs(plan.graph, node, body), plan)), prefix, info);
  } catch (const Error& error) {
    info.placements.push_back(
        {prefix, node.op, info.devices.back(), "", "unknown", {{info.devices[0], "", std::string(name(Reason::Dynamic)), error.what()}}});
  }
}

}  // namespace

bool changes_layout(const Graph& graph, const Node& node) {
  if (!node.origin.name.empty() || node.inputs.empty() || node.outputs.size() != 1 || node.inputs[0] == no_value) return false;
  const Origin& from = graph.value(node.inputs[0]).origin;
  const Origin& to = graph.value(node.outputs[0]).origin;
  return !from.name.empty() && from.name == to.name && from.permutation != to.permutation;
}

namespace {

Data transposed(const Data& data, const std::vector<int64_t>& axes) {
  Graph graph;
  Node node;
  node.op = "Transpose";
  node.inputs = {graph.add_input("", data.tensor().type())};
  node.outputs = {graph.add_value({})};
  node.attributes["perm"] = axes;
  OpCall call = call_for(graph, node);
  call.outputs = infer_outputs(call);
  Outputs outputs(1);
  run_reference(call, std::span(&data, 1), outputs);
  return std::move(outputs.all()[0]);
}

Type type_in_file(const Value& value) {
  const auto* type = std::get_if<TensorType>(&value.type);
  if (type == nullptr || value.origin.permutation.empty()) return value.type;
  Shape shape;
  for (const int64_t axis : value.origin.permutation) shape.push_back(type->shape, static_cast<size_t>(axis));
  return TensorType{type->dtype, shape};
}

}  // namespace

Data in_file_layout(const Value& value, Data data) {
  const auto& axes = value.origin.permutation;
  return axes.empty() || !data.is_tensor() ? std::move(data) : transposed(data, axes);
}

Data in_plan_layout(const Value& value, Data data) {
  const auto& axes = value.origin.permutation;
  if (axes.empty() || !data.is_tensor()) return data;
  if (data.tensor().shape().rank() != axes.size()) {
    fail(ErrorKind::InvalidArgument, "'", value.origin.name, "' has ", data.tensor().shape().rank(), " dimensions, not ", axes.size());
  }
  std::vector<int64_t> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  return transposed(data, back);
}

std::vector<ValueInfo> value_infos(const Graph& graph) {
  std::vector<ValueInfo> infos(graph.values().size());
  for (size_t i = 0; i < infos.size(); ++i) {
    const Value& value = graph.values()[i];
    infos[i] = {value.origin.name, type_in_file(value), "", ""};
  }
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.outputs) {
      if (id == no_value) continue;
      infos[Graph::index(id)].node = node_label(node);
      infos[Graph::index(id)].op = op_label(node);
      if (changes_layout(graph, node)) infos[Graph::index(id)].name.clear();
    }
  }
  return infos;
}

size_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  std::string key;
  while (status >> key) {
    size_t kibibytes = 0;
    if (key == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

namespace {

PlacementInfo::Refused refused(const std::string& device, const std::string& kernel, const Support& why) {
  return {device, kernel, why ? std::string() : std::string(name(why.reason)), why.detail};
}

// What the kernels say that were not asked because one before them took the node.
std::vector<PlacementInfo::Refused> later_kernels(const Plan& plan, const Placement& placement) {
  std::vector<PlacementInfo::Refused> later;
  const Node& node = plan.graph.node(placement.node);
  const Device& device = *plan.devices[placement.device];
  const auto kernels = device.kernels().find(node.op);
  auto at = std::ranges::find(kernels, placement.kernel, &Kernel::name);
  if (at == kernels.end()) return later;
  const OpCall call = call_for(plan.graph, node);
  for (++at; at != kernels.end(); ++at) later.push_back(refused(device.info().id, at->name, at->supports(call)));
  if (const Kernel* const generic = device.kernels().generic()) later.push_back(refused(device.info().id, generic->name, generic->supports(call)));
  return later;
}

}  // namespace

PlanInfo plan_info(const Plan& plan) {
  PlanInfo info;
  for (const auto& device : plan.devices) {
    info.devices.push_back(device->info().id);
    info.versions.push_back(device->info().versions);
    for (std::string& note : device->notes()) info.notes.push_back(std::move(note));
  }
  for (const Placement& placement : plan.placements) {
    const Node& node = plan.graph.node(placement.node);
    PlacementInfo placed{node_label(node), op_label(node), info.devices[placement.device], placement.kernel, std::string(name(placement.state))};
    if (placed.kernel.empty()) placed.kernel = "chosen at run time";
    placed.also = node.origin.also;
    const Op* const op = all_ops().find(node.op);
    placed.category = op == nullptr ? "other" : std::string(name(op->category));
    for (const Refusal& refusal : placement.refusals) {
      placed.refusals.push_back(refused(refusal.device, refusal.kernel, refusal.why));
    }
    placed.later = later_kernels(plan, placement);
    info.placements.push_back(std::move(placed));
  }
  for (size_t at = 0; at < plan.steps.size(); ++at) {
    const auto* copy = std::get_if<CopyStep>(&plan.steps[at]);
    if (copy == nullptr) continue;
    const Value& value = plan.graph.value(copy->value);
    CopyInfo copied{value.origin.name.empty() ? value.name : value.origin.name, "", info.devices[copy->from], info.devices[copy->to], copy->bytes};
    for (size_t next = at + 1; next < plan.steps.size() && copied.before.empty(); ++next) {
      if (const auto* run = std::get_if<RunStep>(&plan.steps[next])) {
        copied.before = node_label(plan.graph.node(plan.placements[run->placement].node));
      } else if (const auto* call = std::get_if<CallStep>(&plan.steps[next])) {
        copied.before = node_label(plan.graph.node(plan.placements[call->placement].node));
      }
    }
    info.copies.push_back(std::move(copied));
  }
  info.kept_float32 = plan.kept_float32;
  info.left_narrow = plan.left_narrow;
  info.fallback_nodes = plan.fallback_count();
  info.fallback_summary = plan.fallback_summary();
  if (plan.options.place_only) {
    each_body(plan.graph, [&](const Node& node, const std::string& prefix, const Graph& body) { add_read_body(plan, node, prefix, body, info); });
  }
  return info;
}

PlanInfo Session::State::plan_info() const {
  PlanInfo info = unmoor::plan_info(*plan_);
  if (plan_->options.place_only) return info;
  each_body(plan_->graph, [&](const Node&, const std::string& prefix, const Graph& body) {
    // A body that ran with several kinds of input has several plans: the one that the device refused most of is told.
    std::optional<PlanInfo> worst;
    for (const Session* const session : bodies_.of(body)) {
      PlanInfo inside = session->plan_info();
      if (!worst || inside.fallback_nodes >= worst->fallback_nodes) worst = std::move(inside);
    }
    if (worst) add_inside(std::move(*worst), prefix, info);
  });
  return info;
}

std::vector<Data> Runner::run_step(size_t, const NamedData&) {
  fail(ErrorKind::Unsupported, name(), " cannot run a step alone");
}

}  // namespace unmoor
