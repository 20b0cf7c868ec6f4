#include "unmoor/runtime/plan.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/hal/host.h"
#include "unmoor/runtime/constants.h"
#include "unmoor/runtime/memory.h"
#include "unmoor/runtime/place.h"

namespace unmoor {
namespace {

const Kernel* find_kernel(const Device& device, const Node& node, const std::string& wanted) {
  for (const Kernel& kernel : device.kernels().find(node.op)) {
    if (kernel.name == wanted) return &kernel;
  }
  const Kernel* const generic = device.kernels().generic();
  return generic != nullptr && generic->name == wanted ? generic : nullptr;
}

std::string label_of(const Node& node) { return node.origin.name.empty() ? node.name : node.origin.name; }

// The passes for these devices: what the first one wants of them is added.
PassOptions passes_for(const PlanOptions& options, const std::vector<std::shared_ptr<Device>>& devices) {
  PassOptions passes = options.passes;
  if (passes.fuse && !passes.widen_to_float64) {
    passes.takes = [&device = *devices[0]](const OpCall& call) { return has_own_kernel(call, device); };
    passes.channels_last = devices[0]->prefers_channels_last();
  }
  return passes;
}

// Orders the steps and puts in the copies that placement calls for.
class StepBuilder {
 public:
  explicit StepBuilder(Plan& plan) : plan_(plan), host_(plan.devices.size() - 1), constants_(plan.options.constants) {
    for (const ValueId id : plan.graph.inputs()) where_[Graph::index(id)].insert(host_);
  }

  void build() {
    for (size_t i = 0; i < plan_.placements.size(); ++i) add_node(i);
    for (const ValueId id : plan_.graph.outputs()) bring(id, host_);
    if (!plan_.options.place_only) plan_.devices[0]->finish_preparation();
    constants_.finish();
  }

 private:
  void add_node(size_t index) {
    Placement& placement = plan_.placements[index];
    const Node& node = plan_.graph.node(placement.node);
    const size_t device = placement.device;
    RunStep step{index, nullptr, nullptr};
    if (!is_control_flow(node) && !placement.kernel.empty() && !plan_.options.place_only) step = prepare(index);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == no_value) continue;
      const bool unused = step.prepared != nullptr && i < step.prepared->unused_inputs.size() && step.prepared->unused_inputs[i];
      if (plan_.graph.value(node.inputs[i]).constant) {
        if (!unused && step.prepared != nullptr) keep_constant(device, node.inputs[i]);
      } else if (!unused) {
        bring(node.inputs[i], device);
      }
    }
    if (is_control_flow(node)) {
      plan_.steps.emplace_back(CallStep{index});
    } else {
      plan_.steps.emplace_back(std::move(step));
    }
    for (const ValueId id : node.outputs) {
      if (id != no_value) where_[Graph::index(id)].insert(device);
    }
  }

  RunStep prepare(size_t index) {
    const Placement& placement = plan_.placements[index];
    const Node& node = plan_.graph.node(placement.node);
    Device& device = *plan_.devices[placement.device];
    const Kernel* const kernel = find_kernel(device, node, placement.kernel);
    if (kernel == nullptr) fail(ErrorKind::Internal, "kernel ", placement.kernel, " vanished");
    if (!kernel->prepare) return {index, kernel, nullptr};
    try {
      const OpCall call = call_for(plan_.graph, node);
      if (device.info().host) require_memory(call);
      return {index, kernel, std::make_shared<const Prepared>(kernel->prepare(call, device))};
    } catch (Error& error) {
      error.note(cat("in ", node.op, " '", node.name, "', kernel ", kernel->name));
      throw;
    }
  }

  void keep_constant(size_t device, ValueId id) {
    auto& kept = plan_.constants[{device, static_cast<uint32_t>(id)}];
    const Data& data = *plan_.graph.value(id).constant;
    if (kept == nullptr && data.is_tensor() && data.tensor().dtype() != DType::String) {
      constants_.load(kept, data.tensor(), *plan_.devices[device]);
    }
  }

