#include <algorithm>
#include <fstream>

#include "unmoor/base/error.h"
#include "unmoor/runtime/body.h"

namespace unmoor {
namespace {

std::string op_label(const Node& node) { return node.origin.op.empty() ? node.op : node.origin.op; }

void add_body(const Plan& plan, const Node& node, const std::string& branch, const Graph& body, PlanInfo& info) {
  std::vector<InputBinding> inputs;
  const size_t skipped = node.op == "If" ? 1 : 0;
  const size_t captured = node.inputs.size() - std::min(node.inputs.size(), body.inputs().size());
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    // An If's inputs are the captured ones; the others also have inputs of their own, whose types only a run tells.
    const size_t from = node.op == "If" ? i + skipped : i + captured;
    const bool given = node.op == "If" && from < node.inputs.size() && node.inputs[from] != no_value;
    const Value* const value = given ? &plan.graph.value(node.inputs[from]) : nullptr;
    inputs.push_back({value != nullptr ? value->type : body.value(body.inputs()[i]).type,
                      value != nullptr && value->constant ? &*value->constant : nullptr});
  }
  try {
    const PlanInfo inside = plan_info(*make_body_plan(body, inputs, plan));
    for (PlacementInfo placed : inside.placements) {
      placed.node = cat(node_label(node), "/", branch, "/", placed.node);
      for (std::string& also : placed.also) also = cat(node_label(node), "/", branch, "/", also);
      info.placements.push_back(std::move(placed));
    }
    info.fallback_nodes += inside.fallback_nodes;
  } catch (const Error& error) {
    info.placements.push_back({cat(node_label(node), "/", branch), node.op, info.devices.back(), "", "unknown",
                               {{info.devices[0], "", std::string(name(Reason::Dynamic)), error.what()}}});
  }
}

void add_bodies(const Plan& plan, PlanInfo& info) {
  for (const Node& node : plan.graph.nodes()) {
    for (const auto& [key, attribute] : node.attributes) {
      if (const auto* body = std::get_if<SubGraph>(&attribute); body != nullptr && *body != nullptr) add_body(plan, node, key, **body, info);
    }
  }
}

}  // namespace

std::vector<ValueInfo> value_infos(const Graph& graph) {
  std::vector<ValueInfo> infos(graph.values().size());
  for (size_t i = 0; i < infos.size(); ++i) {
    const Value& value = graph.values()[i];
    infos[i] = {value.origin.name, value.type, "", ""};
  }
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.outputs) {
      if (id == no_value) continue;
      infos[Graph::index(id)].node = node_label(node);
      infos[Graph::index(id)].op = op_label(node);
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


PlanInfo plan_info(const Plan& plan) {
  PlanInfo info;
  for (const auto& device : plan.devices) info.devices.push_back(device->info().id);
  for (const Placement& placement : plan.placements) {
    const Node& node = plan.graph.node(placement.node);
    PlacementInfo placed{node_label(node), op_label(node), info.devices[placement.device], placement.kernel, std::string(name(placement.state))};
    if (placed.kernel.empty()) placed.kernel = "chosen at run time";
    placed.also = node.origin.also;
    const Op* const op = all_ops().find(node.op);
    placed.category = op == nullptr ? "other" : std::string(name(op->category));
    for (const Refusal& refusal : placement.refusals) {
      placed.refusals.push_back({refusal.device, refusal.kernel, std::string(name(refusal.why.reason)), refusal.why.detail});
    }
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
  info.fallback_nodes += plan.fallback_count();
  if (plan.options.place_only) add_bodies(plan, info);
  info.fallback_summary = plan.fallback_summary();
  return info;
}

std::vector<Data> Runner::run_step(size_t, const NamedData&) {
  fail(ErrorKind::Unsupported, name(), " cannot run a step alone");
}

}  // namespace unmoor
