#include "unmoor/graph/graph.h"

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

template <class T>
std::string list_text(const std::vector<T>& items) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) text += cat(i == 0 ? "" : ",", items[i]);
  return text + "]";
}

}  // namespace

std::string to_text(const Attribute& attribute) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, SubGraph>) {
          return "graph";
        } else if constexpr (std::is_same_v<T, std::vector<SubGraph>>) {
          return "graphs";
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return to_text(held.type());
        } else if constexpr (std::is_same_v<T, Type>) {
          return to_text(held);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<float>> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          return list_text(held);
        } else {
          return cat(held);
        }
      },
      attribute);
}

ValueId Graph::add_value(Value value) {
  values_.push_back(std::move(value));
  return ValueId{static_cast<uint32_t>(values_.size() - 1)};
}

ValueId Graph::add_input(std::string name, Type type) {
  Value value;
  value.origin.name = name;
  value.name = std::move(name);
  value.type = std::move(type);
  const ValueId id = add_value(std::move(value));
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string name, Data data) {
  Value value;
  value.origin.name = name;
  value.name = std::move(name);
  value.type = type_of(data);
  value.constant = std::move(data);
  return add_value(std::move(value));
}

NodeId Graph::add_node(Node node) {
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const ValueId id : *list) {
      if (id != no_value && index(id) >= values_.size()) {
        fail(ErrorKind::InvalidModel, "node '", node.name, "' uses a value that the graph does not have");
      }
    }
  }
  nodes_.push_back(std::move(node));
  return NodeId{static_cast<uint32_t>(nodes_.size() - 1)};
}

void Graph::mark_output(ValueId value, std::string name) {
  outputs_.push_back(value);
  output_names_.push_back(std::move(name));
}

std::optional<ValueId> Graph::find_value(std::string_view name) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].name == name) return ValueId{static_cast<uint32_t>(i)};
  }
  return std::nullopt;
}

const Tensor* Graph::constant_tensor(ValueId id) const {
  if (id == no_value) return nullptr;
  const auto& constant = value(id).constant;
  return constant && constant->is_tensor() ? &constant->tensor() : nullptr;
}

std::vector<uint32_t> use_counts(const Graph& graph) {
  std::vector<uint32_t> counts(graph.values().size());
  for (const auto& node : graph.nodes()) {
    for (const ValueId id : node.inputs) {
      if (id != no_value) ++counts[Graph::index(id)];
    }
  }
  for (const ValueId id : graph.outputs()) ++counts[Graph::index(id)];
  return counts;
}

}  // namespace unmoor
