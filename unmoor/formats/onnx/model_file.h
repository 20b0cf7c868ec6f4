#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "unmoor/formats/onnx/tensors.h"
#include "unmoor/graph/graph.h"

// A model file as it is written, before it becomes a Graph. All text points into the file.
namespace unmoor::onnx {

struct GraphDef;

struct AttributeDef {
  std::string_view name;
  std::string_view reference;      // The attribute of the enclosing function that this one stands for; else empty.
  std::optional<Attribute> value;  // All but graphs.
  std::vector<GraphDef> graphs;
  bool is_list = false;  // Of `graphs`.
};

struct NodeDef {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeDef> attributes;
};

struct ValueDef {
  std::string_view name;
  std::optional<Type> type;
};

struct GraphDef {
  std::string_view name;
  std::vector<NodeDef> nodes;
  std::vector<NamedTensor> constants;
  std::vector<ValueDef> inputs, outputs, values;
};

using Opsets = std::map<std::string, int64_t, std::less<>>;

struct FunctionDef {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeDef> defaults;
  std::vector<NodeDef> nodes;
  std::vector<ValueDef> values;
  Opsets opsets;
};

struct ModelDef {
  int64_t ir_version = 0;
  std::string producer;
  Opsets opsets;  // By domain; "ai.onnx" for the default.
  std::map<std::string, std::string, std::less<>> metadata;
  GraphDef graph;
  std::vector<FunctionDef> functions;
};

// Parses a ModelProto. Fails with InvalidModel, Unsupported or, for external data, Io.
ModelDef parse_model(std::string_view bytes, TensorReader& tensors);

// How errors call a node: "node 'n' (Conv)", or by its first output where it has no name.
std::string description(const NodeDef& node);
// "Conv", "com.microsoft:BiasGelu".
std::string full_op(const NodeDef& node);

}  // namespace unmoor::onnx
