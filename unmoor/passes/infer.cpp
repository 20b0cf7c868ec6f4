#include "unmoor/passes/infer.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/op.h"
#include "unmoor/passes/fold.h"

namespace unmoor {
namespace {

void infer_node(Rewriter& r, NodeId id, int depth) {
  const Node& node = r.node(id);
  const Op* const op = all_ops().find(node.op);
  const bool control = runs_bodies(node);
  if (!control && (op == nullptr || !op->infer)) {
    // What the file declares may be wrong in shape; only its dtype is kept.
    for (const ValueId output : node.outputs) {
      if (output != no_value) r.set_type(output, without_rank(r.value(output).type));
    }
    return;
  }
  std::vector<Type> types;
  if (control) {
    types = infer_control_flow(r, id, depth);
  } else {
    OpCall call = call_for(r.graph(), node);
    call.outputs.clear();
    types = infer_outputs(call);
  }
  const auto& outputs = r.node(id).outputs;
  for (size_t i = 0; i < outputs.size() && i < types.size(); ++i) {
    if (outputs[i] != no_value) r.set_type(outputs[i], std::move(types[i]));
  }
}

void check_rank_and_dtype(const std::string& name, const Type& declared, const Type& wanted) {
  const auto* from = std::get_if<TensorType>(&declared);
  const auto* to = std::get_if<TensorType>(&wanted);
  if (from == nullptr || to == nullptr) {
    if (declared.index() != wanted.index()) fail(ErrorKind::InvalidArgument, "input '", name, "' is ", declared, ", not ", wanted);
    return;
  }
  if (from->dtype != to->dtype) fail(ErrorKind::InvalidArgument, "input '", name, "' is ", from->dtype, ", not ", to->dtype);
  if (from->shape.has_rank() && to->shape.has_rank() && from->shape.rank() != to->shape.rank()) {
    fail(ErrorKind::InvalidArgument, "input '", name, "' has ", from->shape.rank(), " dimensions, ", from->shape, "; the shape given is ",
         to->shape);
  }
}

}  // namespace

void infer_types(Rewriter& r, int depth) {
  const FoldLimits small;
  for (NodeId id = r.first(); id != no_node;) {
    if (const auto inlined = inline_if(r, id)) {
      id = *inlined;
      continue;
    }
    infer_node(r, id, depth);
    fold_node(r, id, small);
    id = r.next(id);
  }
}

Graph with_inputs_inside(const Graph& body, const std::vector<InputBinding>& inputs, int depth, Budget* budget) {
  if (inputs.size() != body.inputs().size()) {
    fail(ErrorKind::InvalidModel, "graph '", body.name(), "' has ", body.inputs().size(), " inputs; ", inputs.size(), " were given");
  }
  Rewriter r(body);
  if (budget != nullptr) r.budget() = *budget;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId input = body.inputs()[i];
    r.set_type(input, inputs[i].type);
    if (inputs[i].value == nullptr || !*inputs[i].value) continue;
    // The input stays in the signature; what used it uses the value.
    Value known = r.value(input);
    known.constant = *inputs[i].value;
    known.type = type_of(*known.constant);
    r.replace_value(input, r.add_value(std::move(known)));
  }
  try {
    infer_types(r, depth);
  } catch (const Error&) {
    if (budget != nullptr) *budget = r.budget();
    throw;
  }
  if (budget != nullptr) *budget = r.budget();
  return r.finish();
}

Graph with_inputs(const Graph& graph, const std::vector<InputBinding>& inputs) { return with_inputs_inside(graph, inputs, 0, nullptr); }

Graph with_shapes(const Graph& graph, const InputShapes& shapes) {
  Rewriter r(graph);
  size_t used = 0;
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    const auto found = shapes.find(input.name);
    if (found == shapes.end()) continue;
    ++used;
    const auto* declared = std::get_if<TensorType>(&input.type);
    if (declared == nullptr) fail(ErrorKind::InvalidArgument, "input '", input.name, "' is ", input.type, ", which has no shape to set");
    const TensorType wanted{declared->dtype, found->second};
    check_rank_and_dtype(input.name, input.type, wanted);
    r.set_type(id, wanted);
  }
  if (used < shapes.size()) {
    for (const auto& [name, shape] : shapes) {
      bool known = false;
      for (const ValueId id : graph.inputs()) known |= graph.value(id).name == name;
      if (!known) fail(ErrorKind::InvalidArgument, "the model has no input '", name, "' to give the shape ", shape);
    }
  }
  infer_types(r, 0);
  return r.finish();
}

}  // namespace unmoor
