#include "unmoor/passes/activation.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

bool is_product(const Node& node) { return node.op == "MatMul" || node.op == "Gemm" || node.op == "unmoor:FusedMatMul"; }

size_t rank_of(const Rewriter& r, ValueId id) {
  const TensorType* type = r.tensor_type(id);
  return type != nullptr && type->shape.has_rank() ? type->shape.rank() : 0;
}

// MatMul or Gemm as FusedMatMul; nothing if it cannot be one.
std::optional<Node> as_fused(Rewriter& r, const Node& node) {
  if (!is_float_tensor(r, output_of(node)) || rank_of(r, input_of(node, 0)) < 2 || rank_of(r, input_of(node, 1)) < 2) return std::nullopt;
  if (node.op == "unmoor:FusedMatMul") return node;
  Node fused = node;
  fused.op = "unmoor:FusedMatMul";
  const auto flag = [&node](std::string_view key) { return int64_t{integer_of(node, key, 0) != 0}; };
  fused.attributes = {{"transA", flag("transA")},
                      {"transB", flag("transB")},
                      {"alpha", static_cast<float>(real_of(node, "alpha", 1))}};
  const ValueId bias = input_of(node, 2);
  if (node.op == "MatMul" || bias == no_value) return fused;
  const double beta = real_of(node, "beta", 1);
  if (beta == 1) return fused;
  const Tensor* constant = r.constant(bias);
  if (constant == nullptr || constant->elements() > (1U << 20)) return std::nullopt;
  auto numbers = doubles(*constant);
  for (double& number : numbers) number *= beta;
  fused.inputs[2] = r.add_constant("", make_tensor(constant->dtype(), constant->shape(), numbers));
  return fused;
}

bool has_epilogue(const Node& node) {
  return input_of(node, 2) != no_value || input_of(node, 3) != no_value || !text_of(node, "activation", "").empty();
}

// Sets alpha, if it can be what is wanted.
bool set_alpha(const Rewriter& r, Node& fused, double alpha) {
  const auto number = attribute_number(r.tensor_type(output_of(fused))->dtype, alpha);
  if (!number || *number == 0) return false;
  fused.attributes["alpha"] = *number;
  return true;
}

// Scaling by a number goes into alpha, while nothing has been added yet.
bool absorb_scale(Rewriter& r, NodeId id) {
  const Node& node = r.node(id);
  const NodeId user = only_follower(r, output_of(node));
  if (user == no_node || has_epilogue(node)) return false;
  const Node& scale = r.node(user);
  const size_t at = input_of(scale, 0) == output_of(node) ? 1 : 0;
  const auto number = scalar_of(r, input_of(scale, at));
  const bool divides = scale.op == "Div" && at == 1 && number.value_or(0) != 0;
  if (!number || (scale.op != "Mul" && !divides) || rank_of(r, scale.outputs[0]) != rank_of(r, output_of(node))) return false;
  auto fused = as_fused(r, node);
  if (!fused) return false;
  const double alpha = real_of(*fused, "alpha", 1);
  if (!set_alpha(r, *fused, divides ? alpha / *number : alpha * *number)) return false;
  Epilogue epilogue;
  epilogue.last = user;
  epilogue.nodes = {id};
  fuse(r, id, std::move(*fused), epilogue);
  return true;
}

// So does scaling of an operand that nothing else uses.
bool absorb_operand_scale(Rewriter& r, NodeId id, size_t operand) {
  const Node& node = r.node(id);
  const ValueId value = input_of(node, operand);
  const NodeId made = r.maker(value);
  if (made == no_node || r.only_user(value) != id) return false;
  const Node& scale = r.node(made);
  if (scale.op != "Mul" && scale.op != "Div") return false;
  const size_t at = scale.op == "Mul" && scalar_of(r, input_of(scale, 0)) ? 0 : 1;
  const auto number = scalar_of(r, input_of(scale, at));
  const ValueId input = input_of(scale, 1 - at);
  if (!number || *number == 0 || rank_of(r, input) != rank_of(r, value)) return false;
  auto fused = as_fused(r, node);
  if (!fused) return false;
  const double alpha = real_of(*fused, "alpha", 1);
  if (!set_alpha(r, *fused, scale.op == "Div" ? alpha / *number : alpha * *number)) return false;
  fused->inputs[operand] = input;
  fused->origin = joined_origin(r, id, {made});
  r.replace(id, std::move(*fused));
  r.remove(made);
  return true;
}

