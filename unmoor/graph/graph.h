#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

class Graph;

enum class ValueId : uint32_t {};
enum class NodeId : uint32_t {};
constexpr ValueId no_value{0xffffffffU};  // An optional input or output that is absent.

// Subgraphs are shared because graphs are immutable once built and copied with their attributes.
using SubGraph = std::shared_ptr<const Graph>;
using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>, Tensor,
                               SubGraph, std::vector<SubGraph>, Type>;
using Attributes = std::map<std::string, Attribute, std::less<>>;
std::string to_text(const Attribute& attribute);  // "1", "[1,1]", "nearest", "float32[3]", "graph".

// What of the file a node or a value stands for. Passes keep it, so that tools speak in the file's terms.
struct Origin {
  std::string name;                   // The node's name, or OP:first_output where it has none or a repeated one; the value's name.
  std::string op;                     // As in the file: "Conv", "com.microsoft:BiasGelu". Empty for values.
  int64_t opset = 0;                  // Of its domain. 0 for values.
  std::vector<std::string> also;      // Names of the further nodes that a fused node stands for.
  std::vector<int64_t> permutation;   // Of a value: axes to transpose by to get the file's layout; empty if it is the file's.
};

struct Value {
  std::string name;
  Type type;
  std::optional<Data> constant;  // Set for weights and folded values.
  Origin origin;                 // origin.name is empty for values that the file does not have.
};

// The operator is named as Unmoor knows it: the ONNX name, "domain:Name" outside of ai.onnx.
struct Node {
  std::string name;
  std::string op;
  std::vector<ValueId> inputs;   // no_value where an optional one is absent.
  std::vector<ValueId> outputs;  // Likewise.
  Attributes attributes;
  Origin origin;
};

// A model: nodes in topological order; a node uses only values added before it. Immutable once built (const), then any thread
// may read it.
//
// If, Loop and Scan carry their bodies as attributes (then_branch, else_branch, body). Values that a body captures from outside
// are explicit: they are the node's last inputs, in number the attribute `captures`, and the body's last inputs in the same order
// (an If's branches both declare all of them). Captured constants are constants of the body instead.
class Graph {
 public:
  ValueId add_input(std::string name, Type type);
  ValueId add_constant(std::string name, Data data);
  // A value that a node will make. Every value but no_value belongs to one node's outputs, the inputs or the constants.
  ValueId add_value(Value value);
  NodeId add_node(Node node);  // Fails with InvalidModel if an input is not in the graph yet.
  void mark_output(ValueId value, std::string name);
  void set_type(ValueId value, Type type) { values_.at(index(value)).type = std::move(type); }
  void set_name(std::string name) { name_ = std::move(name); }
  Value& mutable_value(ValueId id) { return values_.at(index(id)); }
  Node& mutable_node(NodeId id) { return nodes_.at(static_cast<size_t>(id)); }

  const Value& value(ValueId id) const { return values_.at(index(id)); }
  const Node& node(NodeId id) const { return nodes_.at(static_cast<size_t>(id)); }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }  // Without constants.
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }  // As the file names them.
  const std::string& name() const { return name_; }
  std::optional<ValueId> find_value(std::string_view name) const;  // Linear.
  const Tensor* constant_tensor(ValueId id) const;                 // Null if it is absent, no constant or no tensor.

  static size_t index(ValueId id) { return static_cast<size_t>(id); }

 private:
  std::string name_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
};

// How often each value is used by nodes and as a graph output. By value index.
std::vector<uint32_t> use_counts(const Graph& graph);

}  // namespace unmoor
