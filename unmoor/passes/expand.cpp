#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/passes/in_float32.h"
#include "unmoor/passes/pass.h"
#include "unmoor/passes/rewrite.h"

namespace unmoor {
namespace {

// The inputs and values of a graph at their places, without its nodes and outputs.
Graph without_nodes(const Graph& graph) {
  Graph result;
  result.set_name(graph.name());
  std::vector<bool> is_input(graph.values().size());
  for (const ValueId id : graph.inputs()) is_input[Graph::index(id)] = true;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    if (is_input[i]) {
      result.mutable_value(result.add_input("", {})) = graph.values()[i];
    } else {
      result.add_value(graph.values()[i]);
    }
  }
  return result;
}

// Builds what replaces a node, whose inputs are already in their new places. Returns what stands for its outputs.
std::vector<ValueId> append_replacement(Graph& graph, const Node& node, const Replacement& replacement) {
  const OpCall call = call_for(graph, node);
  GraphBuilder builder(graph, call, node.inputs);
  replacement(builder);
  std::vector<ValueId> outputs = builder.outputs();
  outputs.resize(node.outputs.size(), no_value);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == no_value && call.wants_output(i)) {
      fail(ErrorKind::Internal, "what replaces ", node.op, " leaves out output ", i);
    }
  }
  return outputs;
}

}  // namespace

bool has_expansion(const Node& node) {
  const Op* const op = all_ops().find(node.op);
  return op != nullptr && op->expand;
}

Graph with_expanded(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::map<NodeId, Replacement> replacements;
  for (const NodeId id : nodes) {
    if (has_expansion(graph.node(id))) replacements[id] = all_ops().find(graph.node(id).op)->expand;
  }
  return with_replaced(graph, replacements);
}

Graph with_replaced(const Graph& graph, const std::map<NodeId, Replacement>& replacements) {
  Graph result = without_nodes(graph);
  std::vector<ValueId> places(graph.values().size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = ValueId{static_cast<uint32_t>(i)};
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    Node node = graph.nodes()[i];
    for (ValueId& id : node.inputs) id = id == no_value ? no_value : places[Graph::index(id)];
    const auto replacement = replacements.find(NodeId{static_cast<uint32_t>(i)});
    if (replacement == replacements.end()) {
      result.add_node(std::move(node));
      continue;
    }
    const auto outputs = append_replacement(result, node, replacement->second);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (node.outputs[k] == no_value) continue;
      places[Graph::index(node.outputs[k])] = outputs[k];
      if (Graph::index(outputs[k]) < places.size()) continue;  // It gives back a value that was there.
      Value& made = result.mutable_value(outputs[k]);
      made.name = graph.value(node.outputs[k]).name;
      made.origin = graph.value(node.outputs[k]).origin;
    }
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    result.mark_output(places[Graph::index(graph.outputs()[i])], graph.output_names()[i]);
  Rewriter r(result);
  r.remove_dead();
  return r.finish();
}

}  // namespace unmoor
