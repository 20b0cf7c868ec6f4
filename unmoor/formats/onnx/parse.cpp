#include <algorithm>
#include <string>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/model_file.h"
#include "unmoor/formats/onnx/types.h"
#include "unmoor/formats/onnx/wire.h"

namespace unmoor::onnx {
namespace {

constexpr int deepest_graph = 32;

class Parser {
 public:
  explicit Parser(TensorReader& tensors) : tensors_(tensors) {}

  ModelDef model(std::string_view bytes);

 private:
  GraphDef graph(std::string_view bytes);
  FunctionDef function(std::string_view bytes);
  NodeDef node(std::string_view bytes);
  AttributeDef attribute(std::string_view bytes);
  ValueDef value(std::string_view bytes);
  NamedTensor constant(NamedTensor tensor);

  TensorReader& tensors_;
  int depth_ = 0;
};

void read_opset(std::string_view bytes, Opsets& opsets) {
  std::string_view domain;
  int64_t version = 0;
  Message message(bytes, "OperatorSetIdProto");
  while (message.next()) {
    switch (message.field()) {
      case opset_field::domain:
        domain = message.bytes();
        break;
      case opset_field::version:
        version = message.integer();
        break;
      default:
        message.skip();
    }
  }
  opsets[std::string(domain.empty() ? "ai.onnx" : domain)] = version;
}

// The payload fields of an AttributeProto.
struct Payload {
  AttributeKind kind = AttributeKind::Undefined;
  int64_t integer = 0;
  float real = 0;
  std::string_view text;
  std::optional<Tensor> tensor;
  std::optional<Type> type;
  std::vector<int64_t> integers;
  std::vector<float> reals;
  std::vector<std::string> texts;
  std::vector<AttributeKind> seen;  // Old files do not say the kind.
};

std::optional<Attribute> chosen(Payload& payload) {
  switch (payload.kind) {
    case AttributeKind::Float:
      return payload.real;
    case AttributeKind::Int:
      return payload.integer;
    case AttributeKind::String:
      return std::string(payload.text);
    case AttributeKind::Floats:
      return std::move(payload.reals);
    case AttributeKind::Ints:
      return std::move(payload.integers);
    case AttributeKind::Strings:
      return std::move(payload.texts);
    case AttributeKind::SparseTensor:
    case AttributeKind::Tensor:
      if (!payload.tensor) fail(ErrorKind::InvalidModel, "its tensor is missing");
      return *payload.tensor;
    case AttributeKind::Type:
      if (!payload.type) fail(ErrorKind::InvalidModel, "its type is missing");
      return *payload.type;
    case AttributeKind::Graph:
    case AttributeKind::Graphs:
      return std::nullopt;
    case AttributeKind::Tensors:
    case AttributeKind::SparseTensors:
    case AttributeKind::Types:
      fail(ErrorKind::Unsupported, "lists of tensors or types are not supported as attributes");
    case AttributeKind::Undefined:
      fail(ErrorKind::InvalidModel, "it has no value");
  }
  fail(ErrorKind::InvalidModel, "its kind ", static_cast<int64_t>(payload.kind), " is not known");
}

AttributeDef Parser::attribute(std::string_view bytes) {
  AttributeDef result;
  Payload payload;
  Message message(bytes, "AttributeProto");
  const auto saw = [&payload](AttributeKind kind) { payload.seen.assign(1, kind); };
  try {
    while (message.next()) {
      switch (message.field()) {
        case attribute_field::name:
          result.name = message.bytes();
          break;
        case attribute_field::ref_attr_name:
          result.reference = message.bytes();
          break;
        case attribute_field::type:
          payload.kind = AttributeKind{message.integer()};
          break;
        case attribute_field::f:
          payload.real = message.real(), saw(AttributeKind::Float);
          break;
        case attribute_field::i:
          payload.integer = message.integer(), saw(AttributeKind::Int);
          break;
        case attribute_field::s:
          payload.text = message.bytes(), saw(AttributeKind::String);
          break;
        case attribute_field::t:
          payload.tensor = tensors_.read(message.bytes()).tensor, saw(AttributeKind::Tensor);
          break;
        case attribute_field::sparse_tensor:
          payload.tensor = tensors_.read_sparse(message.bytes()).tensor, saw(AttributeKind::SparseTensor);
          break;
        case attribute_field::tp:
          payload.type = read_type(message.bytes()), saw(AttributeKind::Type);
          break;
        case attribute_field::g:
          result.graphs.push_back(graph(message.bytes())), saw(AttributeKind::Graph);
          break;
        case attribute_field::graphs:
          result.graphs.push_back(graph(message.bytes())), saw(AttributeKind::Graphs);
          break;
        case attribute_field::floats:
          message.append(payload.reals), saw(AttributeKind::Floats);
          break;
        case attribute_field::ints:
          message.append(payload.integers), saw(AttributeKind::Ints);
          break;
        case attribute_field::strings:
          payload.texts.emplace_back(message.bytes()), saw(AttributeKind::Strings);
          break;
        default:
          message.skip();
      }
    }
    if (result.name.empty()) fail(ErrorKind::InvalidModel, "an attribute has no name");
    if (!result.reference.empty()) return result;
    if (payload.kind == AttributeKind::Undefined && !payload.seen.empty()) payload.kind = payload.seen[0];
    result.value = chosen(payload);
    result.is_list = payload.kind == AttributeKind::Graphs;
    if (result.value) result.graphs.clear();
    if (payload.kind == AttributeKind::Graph && result.graphs.size() != 1)
      fail(ErrorKind::InvalidModel, "it has no graph, or several");
    return result;
  } catch (Error& error) {
    error.note(cat("in attribute '", result.name, "'"));
    throw;
  }
}

NodeDef Parser::node(std::string_view bytes) {
  NodeDef result;
  Message message(bytes, "NodeProto");
  try {
    while (message.next()) {
      switch (message.field()) {
        case node_field::input:
          result.inputs.push_back(message.bytes());
          break;
        case node_field::output:
          result.outputs.push_back(message.bytes());
          break;
        case node_field::name:
          result.name = message.bytes();
          break;
        case node_field::op_type:
          result.op = message.bytes();
          break;
        case node_field::domain:
          result.domain = message.bytes();
          break;
        case node_field::overload:
          result.overload = message.bytes();
          break;
        case node_field::attribute:
          result.attributes.push_back(attribute(message.bytes()));
          break;
        default:
          message.skip();
      }
    }
    if (result.op.empty()) fail(ErrorKind::InvalidModel, "a node has no operator");
    if (result.domain == "ai.onnx") result.domain = {};
    return result;
  } catch (Error& error) {
    error.note(cat("in ", description(result)));
    throw;
  }
}

ValueDef Parser::value(std::string_view bytes) {
  ValueDef result;
  Message message(bytes, "ValueInfoProto");
  try {
    while (message.next()) {
      switch (message.field()) {
        case value_field::name:
          result.name = message.bytes();
          break;
        case value_field::type:
          result.type = read_type(message.bytes());
          break;
        default:
          message.skip();
      }
    }
    return result;
  } catch (Error& error) {
    error.note(cat("in the type of value '", result.name, "'"));
    throw;
  }
}

NamedTensor Parser::constant(NamedTensor tensor) {
  if (tensor.name.empty()) fail(ErrorKind::InvalidModel, "an initializer has no name");
  return tensor;
}

GraphDef Parser::graph(std::string_view bytes) {
  if (++depth_ > deepest_graph) fail(ErrorKind::InvalidModel, "graphs are nested more than ", deepest_graph, " deep");
  GraphDef result;
  Message message(bytes, "GraphProto");
  while (message.next()) {
    switch (message.field()) {
      case graph_field::name:
        result.name = message.bytes();
        break;
      case graph_field::node:
        result.nodes.push_back(node(message.bytes()));
        break;
      case graph_field::initializer:
        result.constants.push_back(constant(tensors_.read(message.bytes())));
        break;
      case graph_field::sparse_initializer:
        result.constants.push_back(constant(tensors_.read_sparse(message.bytes())));
        break;
      case graph_field::input:
        result.inputs.push_back(value(message.bytes()));
        break;
      case graph_field::output:
        result.outputs.push_back(value(message.bytes()));
        break;
      case graph_field::value_info:
        result.values.push_back(value(message.bytes()));
        break;
      default:
        message.skip();
    }
  }
  --depth_;
  return result;
}

FunctionDef Parser::function(std::string_view bytes) {
  FunctionDef result;
  Message message(bytes, "FunctionProto");
  try {
    while (message.next()) {
      switch (message.field()) {
        case function_field::name:
          result.name = message.bytes();
          break;
        case function_field::domain:
          result.domain = message.bytes();
          break;
        case function_field::overload:
          result.overload = message.bytes();
          break;
        case function_field::input:
          result.inputs.push_back(message.bytes());
          break;
        case function_field::output:
          result.outputs.push_back(message.bytes());
          break;
        case function_field::attribute_proto:
          result.defaults.push_back(attribute(message.bytes()));
          break;
        case function_field::node:
          result.nodes.push_back(node(message.bytes()));
          break;
        case function_field::value_info:
          result.values.push_back(value(message.bytes()));
          break;
        case function_field::opset_import:
          read_opset(message.bytes(), result.opsets);
          break;
        default:
          message.skip();
      }
    }
    if (result.domain == "ai.onnx") result.domain = {};
    return result;
  } catch (Error& error) {
    error.note(cat("in function '", result.name, "'"));
    throw;
  }
}

ModelDef Parser::model(std::string_view bytes) {
  ModelDef result;
  std::string_view producer_version;
  bool has_graph = false;
  Message message(bytes, "ModelProto");
  while (message.next()) {
    switch (message.field()) {
      case model_field::ir_version:
        result.ir_version = message.integer();
        break;
      case model_field::producer_name:
        result.producer = std::string(message.bytes());
        break;
      case model_field::producer_version:
        producer_version = message.bytes();
        break;
      case model_field::opset_import:
        read_opset(message.bytes(), result.opsets);
        break;
      case model_field::metadata_props: {
        const auto [key, value] = read_entry(message.bytes());
        result.metadata[std::string(key)] = std::string(value);
        break;
      }
      case model_field::functions:
        result.functions.push_back(function(message.bytes()));
        break;
      case model_field::graph:
        if (has_graph) fail(ErrorKind::InvalidModel, "the model has several graphs");
        result.graph = graph(message.bytes());
        has_graph = true;
        break;
      default:
        message.skip();
    }
  }
  if (!has_graph) fail(ErrorKind::InvalidModel, "this is no ONNX model: it has no graph");
  if (result.opsets.empty() && result.ir_version < 3) result.opsets["ai.onnx"] = 1;
  if (!producer_version.empty()) result.producer = cat(result.producer, ' ', producer_version);
  return result;
}

}  // namespace

ModelDef parse_model(std::string_view bytes, TensorReader& tensors) { return Parser(tensors).model(bytes); }

std::string full_op(const NodeDef& node) { return node.domain.empty() ? std::string(node.op) : cat(node.domain, ':', node.op); }

std::string description(const NodeDef& node) {
  if (!node.name.empty() || node.outputs.empty()) return cat("node '", node.name, "' (", full_op(node), ')');
  return cat("node '", node.op, ':', node.outputs[0], "' (", full_op(node), ')');
}

}  // namespace unmoor::onnx
