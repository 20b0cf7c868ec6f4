#include "unmoor/runtime/replace.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {
namespace {

constexpr size_t expansion_depth = 4;

bool fits(const OpCall& call, const Device& device, bool own) {
  if (own && !is_shape_arithmetic(call)) return has_own_kernel(call, device);
  return choose_kernel(call, device, {}).kernel != nullptr;
}

// Whether the outputs of the call's expansion have the types that were inferred for it.
bool keeps_types(const OpCall& call, const Graph& inner) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const auto* const wanted = std::get_if<TensorType>(&call.outputs[i]);
    const auto name = std::ranges::find(inner.output_names(), cat("output_", i));
    if (wanted == nullptr || !call.wants_output(i) || name == inner.output_names().end()) continue;
    const ValueId output = inner.outputs()[static_cast<size_t>(name - inner.output_names().begin())];
    const auto* const made = std::get_if<TensorType>(&inner.value(output).type);
    if (made == nullptr || !(*wanted == *made)) return false;
  }
  return true;
}

// Whether every node of the call's expansion, expanded further if need be, has a kernel on the device: with `own`, one that is
// not the generic one.
bool expansion_fits(const OpCall& call, const Device& device, bool own, size_t depth) {
  Graph inner;
  try {
    inner = expanded(call);
  } catch (const Error&) {
    return false;  // An operator may have an expansion for some calls only.
  }
  if (!keeps_types(call, inner)) return false;
  for (const Node& node : inner.nodes()) {
    const OpCall part = call_for(inner, node);
    if (!has_known_types(part)) return false;  // Kernels are asked about known shapes only.
    if (fits(part, device, own)) continue;
    if (depth == 0 || !has_expansion(node) || !expansion_fits(part, device, own, depth - 1)) return false;
  }
  return true;
}

// The call in float32 where the device has kernels of its own for that and for the way there and back. Both keep the value in
// float32 while they compute it, so it costs nothing but two conversions.
std::shared_ptr<const Float32Call> fits_in_float32(const OpCall& call, const Device& device) {
  if (device.kernels().find(call.node.op).empty()) return nullptr;
  auto wide = in_float32(call);
  if (wide == nullptr || !has_own_kernel(wide->call, device)) return nullptr;
  const auto casts = [&device](const Type& from, const Type& to) {
    const auto* const wanted = std::get_if<TensorType>(&to);
    if (wanted == nullptr || wanted->dtype == std::get<TensorType>(from).dtype) return true;
    Node cast;
    cast.op = "Cast";
    cast.attributes["to"] = onnx_number(wanted->dtype);
    cast.outputs = {ValueId{0}};
    return has_own_kernel(OpCall{cast, {from}, {to}, {nullptr}}, device);
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] && call.constant(i) == nullptr && !casts(*call.inputs[i], *wide->call.inputs[i])) return nullptr;
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.wants_output(i) && !casts(wide->call.outputs[i], call.outputs[i])) return nullptr;
  }
  return wide;
}

// Whether the device refuses the node, or leaves it to its generic kernel. Steps of a quantisation stay whole: in parts they may
// round to the other side.
bool may_be_replaced(const Graph& graph, const Placement& placement, const Device& device, const PlanOptions& options) {
  const Node& node = graph.node(placement.node);
  const Op* const op = all_ops().find(node.op);
  if (is_control_flow(node) || op == nullptr) return false;
  if (placement.device != 0) return true;
  const Kernel* const generic = device.kernels().all().empty() || !options.passes.fuse ? nullptr : device.kernels().generic();
  return generic != nullptr && placement.kernel == generic->name && op->rounding != Rounding::Quantise;
}

}  // namespace

std::map<NodeId, Replacement> to_widen(const Graph& graph, const std::vector<Placement>& placements, const Device& device,
                                       const PlanOptions& options) {
  std::map<NodeId, Replacement> result;
  for (const Placement& placement : placements) {
    if (!may_be_replaced(graph, placement, device, options)) continue;
    const OpCall call = call_for(graph, graph.node(placement.node));
    if (!has_known_types(call)) continue;
    if (const auto wide = fits_in_float32(call, device)) {
      result[placement.node] = [wide](GraphBuilder& builder) { build_in_float32(*wide, builder); };
    }
  }
  return result;
}

std::map<NodeId, Replacement> to_expand(const Graph& graph, const std::vector<Placement>& placements, const Device& device,
                                        const PlanOptions& options) {
  std::map<NodeId, Replacement> result;
  for (const Placement& placement : placements) {
    const Node& node = graph.node(placement.node);
    if (!has_expansion(node) || !may_be_replaced(graph, placement, device, options)) continue;
    const OpCall call = call_for(graph, node);
    if (!has_known_types(call) || !expansion_fits(call, device, placement.device == 0, expansion_depth)) continue;
    result[placement.node] = all_ops().find(node.op)->expand;
  }
  return result;
}

}  // namespace unmoor
