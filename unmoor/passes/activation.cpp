#include "unmoor/passes/activation.h"

#include <limits>

#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

std::optional<Activation> clip_of(const Rewriter& r, const Node& node) {
  Activation activation{"Clip", {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()}};
  for (size_t i = 0; i < 2; ++i) {
    const ValueId bound = input_of(node, i + 1);
    if (bound == no_value) continue;
    const auto number = scalar_of(r, bound);
    if (!number || static_cast<double>(static_cast<float>(*number)) != *number) return std::nullopt;
    activation.params[i] = static_cast<float>(*number);
  }
  return activation;
}

bool is_beside(const Rewriter& r, NodeId add, ValueId value, ValueId other) {
  const TensorType* type = r.tensor_type(value);
  const TensorType* beside = r.tensor_type(other);
  const TensorType* sum = r.tensor_type(output_of(r.node(add)));
  return other != value && type != nullptr && beside != nullptr && sum != nullptr && type->is_known() && *type == *beside &&
         *sum == *type;
}

}  // namespace

std::optional<Activation> activation_of(const Rewriter& r, const Node& node) {
  const auto number = [&node](std::string_view key, double otherwise) { return static_cast<float>(real_of(node, key, otherwise)); };
  if (node.op == "Relu" || node.op == "Sigmoid" || node.op == "Tanh" || node.op == "HardSwish") return Activation{node.op, {}};
  if (node.op == "Clip") return clip_of(r, node);
  if (node.op == "HardSigmoid") return Activation{node.op, {number("alpha", 0.2), number("beta", 0.5)}};
  if (node.op == "Swish") return Activation{node.op, {number("alpha", 1)}};
  if (node.op == "LeakyRelu") return Activation{node.op, {number("alpha", 0.01)}};
  if (node.op == "Gelu") return Activation{text_of(node, "approximate", "none") == "tanh" ? "GeluTanh" : "Gelu", {}};
  return std::nullopt;
}

Epilogue epilogue_of(const Rewriter& r, NodeId id) {
  Epilogue epilogue;
  epilogue.last = id;
  const auto step = [&](NodeId next) {
    epilogue.nodes.push_back(epilogue.last);
    epilogue.last = next;
    return only_follower(r, output_of(r.node(next)));
  };
  NodeId user = only_follower(r, output_of(r.node(id)));
  if (user != no_node && r.node(user).op == "Add" && r.node(user).inputs.size() == 2) {
    const auto& inputs = r.node(user).inputs;
    const ValueId value = output_of(r.node(id));
    const ValueId other = inputs[0] == value ? inputs[1] : inputs[0];
    if (!is_beside(r, user, value, other)) return epilogue;
    epilogue.residual = other;
    user = step(user);
  }
  if (user == no_node || input_of(r.node(user), 0) != output_of(r.node(epilogue.last))) return epilogue;
  epilogue.activation = activation_of(r, r.node(user));
  if (epilogue.activation) step(user);
  return epilogue;
}

void fuse(Rewriter& r, NodeId id, Node fused, const Epilogue& epilogue) {
  const Node& last = r.node(epilogue.last);
  fused.name = last.name;
  fused.outputs = {last.outputs[0]};
  std::vector<NodeId> others = epilogue.nodes;
  fused.origin = joined_origin(r, epilogue.last, others);
  fused.attributes["activation"] = epilogue.activation ? epilogue.activation->name : std::string();
  fused.attributes["activation_params"] = epilogue.activation ? epilogue.activation->params : std::vector<float>();
  for (const NodeId other : others) r.remove(other);
  if (epilogue.last != id && r.is_alive(id)) r.remove(id);
  r.replace(epilogue.last, std::move(fused));
}

}  // namespace unmoor
