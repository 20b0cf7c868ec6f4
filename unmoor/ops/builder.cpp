#include "unmoor/ops/builder.h"

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {

GraphBuilder::GraphBuilder(Graph& graph, const OpCall& call, std::vector<ValueId> inputs)
    : graph_(graph), call_(call), inputs_(std::move(inputs)), outputs_(call.node.outputs.size(), no_value) {}

ValueId GraphBuilder::constant(Tensor tensor) {
  std::string label = cat(call_.node.name, "/constant_", graph_.values().size());
  const ValueId id = graph_.add_constant(std::move(label), std::move(tensor));
  graph_.mutable_value(id).origin.name.clear();
  return id;
}

ValueId GraphBuilder::scalar(double value, DType dtype) {
  Tensor tensor(TensorType{dtype, Shape()});
  store(tensor, std::span<const double>(&value, 1));
  return constant(std::move(tensor));
}

ValueId GraphBuilder::ints(std::vector<int64_t> values) {
  return constant(Tensor::from<int64_t>(Shape{static_cast<int64_t>(values.size())}, values));
}

ValueId GraphBuilder::add(std::string op, std::vector<ValueId> inputs, Attributes attributes) {
  return add_many(std::move(op), std::move(inputs), std::move(attributes), 1)[0];
}

std::vector<ValueId> GraphBuilder::add_many(std::string op, std::vector<ValueId> inputs, Attributes attributes, size_t outputs) {
  Node node;
  node.name = cat(call_.node.name, "/", op, "_", graph_.nodes().size());
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.origin = call_.node.origin;
  for (size_t i = 0; i < outputs; ++i) {
    Value value;
    value.name = cat(node.name, ":", i);
    value.type = TensorType{DType::F32, Shape::of_unknown_rank()};
    node.outputs.push_back(graph_.add_value(std::move(value)));
  }
  const auto types = infer_outputs(call_for(graph_, node));
  for (size_t i = 0; i < outputs; ++i) graph_.set_type(node.outputs[i], types[i]);
  auto ids = node.outputs;
  graph_.add_node(std::move(node));
  return ids;
}

std::vector<ValueId> GraphBuilder::add_body(const Graph& body, const std::vector<ValueId>& inputs) {
  std::vector<ValueId> places(body.values().size(), no_value);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!body.values()[i].constant) continue;
    places[i] = graph_.add_constant(cat(call_.node.name, "/", body.values()[i].name), *body.values()[i].constant);
    graph_.mutable_value(places[i]).origin.name.clear();
  }
  for (size_t i = 0; i < inputs.size(); ++i) places.at(Graph::index(body.inputs().at(i))) = inputs[i];
  for (const Node& node : body.nodes()) {
    std::vector<ValueId> in;
    for (const ValueId id : node.inputs) in.push_back(id == no_value ? no_value : places[Graph::index(id)]);
    const auto made = add_many(node.op, std::move(in), node.attributes, node.outputs.size());
    for (size_t i = 0; i < made.size(); ++i) {
      if (node.outputs[i] != no_value) places[Graph::index(node.outputs[i])] = made[i];
    }
  }
  std::vector<ValueId> outputs;
  for (const ValueId id : body.outputs()) outputs.push_back(places[Graph::index(id)]);
  return outputs;
}

void GraphBuilder::output(size_t i, ValueId value) {
  if (i >= outputs_.size()) outputs_.resize(i + 1, no_value);
  outputs_[i] = value;
}

Graph expanded(const OpCall& call) {
  const Op* const op = all_ops().find(call.node.op);
  if (op == nullptr || !op->expand) fail(ErrorKind::Internal, call.node.op, " has no expansion");
  Graph graph;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]) {
      inputs.push_back(no_value);
    } else if (const Tensor* constant = call.constant(i)) {
      inputs.push_back(graph.add_constant(cat("input_", i), *constant));
    } else {
      inputs.push_back(graph.add_input(cat("input_", i), *call.inputs[i]));
    }
  }
  GraphBuilder builder(graph, call, std::move(inputs));
  op->expand(builder);
  for (size_t i = 0; i < builder.outputs().size(); ++i) {
    if (builder.outputs()[i] == no_value && call.wants_output(i)) {
      fail(ErrorKind::Internal, "the expansion of ", call.node.op, " leaves out output ", i);
    }
    if (builder.outputs()[i] != no_value) graph.mark_output(builder.outputs()[i], cat("output_", i));
  }
  return graph;
}

}  // namespace unmoor
