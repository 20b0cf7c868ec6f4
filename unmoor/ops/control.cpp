#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/type_union.h"

// If, Loop, Scan and SequenceMap have no reference: the runtime runs them, their bodies being graphs with plans of their own.
namespace unmoor {
namespace {

const Type& output_type(const Graph& graph, size_t i) { return graph.value(graph.outputs()[i]).type; }

// The node's inputs without those that its bodies capture.
size_t own_inputs(const OpCall& call) {
  const int64_t captures = call.integer("captures", 0);
  const auto count = static_cast<int64_t>(call.input_count());
  if (captures < 0 || captures > count)
    fail(ErrorKind::InvalidModel, title(call), ": it captures ", captures, " of ", count, " inputs");
  return static_cast<size_t>(count - captures);
}

void check_body(const OpCall& call, const Graph& body, size_t inputs, size_t least_outputs) {
  const auto captures = static_cast<size_t>(call.integer("captures", 0));
  if (body.inputs().size() != inputs + captures) {
    fail(ErrorKind::InvalidModel, title(call), ": its body has ", body.inputs().size(), " inputs, not ", inputs, " and ",
         captures, " captured ones");
  }
  if (body.outputs().size() < least_outputs) {
    fail(ErrorKind::InvalidModel, title(call), ": its body has ", body.outputs().size(), " outputs, not at least ",
         least_outputs);
  }
}

std::vector<Type> infer_if(const OpCall& call) {
  if (own_inputs(call) != 1)
    fail(ErrorKind::InvalidModel, title(call), ": it has ", own_inputs(call), " inputs, not one condition");
  const SubGraph then_branch = call.graph("then_branch");
  const SubGraph else_branch = call.graph("else_branch");
  check_body(call, *then_branch, 0, 0);
  check_body(call, *else_branch, 0, 0);
  if (then_branch->outputs().size() != else_branch->outputs().size()) {
    fail(ErrorKind::InvalidModel, title(call), ": its branches have ", then_branch->outputs().size(), " and ",
         else_branch->outputs().size(), " outputs");
  }
  const auto condition = constant_integers(call, 0);
  std::vector<Type> types;
  for (size_t i = 0; i < then_branch->outputs().size(); ++i) {
    const Type& then_type = output_type(*then_branch, i);
    const Type& else_type = output_type(*else_branch, i);
    if (condition && condition->size() == 1) {
      types.push_back((*condition)[0] != 0 ? then_type : else_type);
    } else {
      types.push_back(either_type(call, then_type, else_type));
    }
  }
  return types;
}

// One iteration's output with the iterations as a new axis.
Type stacked(const OpCall& call, const Type& type, int64_t axis, int64_t length) {
  const auto* tensor = std::get_if<TensorType>(&type);
  if (tensor == nullptr) fail(ErrorKind::InvalidModel, title(call), ": a scan output cannot be ", type);
  if (!tensor->shape.has_rank()) return *tensor;
  const size_t at = axis_of(call, axis, tensor->shape.rank() + 1);
  Shape shape;
  for (size_t i = 0; i <= tensor->shape.rank(); ++i) {
    if (i == at) shape.push_back(length);
    if (i < tensor->shape.rank()) shape.push_back(tensor->shape, i);
  }
  return TensorType{tensor->dtype, std::move(shape)};
}

// Inputs: the number of iterations, the condition, and what the iterations carry.
std::vector<Type> infer_loop(const OpCall& call) {
  const SubGraph body = call.graph("body");
  const size_t own = own_inputs(call);
  const size_t carried = own < 2 ? 0 : own - 2;
  check_body(call, *body, 2 + carried, 1 + carried);
  std::vector<Type> types;
  for (size_t i = 0; i < carried; ++i) {
    if (!call.has(2 + i)) fail(ErrorKind::InvalidModel, title(call), ": input ", 2 + i, " is absent");
    types.push_back(either_type(call, *call.inputs[2 + i], output_type(*body, 1 + i)));
  }
  for (size_t i = 1 + carried; i < body->outputs().size(); ++i)
    types.push_back(stacked(call, output_type(*body, i), 0, Shape::unknown));
  return types;
}

int64_t listed(const OpCall& call, std::string_view key, size_t i) {
  const auto list = call.integers(key);
  return i < list.size() ? list[i] : 0;
}

// Inputs: states, then what is scanned.
std::vector<Type> infer_scan(const OpCall& call) {
  const SubGraph body = call.graph("body");
  const size_t own = own_inputs(call);
  const int64_t scanned = call.integer("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(own))
    fail(ErrorKind::InvalidModel, title(call), ": num_scan_inputs is ", scanned, " of ", own, " inputs");
  const size_t states = own - static_cast<size_t>(scanned);
  check_body(call, *body, own, states);
  int64_t length = Shape::unknown;
  for (size_t i = states; i < own; ++i) {
    const Shape& shape = call.input(i).shape;
    if (!shape.has_rank()) continue;
    length = same_dim(call, length, shape[axis_of(call, listed(call, "scan_input_axes", i - states), shape.rank())],
                      "the number of iterations");
  }
  std::vector<Type> types;
  for (size_t i = 0; i < states; ++i) {
    if (!call.has(i)) fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is absent");
    types.push_back(either_type(call, *call.inputs[i], output_type(*body, i)));
  }
  for (size_t i = states; i < body->outputs().size(); ++i) {
    types.push_back(stacked(call, output_type(*body, i), listed(call, "scan_output_axes", i - states), length));
  }
  return types;
}

// Elements of the sequences go to the body one at a time; what is no sequence, whole.
std::vector<Type> infer_sequence_map(const OpCall& call) {
  const SubGraph body = call.graph("body");
  check_body(call, *body, own_inputs(call), 0);
  element_of(call, 0);
  std::vector<Type> types;
  for (size_t i = 0; i < body->outputs().size(); ++i) types.push_back(sequence_of(output_type(*body, i)));
  return types;
}

Op control(std::string name, std::string summary) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.outputs = {variadic("outputs", {})};
  op.attributes = {{"captures", int64_t{0}}};
  op.category = Category::ControlFlow;
  return op;
}

}  // namespace

void add_control_ops(OpSet& ops) {
  Op branch = control("If", "One of two graphs, chosen by a condition.");
  branch.inputs = {required("cond", {DType::Bool}), variadic("captured", {})};
  branch.infer = infer_if;
  ops.add(std::move(branch));

  Op loop = control("Loop", "A graph run again and again, up to a number of times or while a condition holds.");
  loop.inputs = {optional("M", {DType::I64}), optional("cond", {DType::Bool}), variadic("v_initial", {})};
  loop.infer = infer_loop;
  ops.add(std::move(loop));

  Op scan = control("Scan", "A graph run over the slices of its inputs along an axis.");
  scan.inputs = {variadic("initial_state_and_scan_inputs", {})};
  scan.infer = infer_scan;
  ops.add(std::move(scan));

  Op map = control("SequenceMap", "A graph run over the elements of sequences; its outputs are collected in sequences.");
  map.inputs = {required("input_sequence", {}), variadic("additional_inputs", {})};
  map.infer = infer_sequence_map;
  ops.add(std::move(map));
}

}  // namespace unmoor
