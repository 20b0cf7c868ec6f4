#include "unmoor/runtime/place.h"

#include <algorithm>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/passes/infer.h"
#include "unmoor/runtime/generation.h"
#include "unmoor/runtime/replace.h"

namespace unmoor {
namespace {

constexpr size_t most_rounds = 8;         // Of replacing what the device does not take as it is.
constexpr int64_t shape_elements = 1024;  // Integer tensors up to this size count as shape arithmetic.

const std::string& label(const Node& node) { return node.origin.name.empty() ? node.name : node.origin.name; }

bool is_small_integer(const Type& type) {
  const auto* tensor = std::get_if<TensorType>(&type);
  return tensor != nullptr && (is_integer(tensor->dtype) || tensor->dtype == DType::Bool) && tensor->is_known() &&
         tensor->shape.elements() <= shape_elements;
}

// Sequences and maps never are on a device: they have no bytes of their own.
std::string host_type(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] && !std::holds_alternative<TensorType>(*call.inputs[i]))
      return cat("input ", i, " is a ", *call.inputs[i]);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.wants_output(i) && !std::holds_alternative<TensorType>(call.outputs[i]))
      return cat("output ", i, " is a ", call.outputs[i]);
  }
  return {};
}

std::string unknown_type(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] && !is_known(*call.inputs[i])) return cat("input ", i, " is ", *call.inputs[i], " until the model runs");
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.wants_output(i) && !is_known(call.outputs[i]))
      return cat("output ", i, " is ", call.outputs[i], " until the model runs");
  }
  return {};
}

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<std::shared_ptr<Device>>& devices, const PlanOptions& options,
         const std::set<std::string>& from_expansion)
      : graph_(graph), devices_(devices), options_(options), from_expansion_(from_expansion) {}

  std::vector<Placement> run() {
    std::vector<Placement> placements;
    placements.reserve(graph_.nodes().size());
    for (size_t i = 0; i < graph_.nodes().size(); ++i) placements.push_back(place_node(NodeId{static_cast<uint32_t>(i)}));
    return placements;
  }

 private:
  Placement place_node(NodeId id) const {
    const Node& node = graph_.node(id);
    Placement placement;
    placement.node = id;
    if (is_control_flow(node)) {
      placement.device = devices_.size() - 1;
      placement.kernel = "runtime";
      placement.state = State::Host;
      return placement;
    }
    if (all_ops().find(node.op) == nullptr) {
      placement.device = devices_.size() - 1;
      placement.state = State::Nobody;
      placement.refusals.push_back({devices_[0]->info().id, "", no(Reason::NoKernel, why_absent(node.op))});
      return placement;
    }
    const OpCall call = call_for(graph_, node);
    const bool dynamic = !has_known_types(call);
    for (size_t device = 0; device < devices_.size(); ++device) {
      if (dynamic && !devices_[device]->info().host) {
        const std::string on_host = host_type(call);
        placement.refusals.push_back({devices_[device]->info().id, "",
                                      on_host.empty() ? no(Reason::Dynamic, unknown_type(call))
                                                      : no(Reason::DType, on_host, ", which only the host holds")});
        continue;
      }
      placement.device = device;
      if (dynamic) return finish(placement, call, "");
      Choice choice = choose_kernel(call, *devices_[device], options_.only_kernel);
      std::ranges::move(choice.refusals, std::back_inserter(placement.refusals));
      if (choice.kernel != nullptr) return finish(placement, call, choice.kernel->name);
    }
    placement.device = options_.place_only ? devices_.size() - 1 : devices_.size();  // Nobody took it: reported by the caller.
    placement.state = State::Nobody;
    return placement;
  }

  Placement finish(Placement placement, const OpCall& call, std::string kernel) const {
    placement.kernel = std::move(kernel);
    if (placement.device == 0) {
      placement.state = from_expansion_.contains(call.node.name) ? State::Expanded : State::Native;
    } else {
      placement.state = is_shape_arithmetic(call) ? State::Host : State::Fallback;
    }
    return placement;
  }

  const Graph& graph_;
  const std::vector<std::shared_ptr<Device>>& devices_;
  const PlanOptions& options_;
  const std::set<std::string>& from_expansion_;
};

