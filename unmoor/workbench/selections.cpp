#include "unmoor/workbench/selections.h"

#include "unmoor/workbench/exact_rules.h"

namespace unmoor {

Selections::Selections(const ModelGraph& graph, const NamedData& inputs) : graph_(graph) {
  for (const Node& node : graph.graph().nodes()) {
    if (node.inputs.empty() || (node.op != "ArgMax" && node.op != "ArgMin" && node.op != "TopK")) continue;
    const std::string& name = graph.name_of(node.inputs[0]);
    const auto given = inputs.find(name);
    read_[name] = given == inputs.end() ? Data() : given->second;
  }
}

void Selections::on_value(const std::string& name, const Data& data) {
  const auto found = read_.find(name);
  if (found != read_.end() && !found->second && data.is_tensor()) found->second = data.tensor().clone();
}

bool Selections::are_equal(const std::string& name, const Data& expected, const Data& actual) const {
  NamedData shown;
  for (const auto& [value, data] : read_) {
    if (data) shown[value] = data;
  }
  const auto region = graph_.region({name}, shown);
  return region && same_selection(*region, 0, actual, expected);
}

}  // namespace unmoor
