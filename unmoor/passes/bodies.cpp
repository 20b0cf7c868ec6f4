#include <algorithm>
#include <memory>

#include "unmoor/base/error.h"
#include "unmoor/passes/infer.h"
#include "unmoor/passes/pattern.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// Below this many bodies around it, the types of values that a loop carries are found by trying; deeper they count as unknown, so that
// nested loops cannot multiply the work without end.
constexpr int deepest_search = 3;
constexpr int deepest_body = 100;

SubGraph body_of(const Node& node, std::string_view key) {
  const auto found = node.attributes.find(key);
  const auto* body = found == node.attributes.end() ? nullptr : std::get_if<SubGraph>(&found->second);
  if (body == nullptr || *body == nullptr) fail(ErrorKind::InvalidModel, node.op, " '", node.name, "' has no graph '", key, "'");
  return *body;
}

void expect(const Node& node, std::string_view what, size_t found, size_t wanted) {
  if (found != wanted) fail(ErrorKind::InvalidModel, node.op, " '", node.name, "' has ", found, " ", what, ", not ", wanted);
}

void expect_outputs(const Node& node, size_t of_body) {
  if (node.outputs.size() <= of_body) return;
  fail(ErrorKind::InvalidModel, node.op, " '", node.name, "' has ", node.outputs.size(), " outputs; its body gives ", of_body);
}

size_t capture_count(const Node& node, size_t own_inputs) {
  const int64_t captures = integer_of(node, "captures", 0);
  if (captures < 0 || static_cast<size_t>(captures) + own_inputs > node.inputs.size()) {
    fail(ErrorKind::InvalidModel, node.op, " '", node.name, "' has ", node.inputs.size(), " inputs, which is too few");
  }
  return static_cast<size_t>(captures);
}

void store_body(Rewriter& r, NodeId id, std::string_view key, Graph body) {
  Node node = r.node(id);
  node.attributes.find(key)->second = std::make_shared<const Graph>(std::move(body));
  r.replace(id, std::move(node));
}

InputBinding binding(const Rewriter& r, ValueId id) {
  if (id == no_value) return {OptionalType{}, nullptr};
  const Value& value = r.value(id);
  return {value.type, value.constant ? &*value.constant : nullptr};
}

void add_captures(const Rewriter& r, const Node& node, size_t captures, std::vector<InputBinding>& bindings) {
  for (size_t i = node.inputs.size() - captures; i < node.inputs.size(); ++i) bindings.push_back(binding(r, node.inputs[i]));
}

std::vector<Type> output_types(const Graph& body) {
  std::vector<Type> types;
  for (const ValueId id : body.outputs()) types.push_back(body.value(id).type);
  return types;
}

// A branch that cannot be inferred is one that cannot run on these inputs: whenever the node succeeds, the other one ran.
std::vector<Type> infer_if(Rewriter& r, NodeId id, int depth) {
  const Node node = r.node(id);
  std::vector<InputBinding> bindings;
  add_captures(r, node, capture_count(node, 1), bindings);
  std::vector<Type> types;
  std::optional<Error> error;
  size_t inferred = 0;
  for (const char* key : {"then_branch", "else_branch"}) {
    const SubGraph body = body_of(node, key);
    expect(node, "captures", bindings.size(), body->inputs().size());
    expect_outputs(node, body->outputs().size());
    try {
      Graph branch = with_inputs_inside(*body, bindings, depth + 1, &r.budget());
      const std::vector<Type> found = output_types(branch);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (inferred == 0) types.push_back(found[i]);
        else types[i] = merged(types[i], found[i]);
      }
      store_body(r, id, key, std::move(branch));
      ++inferred;
    } catch (Error& thrown) {
      thrown.note(cat("in If '", node.name, "', ", key));
      error = thrown;
    }
  }
  if (inferred == 0) throw *error;
  return types;
}

// The values of a body that come back in the next round.
struct Carried {
  size_t first_input = 0;
  size_t first_output = 0;
  size_t count = 0;
};

// Infers a body whose outputs from `first_output` on come back as inputs: their types are those that hold in every round.
// Returns the body; `bindings` has the types it was inferred with.
Graph infer_rounds(Rewriter& r, const Graph& body, std::vector<InputBinding>& bindings, const Carried& carried, int depth) {
  constexpr int most_rounds = 3;
  const bool deep = depth >= deepest_search;
  for (int round = 0;; ++round) {
    for (size_t i = 0; deep && i < carried.count; ++i) {
      Type& type = bindings[carried.first_input + i].type;
      type = without_rank(type);
    }
    Graph result = with_inputs_inside(body, bindings, depth + 1, &r.budget());
    bool stable = true;
    for (size_t i = 0; i < carried.count; ++i) {
      Type& type = bindings[carried.first_input + i].type;
      const Type both = merged(type, result.value(result.outputs()[carried.first_output + i]).type);
      if (to_text(both) == to_text(type)) continue;
      stable = false;
      type = !deep && round + 1 < most_rounds ? both : without_rank(both);
    }
    // Values that come back with another dtype are never stable: so deep one round has to do.
    if (stable || deep || round > most_rounds) return result;
  }
}

