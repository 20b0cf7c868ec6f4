#include "unmoor/formats/onnx/raw_graph.h"

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/external.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/wire.h"

namespace unmoor::onnx {
namespace {

constexpr int deepest = 100;  // Graphs in graphs: the reader of models takes far fewer.

void check_depth(int depth) {
  if (depth > deepest) fail(ErrorKind::InvalidModel, "graphs lie in graphs more than ", deepest, " deep");
}

// Calls `take` with every graph that is an attribute of a node, and `take_tensor` with every tensor that is one.
template <class TakeGraph, class TakeTensor>
void look_into(std::string_view bytes, TakeGraph take_graph, TakeTensor take_tensor) {
  Message node(bytes, "NodeProto");
  while (node.next()) {
    if (node.field() != node_field::attribute) {
      node.skip();
      continue;
    }
    Message attribute(node.bytes(), "AttributeProto");
    while (attribute.next()) {
      switch (attribute.field()) {
        case attribute_field::g:
        case attribute_field::graphs: take_graph(attribute.bytes()); break;
        case attribute_field::t:
        case attribute_field::tensors: take_tensor(attribute.bytes()); break;
        default: attribute.skip();
      }
    }
  }
}

void add_strings(std::string_view bytes, uint32_t field, std::vector<std::string>& found) {
  Message node(bytes, "NodeProto");
  while (node.next()) {
    if (node.field() == field) {
      const std::string_view name = node.bytes();
      if (!name.empty()) found.emplace_back(name);
    } else {
      node.skip();
    }
  }
}

void add_reads(std::string_view bytes, std::vector<std::string>& found, int depth) {
  check_depth(depth);
  add_strings(bytes, node_field::input, found);
  const auto take_graph = [&](std::string_view inner) {
    Message graph(inner, "GraphProto");
    while (graph.next()) {
      if (graph.field() == graph_field::node)
        add_reads(graph.bytes(), found, depth + 1);
      else if (graph.field() == graph_field::output)  // It may be a value from outside.
        found.push_back(name_in(graph.bytes(), "ValueInfoProto", value_field::name));
      else
        graph.skip();
    }
  };
  look_into(bytes, take_graph, [](std::string_view) {});
}

void add_locations(std::string_view node, std::set<std::string>& locations, int depth) {
  check_depth(depth);
  const auto take_tensor = [&](std::string_view tensor) { add_locations_of_tensor(tensor, locations); };
  const auto take_graph = [&](std::string_view inner) {
    Message graph(inner, "GraphProto");
    while (graph.next()) {
      if (graph.field() == graph_field::node)
        add_locations(graph.bytes(), locations, depth + 1);
      else if (graph.field() == graph_field::initializer)
        take_tensor(graph.bytes());
      else
        graph.skip();
    }
  };
  look_into(node, take_graph, take_tensor);
}

}  // namespace

std::string name_in(std::string_view bytes, const char* kind, uint32_t field) {
  std::string name;
  Message message(bytes, kind);
  while (message.next()) {
    if (message.field() == field)
      name = message.bytes();
    else
      message.skip();
  }
  return name;
}

std::string name_of_sparse(std::string_view bytes) {
  std::string name;
  Message message(bytes, "SparseTensorProto");
  while (message.next()) {
    if (message.field() == sparse_field::values)
      name = name_in(message.bytes(), "TensorProto", tensor_field::name);
    else
      message.skip();
  }
  return name;
}

std::vector<std::string> reads_of(std::string_view node) {
  std::vector<std::string> found;
  add_reads(node, found, 0);
  return found;
}

std::vector<std::string> makes_of(std::string_view node) {
  std::vector<std::string> found;
  add_strings(node, node_field::output, found);
  return found;
}

void add_locations_of_tensor(std::string_view tensor, std::set<std::string>& locations) {
  ExternalPlace place;
  Message message(tensor, "TensorProto");
  while (message.next()) {
    if (message.field() == tensor_field::external_data)
      read_external_entry(message.bytes(), place);
    else
      message.skip();
  }
  if (!place.location.empty()) locations.insert(place.location);
}

void add_locations_of_node(std::string_view node, std::set<std::string>& locations) { add_locations(node, locations, 0); }

void add_locations_of_function(std::string_view function, std::set<std::string>& locations) {
  Message message(function, "FunctionProto");
  while (message.next()) {
    if (message.field() == function_field::node)
      add_locations(message.bytes(), locations, 0);
    else
      message.skip();
  }
}

}  // namespace unmoor::onnx