  void bring(ValueId id, size_t device) {
    if (plan_.graph.value(id).constant) return;
    auto& places = where_[Graph::index(id)];
    if (places.contains(device)) return;
    if (places.empty()) fail(ErrorKind::Internal, "value '", plan_.graph.value(id).name, "' is used before it is made");
    // From the host if it is there, else from the device that has it, through the host.
    const size_t from = places.contains(host_) ? host_ : *places.begin();
    if (from != host_ && device != host_) {
      bring(id, host_);
      bring(id, device);
      return;
    }
    const Type& type = plan_.graph.value(id).type;
    plan_.steps.emplace_back(CopyStep{id, from, device, is_known(type) ? std::get<TensorType>(type).bytes() : 0});
    places.insert(device);
  }

  Plan& plan_;
  size_t host_;
  ConstantLoader constants_;
  std::map<size_t, std::set<size_t>> where_;  // Devices that hold each value.
};

std::shared_ptr<Plan> finish_plan(Graph graph, std::vector<std::shared_ptr<Device>> devices, const PlanOptions& options) {
  auto plan = std::make_shared<Plan>();
  PlacedGraph placed = place(std::move(graph), devices, options);
  plan->graph = std::move(placed.graph);
  plan->placements = std::move(placed.placements);
  plan->devices = std::move(devices);
  plan->options = options;
  StepBuilder(*plan).build();
  plan->memory = plan_memory(plan->graph, plan->placements, plan->steps, plan->devices.size(), plan->devices.size() - 1);
  return plan;
}

// What the first device refuses in a graph and in the bodies of its control flow, as far as their input types are known before anything runs.
void add_refusals(const Graph& graph, const std::vector<std::shared_ptr<Device>>& devices, const PlanOptions& options, std::string& text) {
  try {
    (void)place(graph, devices, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    text += cat(text.empty() ? "" : "\n", error.what());
  }
  for (const Node& node : graph.nodes()) {
    if (!is_control_flow(node)) continue;
    for (const auto& [key, attribute] : node.attributes) {
      const auto* body = std::get_if<SubGraph>(&attribute);
      if (body == nullptr || *body == nullptr) continue;
      const auto inputs = body_inputs(graph, node, **body);
      if (!std::ranges::all_of(inputs, [](const InputBinding& input) { return is_known(input.type); })) continue;
      std::string inside;
      try {
        add_refusals(optimized(with_inputs(**body, inputs), passes_for(options, devices)), devices, options, inside);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::InvalidModel && error.kind() != ErrorKind::InvalidArgument) throw;
        continue;  // A branch that cannot run on these inputs is not taken.
      }
      if (!inside.empty()) text += cat(text.empty() ? "" : "\n", "in '", key, "' of ", node.op, " '", label_of(node), "': ", inside);
    }
  }
}

void check_refusals(const Graph& graph, const std::vector<std::shared_ptr<Device>>& devices, const PlanOptions& options) {
  if (options.fallback != Fallback::Forbid) return;
  std::string text;
  add_refusals(graph, devices, options, text);
  if (!text.empty()) fail(ErrorKind::Unsupported, text);
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::Native: return "native";
    case State::Expanded: return "expanded";
    case State::Fallback: return "fallback";
    case State::Choice: return "choice";
    case State::Host: return "host";
    case State::Nobody: return "unsupported";
  }
  return "native";
}

size_t Plan::fallback_count() const {
  return static_cast<size_t>(std::ranges::count_if(placements, [](const Placement& p) { return p.state == State::Fallback; }));
}

size_t Plan::copy_count() const {
  return static_cast<size_t>(std::ranges::count_if(steps, [](const Step& step) { return std::holds_alternative<CopyStep>(step); }));
}