bool absorb_operand_scales(Rewriter& r, NodeId id) {
  const bool a = absorb_operand_scale(r, id, 0);
  const bool b = absorb_operand_scale(r, id, 1);
  return a || b;
}

// The operand of an Add that has one number a column, or one in all.
ValueId column_operand(const Rewriter& r, const Node& add, ValueId value) {
  if (add.op != "Add" || add.inputs.size() != 2 || add.inputs[0] == add.inputs[1]) return no_value;
  const ValueId other = add.inputs[0] == value ? add.inputs[1] : add.inputs[0];
  const Shape* shape = r.known_shape(other);
  const TensorType* type = r.tensor_type(value);
  if (shape == nullptr || !type->shape.has_rank() || type->shape.rank() == 0 || shape->rank() > type->shape.rank()) return no_value;
  const int64_t columns = type->shape[type->shape.rank() - 1];
  const int64_t elements = shape->elements();
  if (elements == 1) return other;
  return columns == elements && (*shape)[shape->rank() - 1] == columns ? other : no_value;
}

bool absorb_bias(Rewriter& r, NodeId id) {
  const Node& node = r.node(id);
  const NodeId user = only_follower(r, output_of(node));
  if (user == no_node || has_epilogue(node)) return false;
  const ValueId bias = column_operand(r, r.node(user), output_of(node));
  if (bias == no_value) return false;
  auto fused = as_fused(r, node);
  if (!fused) return false;
  fused->inputs.resize(3, no_value);
  fused->inputs[2] = bias;
  Epilogue epilogue;
  epilogue.last = user;
  epilogue.nodes = {id};
  fuse(r, id, std::move(*fused), epilogue);
  return true;
}

bool absorb_epilogue(Rewriter& r, NodeId id) {
  const Node& node = r.node(id);
  if (input_of(node, 3) != no_value || !text_of(node, "activation", "").empty()) return false;
  const Epilogue epilogue = epilogue_of(r, id);
  if (epilogue.empty()) return false;
  auto fused = as_fused(r, node);
  if (!fused) return false;
  if (epilogue.residual != no_value) {
    fused->inputs.resize(4, no_value);
    fused->inputs[3] = epilogue.residual;
  }
  fuse(r, id, std::move(*fused), epilogue);
  return true;
}

// A Transpose that swaps the last two axes of an operand becomes transA or transB.
bool absorb_transpose(Rewriter& r, NodeId id, size_t operand) {
  const Node& node = r.node(id);
  const Node* transpose = r.made_by(input_of(node, operand), "Transpose");
  if (transpose == nullptr) return false;
  const auto permutation = integers_of(*transpose, "perm");
  const size_t rank = permutation.size();
  if (rank < 2 || permutation[rank - 1] + 2 != static_cast<int64_t>(rank) || permutation[rank - 2] + 1 != static_cast<int64_t>(rank)) return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  const ValueId input = input_of(*transpose, 0);
  auto fused = as_fused(r, node);
  if (!fused || rank_of(r, input) != rank) return false;
  const char* const key = operand == 0 ? "transA" : "transB";
  fused->inputs[operand] = input;
  fused->attributes[key] = int64_t{1} - integer_of(*fused, key, 0);
  if (r.only_user(node.inputs[operand]) == id) fused->origin = joined_origin(r, id, {r.maker(node.inputs[operand])});
  r.replace(id, std::move(*fused));
  return true;
}

}  // namespace

bool fuse_transpose(Rewriter& r) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) {
    if (!is_product(r.node(id))) continue;
    changed |= absorb_transpose(r, id, 0);
    changed |= absorb_transpose(r, id, 1);
  }
  return changed;
}

bool fuse_matmul(Rewriter& r) {
  bool changed = false;
  const auto nodes = r.nodes();
  for (bool (*absorb)(Rewriter&, NodeId) : {absorb_operand_scales, absorb_scale, absorb_bias, absorb_epilogue}) {
    // From the outputs inwards: of two products that are added, the later one takes the other's result.
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      if (r.is_alive(*id) && is_product(r.node(*id))) changed |= absorb(r, *id);
    }
  }
  return changed;
}

}  // namespace unmoor
