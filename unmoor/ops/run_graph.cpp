#include "unmoor/ops/run_graph.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/compose.h"
#include "unmoor/ops/moving.h"
#include "unmoor/tensor/convert.h"

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

namespace {

bool is_narrow(DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }

// The inputs, in float64 where the operator's ports take it, so that an expansion rounds once, at its end. A node with graphs of its own keeps its
// dtypes: theirs are given.
std::vector<Data> widened(const OpCall& call, std::span<const Data> in) {
  const Op& op = *all_ops().find(call.node.op);
  std::vector<Data> wide(in.begin(), in.end());
  const auto& attributes = call.node.attributes;
  if (std::ranges::any_of(attributes, [](const auto& each) { return std::holds_alternative<SubGraph>(each.second); })) return wide;
  for (size_t i = 0; i < wide.size(); ++i) {
    if (!wide[i].is_tensor() || !is_narrow(wide[i].tensor().dtype()) || op.inputs.empty()) continue;
    const auto& dtypes = op.inputs[std::min(i, op.inputs.size() - 1)].dtypes;
    if (dtypes.empty() || std::ranges::count(dtypes, DType::F64) > 0) wide[i] = as_float64(wide[i].tensor());
  }
  return wide;
}

void put_rounded(const Tensor& made, DType dtype, size_t i, Outputs& out) {
  Tensor& output = out.allocate(i, TensorType{is_narrow(dtype) ? dtype : made.dtype(), made.shape()});
  if (made.dtype() == output.dtype()) copy_all(made, output);
  else store(output, doubles(made));
}

}  // namespace

void run_expansion(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto declared = infer_outputs(with_data(call, in));
  const auto wide = widened(call, in);
  OpCall known = with_data(call, wide);  // What values decide is known now.
  known.outputs = infer_outputs(known);
  const Graph graph = expanded(known);
  std::vector<Data> inputs;
  for (size_t i = 0; i < wide.size(); ++i) {
    if (known.has(i) && known.constant(i) == nullptr) inputs.push_back(wide[i]);
  }
  const std::vector<Data> results = run_graph(graph, inputs);
  for (size_t i = 0; i < call.node.outputs.size(); ++i) {
    if (!call.wants_output(i)) continue;
    const auto named = std::ranges::find(graph.output_names(), cat("output_", i));
    const Tensor& made = results.at(static_cast<size_t>(named - graph.output_names().begin())).tensor();
    put_rounded(made, std::get<TensorType>(declared.at(i)).dtype, i, out);
  }
}

}  // namespace unmoor
