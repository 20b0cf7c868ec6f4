#include "unmoor/ops/run_graph.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/moving.h"

namespace unmoor {

std::vector<Data> run_graph(const Graph& graph, std::span<const Data> inputs) {
  std::vector<Data> values(graph.values().size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.values()[i].constant) values[i] = *graph.values()[i].constant;
  }
  for (size_t i = 0; i < inputs.size(); ++i) values.at(Graph::index(graph.inputs().at(i))) = inputs[i];
  for (const Node& node : graph.nodes()) {
    std::vector<Data> in;
    for (const ValueId id : node.inputs) in.push_back(id == no_value ? Data() : values[Graph::index(id)]);
    OpCall call = with_data(call_for(graph, node), in);
    call.outputs = infer_outputs(call);
    Outputs out(node.outputs.size());
    run_reference(call, in, out);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_value) values[Graph::index(node.outputs[i])] = std::move(out.all()[i]);
    }
  }
  std::vector<Data> results;
  for (const ValueId id : graph.outputs()) results.push_back(values[Graph::index(id)]);
  return results;
}

void run_expansion(const OpCall& call, std::span<const Data> in, Outputs& out) {
  OpCall known = with_data(call, in);  // What values decide is known now.
  known.outputs = infer_outputs(known);
  const Graph graph = expanded(known);
  std::vector<Data> inputs;
  for (size_t i = 0; i < in.size(); ++i) {
    if (known.has(i) && known.constant(i) == nullptr) inputs.push_back(in[i]);
  }
  const std::vector<Data> results = run_graph(graph, inputs);
  for (size_t i = 0; i < call.node.outputs.size(); ++i) {
    if (!call.wants_output(i)) continue;
    const auto named = std::ranges::find(graph.output_names(), cat("output_", i));
    const Tensor& made = results.at(static_cast<size_t>(named - graph.output_names().begin())).tensor();
    Tensor& output = out.allocate(i, made.type());
    copy_all(made, output);
  }
}

}  // namespace unmoor
