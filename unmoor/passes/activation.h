#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unmoor/passes/rewrite.h"

namespace unmoor {

// An activation as fused operators carry it: attributes `activation` and `activation_params`.
struct Activation {
  std::string name;
  std::vector<float> params;
};

// The node as such an activation of its first input.
std::optional<Activation> activation_of(const Rewriter& r, const Node& node);

// What follows a convolution or a product and can be computed as its values are stored.
struct Epilogue {
  ValueId residual = no_value;  // Added before the activation; of the output's shape.
  std::optional<Activation> activation;
  NodeId last = no_node;        // The node whose output the fused one gives.
  std::vector<NodeId> nodes;    // The others.
  bool empty() const { return residual == no_value && !activation; }
};
Epilogue epilogue_of(const Rewriter& r, NodeId id);

// Puts a fused node in the place of `epilogue.last` and removes `id` and the nodes between.
void fuse(Rewriter& r, NodeId id, Node fused, const Epilogue& epilogue);

}  // namespace unmoor
