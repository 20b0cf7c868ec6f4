#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

bool is_short(const TensorType* type) { return type != nullptr && (type->dtype == DType::F16 || type->dtype == DType::BF16); }

// A value of the same shape in another dtype.
ValueId add_value(Rewriter& r, const std::string& name, DType dtype, Shape shape) {
  Value value;
  value.name = name;
  value.type = TensorType{dtype, std::move(shape)};
  return r.add_value(std::move(value));
}

Node cast_node(const Node& place, ValueId from, ValueId to, DType dtype) {
  Node node;
  node.name = place.name + "/cast";
  node.op = "Cast";
  node.inputs = {from};
  node.outputs = {to};
  node.attributes = {{"to", static_cast<int64_t>(dtype == DType::F32 ? 1 : dtype == DType::F16 ? 10 : 16)}};
  node.origin = place.origin;
  return node;
}

// Softmax weights in float32 that only this product reads in 16 bits: those that a Cast stores, or a Softmax that is done in float32 from
// now on. no_value if it is none of both.
ValueId wide_weights(Rewriter& r, NodeId product) {
  const ValueId weights = r.node(product).inputs[0];
  if (!is_short(r.tensor_type(weights)) || r.only_user(weights) == no_node) return no_value;
  const Node* const cast = r.made_by(weights, "Cast");
  if (cast != nullptr && r.made_by(input_of(*cast, 0), "Softmax") != nullptr) {
    const TensorType* from = r.tensor_type(cast->inputs[0]);
    return from != nullptr && from->dtype == DType::F32 ? cast->inputs[0] : no_value;
  }
  const Node* const softmax = r.made_by(weights, "Softmax");
  const TensorType* const scores = softmax == nullptr ? nullptr : r.tensor_type(input_of(*softmax, 0));
  if (scores == nullptr) return no_value;
  const Shape shape = scores->shape;
  Node wide = *softmax;
  const ValueId wide_scores = add_value(r, wide.name + "/scores", DType::F32, shape);
  r.insert_before(product, cast_node(wide, wide.inputs[0], wide_scores, DType::F32));
  wide.inputs = {wide_scores};
  wide.outputs = {add_value(r, wide.name + "/wide", DType::F32, shape)};
  const ValueId result = wide.outputs[0];
  r.insert_before(product, std::move(wide));
  return result;
}

bool widen(Rewriter& r, NodeId id) {
  const Node node = r.node(id);
  if (node.op != "MatMul" || node.inputs.size() != 2 || output_of(node) == no_value) return false;
  const TensorType* const right = r.tensor_type(node.inputs[1]);
  const TensorType* const result = r.tensor_type(node.outputs[0]);
  if (right == nullptr || result == nullptr) return false;
  const ValueId weights = wide_weights(r, id);
  if (weights == no_value) return false;
  const TensorType stored = *r.tensor_type(node.outputs[0]);  // Adding values moves the others.
  const ValueId wide_right = add_value(r, node.name + "/right", DType::F32, Shape(r.tensor_type(node.inputs[1])->shape));
  const ValueId wide_result = add_value(r, node.name + "/wide", DType::F32, stored.shape);
  r.insert_before(id, cast_node(node, node.inputs[1], wide_right, DType::F32));
  Node product = node;
  product.inputs = {weights, wide_right};
  product.outputs = {wide_result};
  r.insert_before(id, std::move(product));
  r.replace(id, cast_node(node, wide_result, node.outputs[0], stored.dtype));
  return true;
}

}  // namespace

bool widen_weights(Rewriter& r) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) changed |= widen(r, id);
  if (changed) r.remove_dead();
  return changed;
}

}  // namespace unmoor
