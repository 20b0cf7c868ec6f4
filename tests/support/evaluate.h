#pragma once

#include <vector>

#include "unmoor/base/error.h"
#include "unmoor/graph/graph.h"
#include "unmoor/ops/op.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {

std::vector<Data> evaluate(const Graph& graph, const std::vector<Data>& inputs);

namespace evaluation {

inline int64_t integer(const Node& node, std::string_view key) {
  const auto found = node.attributes.find(key);
  return found == node.attributes.end() ? 0 : std::get<int64_t>(found->second);
}

inline std::vector<int64_t> integers(const Node& node, std::string_view key, size_t count) {
  const auto found = node.attributes.find(key);
  return found == node.attributes.end() ? std::vector<int64_t>(count) : std::get<std::vector<int64_t>>(found->second);
}

inline const Graph& body(const Node& node, std::string_view key) { return *std::get<SubGraph>(node.attributes.find(key)->second); }
inline bool truth(const Data& data) { return doubles(data.tensor()).at(0) != 0; }

// Slice `at` of axis 0, and its reverse.
inline Tensor slice(const Tensor& tensor, size_t at) {
  Shape shape(std::vector<int64_t>(tensor.shape().dims().begin() + 1, tensor.shape().dims().end()));
  Tensor result(TensorType{tensor.dtype(), shape});
  const size_t bytes = result.bytes().size();
  const auto from = tensor.bytes().subspan(at * bytes, bytes);
  std::copy(from.begin(), from.end(), result.writable_bytes().begin());
  return result;
}

inline Tensor stack(const std::vector<Tensor>& items, const Type& otherwise) {
  TensorType type = items.empty() ? std::get<TensorType>(otherwise) : items[0].type();
  std::vector<int64_t> dims{static_cast<int64_t>(items.size())};
  if (!items.empty()) dims.insert(dims.end(), type.shape.dims().begin(), type.shape.dims().end());
  Tensor result(TensorType{type.dtype, Shape(dims)});
  auto to = result.writable_bytes().begin();
  for (const Tensor& item : items) to = std::copy(item.bytes().begin(), item.bytes().end(), to);
  return result;
}

inline std::vector<Data> run_loop(const Node& node, const std::vector<Data>& in) {
  const Graph& graph = body(node, "body");
  const auto captures = static_cast<size_t>(integer(node, "captures"));
  const size_t carried = in.size() - 2 - captures;
  const int64_t most = in[0] ? unmoor::integers(in[0].tensor()).at(0) : int64_t{1} << 40;
  bool goes_on = !in[1] || truth(in[1]);
  std::vector<Data> state(in.begin() + 2, in.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
  std::vector<std::vector<Tensor>> stacks(graph.outputs().size() - 1 - carried);
  for (int64_t round = 0; round < most && goes_on; ++round) {
    std::vector<Data> inputs{Tensor::scalar<int64_t>(round), Tensor::scalar<bool>(true)};
    inputs.insert(inputs.end(), state.begin(), state.end());
    inputs.insert(inputs.end(), in.end() - static_cast<std::ptrdiff_t>(captures), in.end());
    auto out = evaluate(graph, inputs);
    goes_on = truth(out[0]);
    state.assign(out.begin() + 1, out.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push_back(out[1 + carried + i].tensor());
  }
  for (size_t i = 0; i < stacks.size(); ++i) state.emplace_back(stack(stacks[i], graph.value(graph.outputs()[1 + carried + i]).type));
  return state;
}

// Scans along axis 0, forward.
inline std::vector<Data> run_scan(const Node& node, const std::vector<Data>& in) {
  const Graph& graph = body(node, "body");
  const auto captures = static_cast<size_t>(integer(node, "captures"));
  const auto scanned = static_cast<size_t>(integer(node, "num_scan_inputs"));
  const size_t states = in.size() - captures - scanned;
  std::vector<Data> state(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<std::vector<Tensor>> stacks(graph.outputs().size() - states);
  for (size_t round = 0; round < static_cast<size_t>(in[states].tensor().shape()[0]); ++round) {
    std::vector<Data> inputs = state;
    for (size_t i = 0; i < scanned; ++i) inputs.emplace_back(slice(in[states + i].tensor(), round));
    inputs.insert(inputs.end(), in.end() - static_cast<std::ptrdiff_t>(captures), in.end());
    auto out = evaluate(graph, inputs);
    state.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(states));
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push_back(out[states + i].tensor());
  }
  for (size_t i = 0; i < stacks.size(); ++i) state.emplace_back(stack(stacks[i], graph.value(graph.outputs()[states + i]).type));
  return state;
}

inline std::vector<Data> run_node(const Node& node, const std::vector<Data>& in) {
  if (node.op == "If") return evaluate(body(node, truth(in[0]) ? "then_branch" : "else_branch"), {in.begin() + 1, in.end()});
  if (node.op == "Loop") return run_loop(node, in);
  if (node.op == "Scan") return run_scan(node, in);
  OpCall call{node, {}, {}, {}};
  for (const Data& data : in) {
    call.inputs.push_back(data ? std::optional<Type>(type_of(data)) : std::nullopt);
    call.constants.push_back(data.is_tensor() ? &data.tensor() : nullptr);
  }
  call.outputs = infer_outputs(call);
  Outputs outputs(node.outputs.size());
  run_reference(call, in, outputs);
  return outputs.all();
}

}  // namespace evaluation

// Runs a graph node by node with the operators' references: what every pass must keep.
inline std::vector<Data> evaluate(const Graph& graph, const std::vector<Data>& inputs) {
  std::vector<Data> values(graph.values().size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.values()[i].constant) values[i] = *graph.values()[i].constant;
  }
  for (size_t i = 0; i < inputs.size(); ++i) values[Graph::index(graph.inputs().at(i))] = inputs[i];
  for (const Node& node : graph.nodes()) {
    std::vector<Data> in;
    for (const ValueId id : node.inputs) in.push_back(id == no_value ? Data() : values[Graph::index(id)]);
    auto out = evaluation::run_node(node, in);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_value) values[Graph::index(node.outputs[i])] = out.at(i);
    }
  }
  std::vector<Data> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(values[Graph::index(id)]);
  return outputs;
}

}  // namespace unmoor::test
