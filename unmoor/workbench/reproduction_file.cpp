#include "unmoor/workbench/reproduction_file.h"

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/types.h"
#include "unmoor/formats/onnx/wire.h"
#include "unmoor/formats/onnx/write_tensor.h"

namespace unmoor {
namespace {

using namespace onnx;
using protozero::pbf_writer;

// What a copy needs of a file; texts point into it.
struct Found {
  int64_t ir_version = 0;
  std::vector<std::string_view> opsets;  // As messages.
  std::vector<std::string_view> nodes;   // Likewise.
  std::set<std::string, std::less<>> constants;
};

std::string_view name_of_tensor(std::string_view bytes) {
  constexpr uint32_t name_field = 8;  // TensorProto.name
  Message tensor(bytes, "TensorProto");
  std::string_view name;
  while (tensor.next()) {
    if (tensor.field() == name_field)
      name = tensor.bytes();
    else
      tensor.skip();
  }
  return name;
}

void read_nodes(std::string_view bytes, Found& found) {
  Message graph(bytes, "GraphProto");
  while (graph.next()) {
    if (graph.field() == graph_field::node)
      found.nodes.push_back(graph.bytes());
    else if (graph.field() == graph_field::initializer)
      found.constants.emplace(name_of_tensor(graph.bytes()));
    else
      graph.skip();
  }
}

Found read_model(std::string_view bytes) {
  Found found;
  Message model(bytes, "ModelProto");
  while (model.next()) {
    switch (model.field()) {
      case model_field::ir_version:
        found.ir_version = model.integer();
        break;
      case model_field::opset_import:
        found.opsets.push_back(model.bytes());
        break;
      case model_field::graph:
        read_nodes(model.bytes(), found);
        break;
      default:
        model.skip();
    }
  }
  return found;
}

struct FoundNode {
  std::string name, op;
  std::vector<std::string> inputs, outputs;
};

FoundNode read_node(std::string_view bytes) {
  FoundNode node;
  std::string domain;
  Message message(bytes, "NodeProto");
  while (message.next()) {
    switch (message.field()) {
      case node_field::name:
        node.name = message.bytes();
        break;
      case node_field::op_type:
        node.op = message.bytes();
        break;
      case node_field::domain:
        domain = message.bytes();
        break;
      case node_field::input:
        node.inputs.emplace_back(message.bytes());
        break;
      case node_field::output:
        node.outputs.emplace_back(message.bytes());
        break;
      default:
        message.skip();
    }
  }
  if (!domain.empty() && domain != "ai.onnx") node.op = cat(domain, ':', node.op);
  return node;
}

// As origins name it.
bool is_called(const FoundNode& node, const Origin& origin) {
  if (node.op != origin.op || node.outputs.empty()) return false;
  return node.name == origin.name || origin.name == cat(node.op, ':', node.outputs[0]);
}

void write_value(pbf_writer& graph, uint32_t field, const std::string& name, const Data& data) {
  pbf_writer value(graph, field);
  value.add_string(value_field::name, name);
  write_type(pbf_writer(value, value_field::type), type_of(data));
}

}  // namespace

FileModel copied_from_file(const OpCall& call, std::span<const Data> outputs, const FileNode& file) {
  const Origin& origin = call.node.origin;
  if (!origin.also.empty()) fail(ErrorKind::InvalidArgument, "it stands for several nodes of the file");
  const auto mapped = MappedFile::open(file.model);
  const std::string_view bytes(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  const Found found = read_model(bytes);
  const auto at = std::ranges::find_if(found.nodes, [&](std::string_view each) { return is_called(read_node(each), origin); });
  if (at == found.nodes.end())
    fail(ErrorKind::InvalidArgument, "the main graph of ", file.model, " has no node '", origin.name, "'");
  const FoundNode node = read_node(*at);
  FileModel model;
  pbf_writer writer(model.bytes);
  writer.add_int64(model_field::ir_version, found.ir_version);
  writer.add_string(model_field::producer_name, "unmoor");
  {
    pbf_writer graph(writer, model_field::graph);
    graph.add_message(graph_field::node, at->data(), at->size());
    graph.add_string(graph_field::name, "reproduction");
    std::set<std::string> seen;
    for (const std::string& name : node.inputs) {
      if (name.empty() || !seen.insert(name).second) continue;
      const auto value = file.values.find(name);
      if (value == file.values.end()) fail(ErrorKind::InvalidArgument, "its input '", name, "' is not given");
      if (found.constants.contains(name) && value->second.is_tensor()) {
        write_tensor(pbf_writer(graph, graph_field::initializer), value->second.tensor(), name);
      } else {
        write_value(graph, graph_field::input, name, value->second);
        model.inputs.push_back(name);
      }
    }
    for (size_t i = 0; i < node.outputs.size() && i < outputs.size(); ++i) {
      if (node.outputs[i].empty() || !outputs[i]) continue;
      write_value(graph, graph_field::output, node.outputs[i], outputs[i]);
      model.outputs.push_back(node.outputs[i]);
    }
  }
  for (const std::string_view opset : found.opsets) writer.add_message(model_field::opset_import, opset.data(), opset.size());
  return model;
}

}  // namespace unmoor