bool is_true(const Tensor* tensor) { return tensor != nullptr && tensor->elements() == 1 && doubles(*tensor)[0] != 0; }

// The number of rounds of a Loop, if it does not depend on what happens inside.
int64_t trip_count(const Rewriter& r, const Node& node, const Graph& body) {
  const auto most = node.inputs[0] == no_value ? std::nullopt : scalar_of(r, node.inputs[0]);
  const bool starts = node.inputs[1] == no_value || is_true(r.constant(node.inputs[1]));
  const ValueId goes_on = body.outputs()[0];
  const bool never_stops = goes_on == body.inputs()[1] || is_true(body.constant_tensor(goes_on));
  if (!most || !starts || !never_stops) return Shape::unknown;
  return *most > 0 ? static_cast<int64_t>(std::min(*most, 1e15)) : 0;
}

Type stacked(const Type& item, size_t axis, int64_t length) {
  const auto* tensor = std::get_if<TensorType>(&item);
  if (tensor == nullptr || !tensor->shape.has_rank()) return without_rank(item);
  Shape shape;
  for (size_t i = 0; i <= tensor->shape.rank(); ++i) {
    if (i == axis) shape.push_back(length);
    if (i < tensor->shape.rank()) shape.push_back(tensor->shape, i);
  }
  return TensorType{tensor->dtype, shape};
}

std::vector<Type> infer_loop(Rewriter& r, NodeId id, int depth) {
  const Node node = r.node(id);
  const size_t captures = capture_count(node, 2);
  const size_t carried = node.inputs.size() - 2 - captures;
  const SubGraph body = body_of(node, "body");
  expect(node, "inputs", node.inputs.size(), body->inputs().size());
  if (body->outputs().size() < 1 + carried) fail(ErrorKind::InvalidModel, "Loop '", node.name, "': its body gives back too little");
  expect_outputs(node, body->outputs().size() - 1);
  std::vector<InputBinding> bindings{{TensorType{DType::I64, Shape()}, nullptr}, {TensorType{DType::Bool, Shape()}, nullptr}};
  for (size_t i = 0; i < carried; ++i) bindings.push_back({binding(r, node.inputs[2 + i]).type, nullptr});
  add_captures(r, node, captures, bindings);
  Graph inferred = infer_rounds(r, *body, bindings, {2, 1, carried}, depth);
  const int64_t trips = trip_count(r, node, inferred);
  std::vector<Type> types;
  for (size_t i = 0; i < carried && i < node.outputs.size(); ++i) types.push_back(bindings[2 + i].type);
  for (size_t i = carried; i < node.outputs.size(); ++i) types.push_back(stacked(inferred.value(inferred.outputs()[i + 1]).type, 0, trips));
  store_body(r, id, "body", std::move(inferred));
  return types;
}

// An axis from the list, counted from the front.
size_t scan_axis(const Node& node, const std::vector<int64_t>& axes, size_t i, size_t rank) {
  const int64_t axis = i < axes.size() ? axes[i] : 0;
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) fail(ErrorKind::InvalidModel, "Scan '", node.name, "': axis ", axis, " is outside of rank ", rank);
  return static_cast<size_t>(axis < 0 ? axis + limit : axis);
}

// The type of one slice of a scanned input; notes the length of the scanned axis.
Type slice_type(const Node& node, const Type& type, const std::vector<int64_t>& axes, size_t i, int64_t& length) {
  const auto* tensor = std::get_if<TensorType>(&type);
  if (tensor == nullptr || !tensor->shape.has_rank()) return without_rank(type);
  const size_t axis = scan_axis(node, axes, i, tensor->shape.rank());
  Shape shape;
  for (size_t at = 0; at < tensor->shape.rank(); ++at) {
    if (at != axis) shape.push_back(tensor->shape, at);
  }
  if (tensor->shape[axis] >= 0) length = tensor->shape[axis];
  return TensorType{tensor->dtype, shape};
}

