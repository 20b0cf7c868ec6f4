#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/inverted_residual.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

constexpr size_t weights = 1;
constexpr size_t bias = 2;
constexpr size_t residual = 3;

bool is_last_convolution(const Rewriter& r, const Node& node) {
  const Shape* const image = r.known_shape(input_of(node, 0));
  const Shape* const kernel = r.known_shape(input_of(node, weights));
  return (node.op == "Conv" || node.op == "unmoor:FusedConv") && text_of(node, "layout", "NCHW") == "NHWC" && image != nullptr &&
         image->rank() == 4 && kernel != nullptr && kernel->rank() == 4;
}

bool is_all(const Node& node, std::string_view key, int64_t wanted) {
  return std::ranges::all_of(integers_of(node, key), [wanted](int64_t value) { return value == wanted; });
}

// Each pixel by itself.
bool is_pointwise(const Rewriter& r, const Node& node) {
  if (!is_last_convolution(r, node) || integer_of(node, "group", 1) != 1) return false;
  const Shape& kernel = *r.known_shape(node.inputs[weights]);
  return kernel[2] == 1 && kernel[3] == 1 && is_all(node, "strides", 1) && is_all(node, "pads", 0);
}

// Each channel by itself, one result a channel.
bool is_depthwise(const Rewriter& r, const Node& node) {
  if (!is_last_convolution(r, node) || input_of(node, residual) != no_value) return false;
  const Shape& kernel = *r.known_shape(node.inputs[weights]);
  return kernel[1] == 1 && integer_of(node, "group", 1) == kernel[0];
}

// The node that makes what this one alone reads as its image; no_node if others see it.
NodeId only_source(const Rewriter& r, const Node& node) {
  const ValueId image = node.inputs[0];
  return r.uses(image) == 1 && !r.is_output(image) ? r.maker(image) : no_node;
}

void take_activation(Node& fused, const Node& from, std::string_view prefix) {
  for (const char* const key : {"activation", "activation_params"}) {
    const auto found = from.attributes.find(key);
    if (found != from.attributes.end()) fused.attributes[cat(prefix, key)] = found->second;
  }
}

// The operator for these nodes; `expand` is null where the depthwise convolution comes first.
Node fused_node(const Node* expand, const Node& depthwise, const Node& project) {
  Node fused = project;
  fused.op = "unmoor:InvertedResidual";
  fused.inputs = {(expand == nullptr ? depthwise : *expand).inputs[0],
                  expand == nullptr ? no_value : expand->inputs[weights],
                  expand == nullptr ? no_value : input_of(*expand, bias),
                  depthwise.inputs[weights],
                  input_of(depthwise, bias),
                  project.inputs[weights],
                  input_of(project, bias),
                  input_of(project, residual)};
  while (fused.inputs.back() == no_value) fused.inputs.pop_back();
  fused.attributes.clear();
  for (const char* const key : {"auto_pad", "dilations", "pads", "strides"}) {
    const auto found = depthwise.attributes.find(key);
    if (found != depthwise.attributes.end()) fused.attributes[key] = found->second;
  }
  if (expand != nullptr) take_activation(fused, *expand, inverted_residual::expand_prefix);
  take_activation(fused, depthwise, inverted_residual::depthwise_prefix);
  take_activation(fused, project, "");
  return fused;
}

bool fuse_parts(Rewriter& r, NodeId expand, NodeId depthwise, NodeId project, const TakesCall& takes) {
  Node fused = fused_node(expand == no_node ? nullptr : &r.node(expand), r.node(depthwise), r.node(project));
  if (!takes(call_for(r.graph(), fused))) return false;
  std::vector<NodeId> others{depthwise};
  if (expand != no_node) others.push_back(expand);
  fused.origin = joined_origin(r, project, others);
  for (const NodeId id : others) r.remove(id);
  r.replace(project, std::move(fused));
  return true;
}

bool fuse_at(Rewriter& r, NodeId project, const TakesCall& takes) {
  if (!is_pointwise(r, r.node(project))) return false;
  const NodeId depthwise = only_source(r, r.node(project));
  if (depthwise == no_node || !is_depthwise(r, r.node(depthwise))) return false;
  const NodeId expand = only_source(r, r.node(depthwise));
  const bool expands = expand != no_node && is_pointwise(r, r.node(expand)) && input_of(r.node(expand), residual) == no_value;
  return (expands && fuse_parts(r, expand, depthwise, project, takes)) || fuse_parts(r, no_node, depthwise, project, takes);
}

}  // namespace

bool fuse_inverted_residual(Rewriter& r, const TakesCall& takes) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) changed |= fuse_at(r, id, takes);
  return changed;
}

}  // namespace unmoor
