#include "unmoor/passes/fold.h"

#include <algorithm>
#include <array>
#include <new>

#include "unmoor/base/error.h"
#include "unmoor/ops/op.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

constexpr size_t string_bytes = sizeof(std::string);

size_t longest_text(const Tensor& tensor) {
  size_t longest = 0;
  if (tensor.dtype() != DType::String) return 0;
  for (const std::string& text : tensor.strings()) longest = std::max(longest, text.size());
  return longest;
}

// Bytes of host memory, about, if texts are up to `longest` long.
double weight(const TensorType& type, size_t longest) {
  if (type.dtype != DType::String) return static_cast<double>(type.bytes());
  return static_cast<double>(type.shape.elements()) * static_cast<double>(string_bytes + longest);
}

bool has_body(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const auto& entry) {
    return std::holds_alternative<SubGraph>(entry.second) || std::holds_alternative<std::vector<SubGraph>>(entry.second);
  });
}

// The known dimensions that Shape asks for, from its attributes start and end.
std::optional<Tensor> shape_value(const Rewriter& r, const Node& node) {
  const TensorType* type = r.tensor_type(input_of(node, 0));
  if (type == nullptr || !type->shape.has_rank()) return std::nullopt;
  const auto rank = static_cast<int64_t>(type->shape.rank());
  const auto place = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = place(integer_of(node, "start", 0));
  const int64_t end = place(integer_of(node, "end", rank));
  std::vector<int64_t> dims;
  for (int64_t axis = start; axis < end; ++axis) dims.push_back(type->shape[static_cast<size_t>(axis)]);
  if (std::ranges::any_of(dims, [](int64_t dim) { return dim < 0; })) return std::nullopt;
  return Tensor::from<int64_t>(Shape{static_cast<int64_t>(dims.size())}, dims);
}

// The one dimension, or the slice of dimensions, picked from the Shape of a value whose other dimensions may be unknown.
std::optional<Tensor> picked_dims(const Rewriter& r, const Node& node) {
  const Node* shape = r.made_by(input_of(node, 0), "Shape");
  const TensorType* type = shape == nullptr ? nullptr : r.tensor_type(input_of(*shape, 0));
  if (node.op != "Gather" || type == nullptr || !type->shape.has_rank() || !shape->attributes.empty()) return std::nullopt;
  const auto picks = integers_of(r, input_of(node, 1));
  if (!picks) return std::nullopt;
  const auto rank = static_cast<int64_t>(type->shape.rank());
  std::vector<int64_t> dims;
  for (const int64_t pick : *picks) {
    const int64_t axis = pick < 0 ? pick + rank : pick;
    if (axis < 0 || axis >= rank || type->shape[static_cast<size_t>(axis)] < 0) return std::nullopt;
    dims.push_back(type->shape[static_cast<size_t>(axis)]);
  }
  return Tensor::from<int64_t>(r.constant(node.inputs[1])->shape(), dims);
}

std::optional<Tensor> known_from_types(const Rewriter& r, const Node& node) {
  if (output_of(node) == no_value) return std::nullopt;
  if (node.op == "Shape") return shape_value(r, node);
  if (node.op == "Gather") return picked_dims(r, node);
  if (node.op == "Size") {
    if (const Shape* shape = r.known_shape(input_of(node, 0))) return Tensor::scalar<int64_t>(shape->elements());
  }
  return std::nullopt;
}

bool is_within(Rewriter& r, const OpCall& call, const FoldLimits& limits) {
  double in = 0;
  size_t longest = 0;  // A text that is made is no longer than all that it can be made of.
  for (const Tensor* tensor : call.constants) {
    if (tensor == nullptr) continue;
    longest += longest_text(*tensor);
    in += weight(tensor->type(), longest_text(*tensor));
  }
  if (in > static_cast<double>(limits.input_bytes)) return false;
  double out = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.wants_output(i)) continue;
    const auto* type = std::get_if<TensorType>(&call.outputs[i]);
    if (type == nullptr) return false;
    // A result whose size only the data tells is no larger than a few times its inputs.
    if (!type->is_known()) {
      if (in > static_cast<double>(limits.output_bytes)) return false;
      continue;
    }
    out += weight(*type, longest);
  }
  if (out > static_cast<double>(limits.output_bytes) && out > limits.growth * in) return false;
  const double flop = cost_of(call).flop;
  return flop <= limits.flop && out < 1e18 && r.spend(static_cast<size_t>(out), flop + in + out);
}

bool compute(Rewriter& r, NodeId id, const FoldLimits& limits) {
  const Node& node = r.node(id);
  const OpCall call = call_for(r.graph(), node);
  if (!is_within(r, call, limits)) return false;
  std::vector<Data> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(input == no_value ? Data() : *r.value(input).constant);
  Outputs made(node.outputs.size());
  run_reference(call, inputs, made);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (call.wants_output(i) && !made.all()[i].is_tensor()) return false;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (call.wants_output(i)) r.set_constant(node.outputs[i], std::move(made.all()[i]));
  }
  return true;
}

}  // namespace

bool is_deterministic(const Node& node) {
  constexpr std::array<std::string_view, 7> random{"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                                                   "Bernoulli",    "Multinomial",      "Dropout"};
  return std::ranges::find(random, node.op) == random.end();
}

bool fold_node(Rewriter& r, NodeId id, const FoldLimits& limits) {
  const Node& node = r.node(id);
  if (const auto known = known_from_types(r, node)) {
    r.set_constant(node.outputs[0], *known);
    r.remove(id);
    return true;
  }
  const bool constant = std::ranges::all_of(node.inputs, [&r](ValueId input) { return input == no_value || r.constant(input) != nullptr; });
  if (!constant || has_body(node) || !is_deterministic(node)) return false;
  const Op* const op = all_ops().find(node.op);
  if (op == nullptr || !op->reference) return false;
  try {
    if (!compute(r, id, limits)) return false;
  } catch (const Error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  const std::vector<ValueId> inputs = r.node(id).inputs;
  r.remove(id);
  for (const ValueId input : inputs) r.release(input);
  return true;
}

bool fold_constants(Rewriter& r) {
  constexpr FoldLimits limits{
      .output_bytes = size_t{1} << 20, .growth = 4, .input_bytes = size_t{1} << 32, .flop = 2e9};
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) changed |= fold_node(r, id, limits);
  return changed;
}

}  // namespace unmoor