std::vector<Type> infer_scan(Rewriter& r, NodeId id, int depth) {
  const Node node = r.node(id);
  const int64_t scanned_inputs = integer_of(node, "num_scan_inputs", 0);
  if (scanned_inputs < 1) fail(ErrorKind::InvalidModel, "Scan '", node.name, "' has ", scanned_inputs, " scan inputs");
  const auto scanned = static_cast<size_t>(scanned_inputs);
  const size_t captures = capture_count(node, scanned);
  const size_t states = node.inputs.size() - captures - scanned;
  const SubGraph body = body_of(node, "body");
  expect(node, "inputs", node.inputs.size(), body->inputs().size());
  expect_outputs(node, body->outputs().size());
  if (body->outputs().size() < states) fail(ErrorKind::InvalidModel, "Scan '", node.name, "': its body gives back too little");
  int64_t length = Shape::unknown;
  std::vector<InputBinding> bindings;
  for (size_t i = 0; i < states; ++i) bindings.push_back({binding(r, node.inputs[i]).type, nullptr});
  const auto in_axes = integers_of(node, "scan_input_axes");
  for (size_t i = 0; i < scanned; ++i) {
    bindings.push_back({slice_type(node, binding(r, node.inputs[states + i]).type, in_axes, i, length), nullptr});
  }
  add_captures(r, node, captures, bindings);
  Graph inferred = infer_rounds(r, *body, bindings, {0, 0, states}, depth);
  std::vector<Type> types;
  for (size_t i = 0; i < states && i < node.outputs.size(); ++i) types.push_back(bindings[i].type);
  const auto out_axes = integers_of(node, "scan_output_axes");
  for (size_t i = states; i < node.outputs.size(); ++i) {
    const Type& item = inferred.value(inferred.outputs()[i]).type;
    const auto* tensor = std::get_if<TensorType>(&item);
    const bool ranked = tensor != nullptr && tensor->shape.has_rank();
    types.push_back(ranked ? stacked(item, scan_axis(node, out_axes, i - states, tensor->shape.rank() + 1), length) : without_rank(item));
  }
  store_body(r, id, "body", std::move(inferred));
  return types;
}

// What the body gets of a value: of a sequence, one element.
InputBinding element_binding(const Rewriter& r, const Graph& body, const Node& node, size_t i) {
  InputBinding whole = binding(r, node.inputs[i]);
  const auto* sequence = std::get_if<SequenceType>(&whole.type);
  if (sequence == nullptr && i == 0) fail(ErrorKind::InvalidModel, "SequenceMap '", node.name, "': its first input is ", whole.type, ", no sequence");
  if (sequence == nullptr) return whole;
  // Of an empty sequence nobody may know the elements' type; the body declares it.
  return {sequence->element ? *sequence->element : body.value(body.inputs()[i]).type, nullptr};
}

std::vector<Type> infer_sequence_map(Rewriter& r, NodeId id, int depth) {
  const Node node = r.node(id);
  const size_t captures = capture_count(node, 1);
  const SubGraph body = body_of(node, "body");
  expect(node, "inputs", node.inputs.size(), body->inputs().size());
  expect_outputs(node, body->outputs().size());
  std::vector<InputBinding> bindings;
  for (size_t i = 0; i < node.inputs.size() - captures; ++i) bindings.push_back(element_binding(r, *body, node, i));
  add_captures(r, node, captures, bindings);
  Graph inferred = with_inputs_inside(*body, bindings, depth + 1, &r.budget());
  std::vector<Type> types;
  for (Type& type : output_types(inferred)) types.emplace_back(SequenceType{std::make_shared<const Type>(std::move(type))});
  store_body(r, id, "body", std::move(inferred));
  return types;
}

}  // namespace

Type without_rank(const Type& type) {
  const auto* tensor = std::get_if<TensorType>(&type);
  return tensor == nullptr ? type : Type(TensorType{tensor->dtype, Shape::of_unknown_rank()});
}

Type merged(const Type& a, const Type& b) {
  const auto* left = std::get_if<TensorType>(&a);
  const auto* right = std::get_if<TensorType>(&b);
  if (left == nullptr && right == nullptr) return a;
  // No such value can be; at least nobody may count on its size.
  if (left == nullptr || (right != nullptr && left->dtype != right->dtype)) return without_rank(b);
  if (right == nullptr) return without_rank(a);
  if (!left->shape.has_rank() || !right->shape.has_rank() || left->shape.rank() != right->shape.rank()) return without_rank(a);
  Shape shape = left->shape;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != right->shape[axis] || shape.symbol(axis) != right->shape.symbol(axis)) shape.set(axis, Shape::unknown);
  }
  return TensorType{left->dtype, shape};
}

bool runs_bodies(const Node& node) { return node.op == "If" || node.op == "Loop" || node.op == "Scan" || node.op == "SequenceMap"; }

std::vector<Type> infer_control_flow(Rewriter& r, NodeId id, int depth) {
  if (depth >= deepest_body) fail(ErrorKind::InvalidModel, "bodies of control flow are nested more than ", deepest_body, " deep");
  const std::string& op = r.node(id).op;
  if (op == "If") return infer_if(r, id, depth);
  if (op == "SequenceMap") return infer_sequence_map(r, id, depth);
  return op == "Loop" ? infer_loop(r, id, depth) : infer_scan(r, id, depth);
}

}  // namespace unmoor
