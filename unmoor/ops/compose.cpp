#include "unmoor/ops/compose.h"

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/tensor/unset.h"

namespace unmoor {
namespace {

Node node_like(const OpCall& call, const std::string& op, size_t inputs, size_t outputs, const Attributes& attributes) {
  Node node;
  node.name = call.node.name;
  node.op = op;
  node.origin = call.node.origin;
  node.inputs.assign(inputs, ValueId{0});
  node.outputs.assign(outputs, ValueId{0});
  node.attributes = attributes;
  return node;
}

}  // namespace

TensorType type_by(const OpCall& call, const std::string& op, std::vector<std::optional<Type>> inputs,
                   const Attributes& attributes, const std::vector<Tensor>& constants) {
  std::vector<const Tensor*> known(inputs.size(), nullptr);
  for (const Tensor& constant : constants) {
    inputs.emplace_back(constant.type());
    known.push_back(&constant);
  }
  const Node node = node_like(call, op, inputs.size(), 1, attributes);
  const std::vector<Type> types = infer_outputs(OpCall{node, std::move(inputs), {}, std::move(known)});
  if (const auto* tensor = std::get_if<TensorType>(&types.at(0))) return *tensor;
  fail(ErrorKind::Internal, op, " inside of ", call.node.op, " gives no tensor");
}

std::vector<Tensor> results_by(const OpCall& call, const std::string& op, const std::vector<Tensor>& inputs,
                               const Attributes& attributes, size_t count) {
  const Node node = node_like(call, op, inputs.size(), count, attributes);
  OpCall inner{node, {}, {}, {}};
  std::vector<Data> data;
  for (const Tensor& input : inputs) {
    inner.inputs.push_back(input ? std::optional<Type>(input.type()) : std::nullopt);
    inner.constants.push_back(input ? &input : nullptr);
    data.push_back(input ? Data(input) : Data());
  }
  inner.outputs = infer_outputs(inner);
  Outputs outputs(count);
  run_reference(inner, data, outputs);
  std::vector<Tensor> results;
  for (const Data& output : outputs.all()) results.push_back(output.tensor());
  return results;
}

Tensor result_by(const OpCall& call, const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  return results_by(call, op, inputs, attributes, 1)[0];
}

Tensor as_float64(const Tensor& tensor) {
  return float64_tensor(tensor);
}

}  // namespace unmoor
