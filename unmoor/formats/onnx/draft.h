#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "unmoor/graph/graph.h"

namespace unmoor::onnx {

// A graph that grows while a file is read: keeps names unique and knows as much of the types as can be told. One thread at a
// time.
class GraphDraft {
 public:
  // `name`, or with a number appended if it is taken.
  std::string new_value_name(std::string_view name) { return new_name(value_names_, name); }
  std::string new_node_name(std::string_view name) { return new_name(node_names_, name); }

  ValueId add_input(std::string_view name, const std::optional<Type>& type);
  ValueId add_constant(std::string_view name, Data data);
  // The value of a node to be added next. `in_file`: the file has it under this name.
  ValueId add_value(std::string_view name, const Type* type, bool in_file);
  // The type as declared in the file, or empty.
  std::optional<Type> declared(ValueId value) const;
  // The type as declared or, for want of that, as the operators before tell. Empty if it cannot be told.
  std::optional<Type> type(ValueId value);

  Graph graph;

 private:
  static std::string new_name(std::unordered_set<std::string>& taken, std::string_view name);
  void infer(const Node& node);

  std::unordered_set<std::string> value_names_, node_names_;
  std::vector<std::optional<Type>> types_;  // By value.
  size_t inferred_nodes_ = 0;
};

// A node on its way into a graph, still in the form of its opset. One thread at a time.
class NodeDraft {
 public:
  NodeDraft(GraphDraft& graph, Node new_node, int64_t version) : node(std::move(new_node)), opset(version), graph_(graph) {}

  Node node;  // Its outputs are added later.
  const int64_t opset;
  std::vector<bool> uses;  // By output: whether anything reads it.

  bool has(std::string_view attribute) const { return node.attributes.find(attribute) != node.attributes.end(); }
  ValueId input(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : no_value; }
  void set_input(size_t i, ValueId value);
  bool is_used(size_t output) const { return output < uses.size() && uses[output]; }
  // Removes an attribute and gives its value, or empty. Fails with InvalidModel if it has another type.
  template <class T>
  std::optional<T> take(std::string_view attribute);
  template <class T>
  T take(std::string_view attribute, T otherwise) {
    return take<T>(attribute).value_or(std::move(otherwise));
  }
  void set(std::string attribute, Attribute value) { node.attributes[std::move(attribute)] = std::move(value); }

  // Adds to the graph before this node; names come from it.
  ValueId constant(Tensor tensor);
  ValueId ints(std::vector<int64_t> values) {
    return constant(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values)));
  }
  ValueId add(std::string op, std::vector<ValueId> inputs, Attributes attributes = {});

  const Tensor* constant_input(size_t i) const { return graph_.graph.constant_tensor(input(i)); }
  std::optional<TensorType> type(size_t input_index);
  // The type of an input that must share it with new constants; float32 if it cannot be told.
  DType dtype_or_float(size_t input_index);

 private:
  GraphDraft& graph_;
};

}  // namespace unmoor::onnx