bool is_heavy(const Node& node) {
  const Op* const op = all_ops().find(node.op);
  if (op == nullptr) return true;
  return op->category == Category::Matrix || op->category == Category::Convolution || op->category == Category::Attention ||
         op->category == Category::Recurrent || op->category == Category::Trees;
}

// Which nodes each node exchanges values with; a graph input or output is noted as `outside`.
struct Neighbours {
  static constexpr size_t outside = static_cast<size_t>(-1);
  std::vector<std::vector<size_t>> of;

  explicit Neighbours(const Graph& graph) : of(graph.nodes().size()) {
    std::vector<size_t> producer(graph.values().size(), outside);
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (const ValueId id : graph.nodes()[i].outputs) {
        if (id != no_value) producer[Graph::index(id)] = i;
      }
    }
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (const ValueId id : graph.nodes()[i].inputs) {
        if (id == no_value || graph.value(id).constant) continue;
        const size_t from = producer[Graph::index(id)];
        of[i].push_back(from);
        if (from != outside) of[from].push_back(i);
      }
    }
    for (const ValueId id : graph.outputs()) {
      if (const size_t from = producer[Graph::index(id)]; from != outside) of[from].push_back(outside);
    }
  }
};

// Light nodes of the wanted device that exchange values only with nodes on the host stay there: it saves two copies. Under Forbid
// only shape arithmetic may.
void keep_with_neighbours(const Graph& graph, const std::vector<std::shared_ptr<Device>>& devices, const PlanOptions& options,
                          std::vector<Placement>& placements) {
  if (devices.size() < 2) return;
  const Neighbours neighbours(graph);
  const size_t host = devices.size() - 1;
  std::vector<bool> seen(placements.size());
  const auto is_light = [&](size_t i) {
    const Node& node = graph.node(placements[i].node);
    if (placements[i].device != 0 || is_heavy(node)) return false;
    return options.fallback != Fallback::Forbid || is_shape_arithmetic(call_for(graph, node));
  };
  for (size_t start = 0; start < placements.size(); ++start) {
    if (seen[start] || !is_light(start)) continue;
    std::vector<size_t> island{start};
    seen[start] = true;
    bool stranded = true;
    bool touches_host = false;
    for (size_t at = 0; at < island.size(); ++at) {
      for (const size_t other : neighbours.of[island[at]]) {
        if (other == Neighbours::outside) continue;
        if (is_light(other)) {
          if (!seen[other]) island.push_back(other);
          seen[other] = true;
        } else if (placements[other].device == 0) {
          stranded = false;
        } else {
          touches_host = true;
        }
      }
    }
    if (!stranded || !touches_host) continue;
    for (const size_t i : island) {
      const Choice choice = choose_kernel(call_for(graph, graph.node(placements[i].node)), *devices[host], options.only_kernel);
      if (choice.kernel == nullptr) continue;
      placements[i].device = host;
      placements[i].kernel = choice.kernel->name;
      placements[i].state = State::Choice;
    }
  }
}

// Whether the node was built in place of one of these.
bool stands_for(const std::string& name, const std::set<std::string>& nodes) {
  return std::ranges::any_of(nodes, [&](const std::string& each) { return name.starts_with(each + "/"); });
}

std::string refusal_lines(const Graph& graph, const std::vector<Placement>& placements, bool forbidden) {
  std::string lines;
  for (const Placement& placement : placements) {
    if (forbidden ? placement.state != State::Fallback : placement.device == 0) continue;
    const Node& node = graph.node(placement.node);
    lines += cat("\n  ", node.origin.op.empty() ? node.op : node.origin.op, " '", label(node), "'");
    for (const Refusal& refusal : placement.refusals) {
      lines += cat("\n    ", refusal.kernel.empty() ? refusal.device : refusal.kernel, ": ", name(refusal.why.reason), ": ",
                   refusal.why.detail);
    }
  }
  return lines;
}

void check_known(const Graph& graph) {
  std::string unknown;
  for (const Node& node : graph.nodes()) {
    if (all_ops().find(node.op) == nullptr) unknown += cat("\n  ", node.op, " '", label(node), "': ", why_absent(node.op));
  }
  if (!unknown.empty()) fail(ErrorKind::Unsupported, "operators that nothing here can run:", unknown);
}

}  // namespace

void require_memory(const OpCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const auto* type = std::get_if<TensorType>(&call.outputs[i]);
    if (type == nullptr || !type->is_known() || !call.wants_output(i) || type->bytes() <= memory_limit()) continue;
    check_memory(type->bytes());
  }
}

