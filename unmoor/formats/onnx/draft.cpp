#include "unmoor/formats/onnx/draft.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/op.h"

namespace unmoor::onnx {

std::string GraphDraft::new_name(std::unordered_set<std::string>& taken, std::string_view name) {
  std::string result(name);
  for (size_t number = 2; !taken.insert(result).second; ++number) {
    // Names of one stem are rare; a long run of them jumps ahead.
    if (number > 64) number += taken.size();
    result = cat(name, '#', number);
  }
  return result;
}

ValueId GraphDraft::add_input(std::string_view name, const std::optional<Type>& type) {
  const ValueId id = graph.add_input(new_value_name(name), type.value_or(TensorType{DType::F32, Shape::of_unknown_rank()}));
  graph.mutable_value(id).origin.name = std::string(name);
  types_.push_back(type);
  return id;
}

ValueId GraphDraft::add_constant(std::string_view name, Data data) {
  const ValueId id = graph.add_constant(new_value_name(name), std::move(data));
  graph.mutable_value(id).origin.name = graph.value(id).name;
  types_.push_back(graph.value(id).type);
  return id;
}

ValueId GraphDraft::add_value(std::string_view name, const Type* type, bool in_file) {
  Value value;
  value.name = new_value_name(name);
  if (in_file) value.origin.name = value.name;
  if (type != nullptr) {
    value.type = *type;
    types_.emplace_back(*type);
  } else {
    value.type = TensorType{DType::F32, Shape::of_unknown_rank()};
    types_.emplace_back();
  }
  return graph.add_value(std::move(value));
}

std::optional<Type> GraphDraft::declared(ValueId value) const { return types_.at(Graph::index(value)); }

std::optional<Type> GraphDraft::type(ValueId value) {
  if (value == no_value) return std::nullopt;
  while (inferred_nodes_ < graph.nodes().size()) infer(graph.node(NodeId{static_cast<uint32_t>(inferred_nodes_++)}));
  return types_.at(Graph::index(value));
}

void GraphDraft::infer(const Node& node) {
  const Op* const op = all_ops().find(node.op);
  if (op == nullptr || !op->infer) return;
  OpCall call{node, {}, {}, {}};
  for (const ValueId input : node.inputs) {
    const bool absent = input == no_value;
    if (!absent && !types_[Graph::index(input)]) return;
    call.inputs.push_back(absent ? std::nullopt : types_[Graph::index(input)]);
    call.constants.push_back(graph.constant_tensor(input));
  }
  try {
    const auto outputs = infer_outputs(call);
    for (size_t i = 0; i < std::min(outputs.size(), node.outputs.size()); ++i) {
      if (node.outputs[i] == no_value) continue;
      auto& type = types_[Graph::index(node.outputs[i])];
      if (!type) type = outputs[i];
    }
  } catch (const Error&) {
    // A node that cannot be is for the passes to report, with all types known; here its outputs stay untold.
  }
}

void NodeDraft::set_input(size_t i, ValueId value) {
  if (node.inputs.size() <= i) node.inputs.resize(i + 1, no_value);
  node.inputs[i] = value;
}

template <class T>
std::optional<T> NodeDraft::take(std::string_view attribute) {
  const auto found = node.attributes.find(attribute);
  if (found == node.attributes.end()) return std::nullopt;
  T* const held = std::get_if<T>(&found->second);
  if (held == nullptr) fail(ErrorKind::InvalidModel, "attribute '", attribute, "' has the wrong type");
  std::optional<T> value = std::move(*held);
  node.attributes.erase(found);
  return value;
}
template std::optional<int64_t> NodeDraft::take(std::string_view);
template std::optional<float> NodeDraft::take(std::string_view);
template std::optional<std::string> NodeDraft::take(std::string_view);
template std::optional<std::vector<int64_t>> NodeDraft::take(std::string_view);
template std::optional<std::vector<float>> NodeDraft::take(std::string_view);
template std::optional<std::vector<std::string>> NodeDraft::take(std::string_view);

ValueId NodeDraft::constant(Tensor tensor) {
  const ValueId id = graph_.add_constant(cat(node.name, "/constant"), std::move(tensor));
  graph_.graph.mutable_value(id).origin.name.clear();
  return id;
}

ValueId NodeDraft::add(std::string op, std::vector<ValueId> inputs, Attributes attributes) {
  Node added;
  added.name = graph_.new_node_name(cat(node.name, '/', op));
  added.op = std::move(op);
  added.inputs = std::move(inputs);
  added.attributes = std::move(attributes);
  added.origin = node.origin;
  added.outputs = {graph_.add_value(added.name, nullptr, false)};
  const ValueId output = added.outputs[0];
  graph_.graph.add_node(std::move(added));
  return output;
}

std::optional<TensorType> NodeDraft::type(size_t input_index) {
  const auto type = graph_.type(input(input_index));
  if (!type || !std::holds_alternative<TensorType>(*type)) return std::nullopt;
  return std::get<TensorType>(*type);
}

DType NodeDraft::dtype_or_float(size_t input_index) {
  const auto known = type(input_index);
  return known ? known->dtype : DType::F32;
}

}  // namespace unmoor::onnx