size_t Plan::copied_bytes() const {
  size_t bytes = 0;
  for (const Step& step : steps) {
    if (const auto* copy = std::get_if<CopyStep>(&step)) bytes += copy->bytes;
  }
  return bytes;
}

std::string Plan::fallback_summary() const {
  struct Group {
    size_t count = 0;
    std::string first;
  };
  std::map<std::string, Group> groups;  // By operator and reason.
  for (const Placement& placement : placements) {
    if (placement.state != State::Fallback) continue;
    const Node& node = graph.node(placement.node);
    std::string why = "no reason given";
    for (const Refusal& refusal : placement.refusals) {
      if (refusal.device == devices[0]->info().id) why = cat(name(refusal.why.reason), ": ", refusal.why.detail);
    }
    Group& group = groups[cat(node.origin.op.empty() ? node.op : node.origin.op, ": ", why)];
    if (++group.count == 1) group.first = label_of(node);
  }
  std::string text;
  for (const auto& [what, group] : groups) {
    text += cat(text.empty() ? "" : "\n", group.count, " on ", devices.back()->info().id, ", not ", devices[0]->info().id, ": ", what, " (",
                group.count == 1 ? "" : "first ", "'", group.first, "')");
  }
  return text;
}

std::shared_ptr<const Plan> make_plan(const Graph& graph, std::vector<std::shared_ptr<Device>> devices, const PlanOptions& options) {
  if (devices.empty() || !devices.back()->info().host) {
    fail(ErrorKind::InvalidArgument, "a plan needs a host device as its last one");
  }
  const auto start = std::chrono::steady_clock::now();
  const Graph shaped = with_shapes(options.passes.widen_to_float64 ? widened(graph) : graph, options.shapes);
  KeptFloat32 kept{optimized(shaped, passes_for(options, devices)), {}, {}};
  if (!options.keep_float32.empty()) kept = keep_float32(kept.graph, options.keep_float32);
  check_refusals(kept.graph, devices, options);
  auto plan = finish_plan(std::move(kept.graph), std::move(devices), options);
  plan->kept_float32 = std::move(kept.nodes);
  plan->left_narrow = std::move(kept.left);
  plan->prepare_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

std::vector<InputBinding> body_inputs(const Graph& graph, const Node& node, const Graph& body) {
  const bool is_if = node.op == "If";
  const auto integer = [&node](std::string_view key) {
    const auto found = node.attributes.find(key);
    const auto* held = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
    return held == nullptr ? 0 : static_cast<size_t>(std::max<int64_t>(*held, 0));
  };
  // A Loop makes its first two inputs itself, and a Scan gives slices: what inference found for them holds.
  const size_t made = node.op == "Loop" ? 2 : 0;
  const size_t captures = std::min(integer("captures"), body.inputs().size());
  const size_t slices_end = body.inputs().size() - captures;
  const size_t slices_begin = node.op == "Scan" ? slices_end - std::min(integer("num_scan_inputs"), slices_end) : slices_end;
  std::vector<InputBinding> inputs;
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    inputs.push_back({body.value(body.inputs()[i]).type, nullptr});
    const size_t from = is_if ? i + 1 : i;
    const bool own = i < made || (i >= slices_begin && i < slices_end);
    if (own || from >= node.inputs.size() || node.inputs[from] == no_value) continue;
    const Value& value = graph.value(node.inputs[from]);
    if (is_known(value.type)) inputs.back().type = value.type;
    if (is_if && value.constant) inputs.back().value = &*value.constant;
  }
  return inputs;
}

std::shared_ptr<const Plan> make_body_plan(const Graph& body, const std::vector<InputBinding>& inputs, const Plan& parent) {
  Graph graph = optimized(with_inputs(body, inputs), passes_for(parent.options, parent.devices));
  check_refusals(graph, parent.devices, parent.options);
  return finish_plan(std::move(graph), parent.devices, parent.options);
}

}  // namespace unmoor