bool is_shape_arithmetic(const OpCall& call) {
  if (call.node.op == "Shape" || call.node.op == "Size") return true;
  const auto small = [](const std::optional<Type>& type) { return !type || is_small_integer(*type); };
  return std::ranges::all_of(call.inputs, small) && std::ranges::all_of(call.outputs, is_small_integer);
}

bool is_control_flow(const Node& node) { return runs_bodies(node) || is_generation(node); }

bool has_known_types(const OpCall& call) {
  const auto known_input = [](const std::optional<Type>& type) { return !type || is_known(*type); };
  if (!std::ranges::all_of(call.inputs, known_input)) return false;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.wants_output(i) && !is_known(call.outputs[i])) return false;
  }
  return true;
}

Choice choose_kernel(const OpCall& call, const Device& device, const std::string& only) {
  Choice choice;
  const auto kernels = device.kernels().find(call.node.op);
  const bool forced = !only.empty() && std::ranges::any_of(kernels, [&](const Kernel& kernel) { return kernel.name == only; });
  for (const Kernel& kernel : kernels) {
    if (forced && kernel.name != only) continue;
    Support support = kernel.supports(call);
    if (support) {
      choice.kernel = &kernel;
      return choice;
    }
    choice.refusals.push_back({device.info().id, kernel.name, std::move(support)});
  }
  const Kernel* const generic = device.kernels().generic();
  if (generic == nullptr || forced) {
    if (kernels.empty()) choice.refusals.push_back({device.info().id, "", no(Reason::NoKernel, "no kernel for ", call.node.op)});
    return choice;
  }
  Support support = generic->supports(call);
  if (support) {
    choice.kernel = generic;
  } else {
    choice.refusals.push_back({device.info().id, generic->name, std::move(support)});
  }
  return choice;
}

bool has_own_kernel(const OpCall& call, const Device& device) {
  return std::ranges::any_of(device.kernels().find(call.node.op),
                             [&](const Kernel& kernel) { return static_cast<bool>(kernel.supports(call)); });
}

PlacedGraph place(Graph graph, const std::vector<std::shared_ptr<Device>>& devices, const PlanOptions& options) {
  if (!options.place_only) check_known(graph);
  std::set<std::string> from_expansion;
  PlacedGraph placed;
  for (size_t round = 0; round <= most_rounds; ++round) {
    placed.placements = Placer(graph, devices, options, from_expansion).run();
    if (round == most_rounds) break;
    auto replacements = to_widen(graph, placed.placements, *devices[0], options);
    const bool expands = replacements.empty();
    if (expands) replacements = to_expand(graph, placed.placements, *devices[0], options);
    if (replacements.empty()) break;
    std::set<std::string> before;
    for (const Node& node : graph.nodes()) before.insert(node.name);
    graph = with_replaced(graph, replacements);
    if (options.passes.fuse)
      graph = optimized(graph, {.takes = [&](const OpCall& call) { return has_own_kernel(call, *devices[0]); }});
    for (const Node& node : graph.nodes()) {
      const bool part = expands || stands_for(node.name, from_expansion);
      if (part && !before.contains(node.name)) from_expansion.insert(node.name);
    }
  }
  const auto unplaced = std::ranges::count_if(placed.placements, [&](const Placement& p) { return p.device == devices.size(); });
  if (unplaced > 0) {
    std::vector<Placement> nobody;
    std::ranges::copy_if(placed.placements, std::back_inserter(nobody),
                         [&](const Placement& p) { return p.device == devices.size(); });
    fail(ErrorKind::Unsupported, unplaced, " nodes run on no device:", refusal_lines(graph, nobody, false));
  }
  const auto refused = std::ranges::count_if(placed.placements, [](const Placement& p) { return p.state == State::Fallback; });
  if (options.fallback == Fallback::Forbid && refused > 0) {
    fail(ErrorKind::Unsupported, devices[0]->info().id, " refuses ", refused, " of ", graph.nodes().size(),
         " nodes, and fallback is forbidden:", refusal_lines(graph, placed.placements, true));
  }
  keep_with_neighbours(graph, devices, options, placed.placements);
  placed.graph = std::move(graph);
  return placed;
}

}  // namespace unmoor
