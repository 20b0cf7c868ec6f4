#include "unmoor/graph/text.h"

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

std::string value_name(const Graph& graph, ValueId id) {
  if (id == no_value) return "-";
  const std::string& name = graph.value(id).name;
  return name.empty() ? cat("%", Graph::index(id)) : name;
}

std::string names(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (const ValueId id : ids) text += cat(text.empty() ? "" : ", ", value_name(graph, id));
  return text;
}

std::string few_values(const Tensor& tensor) {
  constexpr size_t most = 8;
  if (tensor.dtype() == DType::String || tensor.dtype() == DType::C64 || tensor.dtype() == DType::C128 || tensor.elements() > most) return "";
  std::string text;
  for (const double value : doubles(tensor)) text += cat(text.empty() ? " {" : ",", value);
  return text.empty() ? " {}" : text + "}";
}

void append_graph(std::string& text, const Graph& graph, const std::string& indent, int depth);

void append_bodies(std::string& text, const Node& node, const std::string& indent, int depth) {
  constexpr int deepest = 64;
  if (depth >= deepest) return;
  for (const auto& [key, attribute] : node.attributes) {
    std::vector<SubGraph> bodies;
    if (const auto* body = std::get_if<SubGraph>(&attribute)) bodies = {*body};
    if (const auto* list = std::get_if<std::vector<SubGraph>>(&attribute)) bodies = *list;
    for (const SubGraph& body : bodies) {
      if (body == nullptr) continue;
      text += cat(indent, key, ":\n");
      append_graph(text, *body, indent + "  ", depth + 1);
    }
  }
}

void append_graph(std::string& text, const Graph& graph, const std::string& indent, int depth) {
  for (const ValueId id : graph.inputs()) text += cat(indent, "input ", value_name(graph, id), " : ", graph.value(id).type, "\n");
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (!value.constant) continue;
    const ValueId id{static_cast<uint32_t>(i)};
    const Tensor* tensor = graph.constant_tensor(id);
    text += cat(indent, "constant ", value_name(graph, id), " : ", value.type, tensor == nullptr ? "" : few_values(*tensor), "\n");
  }
  for (const Node& node : graph.nodes()) {
    text += cat(indent, to_text(graph, node), "\n");
    append_bodies(text, node, indent + "  ", depth);
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    text += cat(indent, "output ", graph.output_names()[i], " = ", value_name(graph, graph.outputs()[i]), "\n");
  }
}

}  // namespace

std::string to_text(const Graph& graph, const Node& node) {
  std::string text = cat(names(graph, node.outputs), " = ", node.op, "(", names(graph, node.inputs), ")");
  for (const auto& [key, attribute] : node.attributes) text += cat(" ", key, "=", attribute);
  std::string types;
  for (const ValueId id : node.outputs) {
    types += cat(types.empty() ? " : " : ", ", id == no_value ? std::string("-") : to_text(graph.value(id).type));
  }
  return text + types;
}

std::string to_text(const Graph& graph) {
  std::string text;
  append_graph(text, graph, "", 0);
  return text;
}

}  // namespace unmoor
