#include "unmoor/ops/op.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

template <class T>
const T* find_attribute(const Node& node, std::string_view key) {
  const auto found = node.attributes.find(key);
  if (found == node.attributes.end()) return nullptr;
  if (const T* held = std::get_if<T>(&found->second)) return held;
  fail(ErrorKind::InvalidModel, node.op, " '", node.name, "': attribute '", key, "' has the wrong type: ", found->second);
}

const TensorType& tensor_type(const OpCall& call, const Type* type, std::string_view what, size_t i) {
  const auto* tensor = type == nullptr ? nullptr : std::get_if<TensorType>(type);
  if (tensor != nullptr) return *tensor;
  fail(ErrorKind::InvalidModel, call.node.op, " '", call.node.name, "': ", what, " ", i, type == nullptr ? " is absent" : " is no tensor");
}

bool allows(const Port& port, const Type& type) {
  if (port.dtypes.empty()) return true;
  const auto* tensor = std::get_if<TensorType>(&type);
  if (tensor == nullptr) return false;
  if (std::ranges::find(port.dtypes, tensor->dtype) != port.dtypes.end()) return true;
  // Everything that takes float32 takes float64, so that a whole model can run in it.
  return tensor->dtype == DType::F64 && std::ranges::find(port.dtypes, DType::F32) != port.dtypes.end();
}

void check_inputs(const Op& op, const OpCall& call) {
  const bool variadic = !op.inputs.empty() && op.inputs.back().arity == Arity::Variadic;
  if (call.inputs.size() > op.inputs.size() && !variadic) {
    fail(ErrorKind::InvalidModel, "it has ", call.inputs.size(), " inputs, not at most ", op.inputs.size());
  }
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i].arity == Arity::Required && !call.has(i)) {
      fail(ErrorKind::InvalidModel, "its input '", op.inputs[i].name, "' is absent");
    }
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Port& port = op.inputs[std::min(i, op.inputs.size() - 1)];
    if (call.inputs[i] && !allows(port, *call.inputs[i])) {
      fail(ErrorKind::InvalidModel, "its input '", port.name, "' cannot be ", *call.inputs[i]);
    }
  }
}

// Of an output that the node has; ports without dtypes and values of unknown type are not checked.
void check_outputs(const Op& op, const OpCall& call, const std::vector<Type>& types) {
  for (size_t i = 0; i < types.size() && !op.outputs.empty(); ++i) {
    const Port& port = op.outputs[std::min(i, op.outputs.size() - 1)];
    const auto* tensor = std::get_if<TensorType>(&types[i]);
    if (!call.wants_output(i) || tensor == nullptr || allows(port, types[i])) continue;
    fail(ErrorKind::InvalidModel, "its output '", port.name, "' cannot be ", tensor->dtype);
  }
}

}  // namespace

std::string_view name(Category category) {
  switch (category) {
    case Category::Basic: return "arithmetic";
    case Category::Matrix: return "matmul";
    case Category::Convolution: return "conv";
    case Category::Pooling: return "pool";
    case Category::Normalization: return "norm";
    case Category::Activation: return "activation";
    case Category::Attention: return "attention";
    case Category::Recurrent: return "recurrent";
    case Category::Reduction: return "reduction";
    case Category::Layout: return "layout";
    case Category::Quantization: return "quantization";
    case Category::Sampling: return "sampling";
    case Category::DynamicOutput: return "dynamic output";
    case Category::ControlFlow: return "control flow";
    case Category::Sequence: return "sequence";
    case Category::Text: return "text";
    case Category::Signal: return "signal";
    case Category::Trees: return "tree ensemble";
    case Category::Other: return "other";
  }
  return "other";
}

const TensorType& OpCall::input(size_t i) const {
  return tensor_type(*this, has(i) ? &*inputs[i] : nullptr, "input", i);
}

const TensorType& OpCall::output(size_t i) const {
  return tensor_type(*this, i < outputs.size() ? &outputs[i] : nullptr, "output", i);
}

int64_t OpCall::integer(std::string_view key, int64_t otherwise) const {
  const auto* held = find_attribute<int64_t>(node, key);
  return held == nullptr ? otherwise : *held;
}

double OpCall::real(std::string_view key, double otherwise) const {
  const auto* held = find_attribute<float>(node, key);
  return held == nullptr ? otherwise : static_cast<double>(*held);
}

std::string OpCall::text(std::string_view key, std::string_view otherwise) const {
  const auto* held = find_attribute<std::string>(node, key);
  return held == nullptr ? std::string(otherwise) : *held;
}

std::vector<int64_t> OpCall::integers(std::string_view key, std::vector<int64_t> otherwise) const {
  const auto* held = find_attribute<std::vector<int64_t>>(node, key);
  return held == nullptr ? otherwise : *held;
}

std::vector<float> OpCall::reals(std::string_view key) const {
  const auto* held = find_attribute<std::vector<float>>(node, key);
  return held == nullptr ? std::vector<float>() : *held;
}

std::vector<std::string> OpCall::texts(std::string_view key) const {
  const auto* held = find_attribute<std::vector<std::string>>(node, key);
  return held == nullptr ? std::vector<std::string>() : *held;
}

const Tensor* OpCall::tensor(std::string_view key) const { return find_attribute<Tensor>(node, key); }

SubGraph OpCall::graph(std::string_view key) const {
  if (const auto* held = find_attribute<SubGraph>(node, key)) return *held;
  fail(ErrorKind::InvalidModel, node.op, " '", node.name, "' has no graph '", key, "'");
}

Tensor& Outputs::allocate(size_t i, TensorType type) {
  if (i < bound_.size() && bound_[i] && bound_[i].type() == type) {
    held_.at(i) = bound_[i];
    filling_[i] = bound_[i];
    if (const auto bytes = filling_[i].writable_bytes(); !bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
  } else {
    filling_.at(i) = Tensor(std::move(type));
    held_.at(i) = filling_[i];
  }
  return filling_[i];
}

void Outputs::set(size_t i, Data data) { held_.at(i) = std::move(data); }

void OpSet::add(Op op) {
  std::string key = op.name;
  if (!ops_.emplace(std::move(key), std::move(op)).second) fail(ErrorKind::Internal, "an operator was added twice");
}

const Op* OpSet::find(std::string_view op_name) const {
  const auto found = ops_.find(op_name);
  return found == ops_.end() ? nullptr : &found->second;
}

std::string why_absent(std::string_view op_name) {
  if (op_name == "ai.onnx.preview.training:Gradient") {
    return cat(op_name, " asks for derivatives of other nodes; models run here, they are not differentiated");
  }
  return cat("operator ", op_name, " is not known");
}

std::vector<Type> infer_outputs(const OpCall& call) {
  const Op* const op = all_ops().find(call.node.op);
  if (op == nullptr || !op->infer) {
    return std::vector<Type>(call.node.outputs.size(), TensorType{DType::F32, Shape::of_unknown_rank()});
  }
  try {
    check_inputs(*op, call);
    auto types = op->infer(call);
    if (types.size() < call.node.outputs.size()) {
      fail(ErrorKind::InvalidModel, "it has ", call.node.outputs.size(), " outputs, not at most ", types.size());
    }
    types.resize(call.node.outputs.size());
    check_outputs(*op, call, types);
    return types;
  } catch (Error& error) {
    error.note(cat("in ", call.node.op, " '", call.node.origin.name.empty() ? call.node.name : call.node.origin.name, "'"));
    throw;
  }
}

OpCall call_for(const Graph& graph, const Node& node) {
  OpCall call{node, {}, {}, {}};
  call.inputs.reserve(node.inputs.size());
  call.constants.reserve(node.inputs.size());
  for (const ValueId id : node.inputs) {
    if (id == no_value) {
      call.inputs.emplace_back();
      call.constants.push_back(nullptr);
    } else {
      call.inputs.emplace_back(graph.value(id).type);
      call.constants.push_back(graph.constant_tensor(id));
    }
  }
  for (const ValueId id : node.outputs) {
    call.outputs.push_back(id == no_value ? Type(TensorType{DType::F32, Shape::of_unknown_rank()}) : graph.value(id).type);
  }
  return call;
}

void run_reference(const OpCall& call, std::span<const Data> inputs, Outputs& outputs) {
  const Op* const op = all_ops().find(call.node.op);
  if (op == nullptr) fail(ErrorKind::Unsupported, why_absent(call.node.op));
  if (!op->reference) fail(ErrorKind::Unsupported, "operator ", call.node.op, " has no reference function");
  try {
    op->reference(call, inputs, outputs);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::OutOfMemory, "no memory for what ", call.node.op, " '", call.node.name, "' needs while it runs");
  } catch (const std::length_error&) {
    fail(ErrorKind::OutOfMemory, "no memory for what ", call.node.op, " '", call.node.name, "' needs while it runs");
  } catch (Error& error) {
    error.note(cat("in ", call.node.op, " '", call.node.origin.name.empty() ? call.node.name : call.node.origin.name, "'"));
    throw;
  }
}

Cost cost_of(const OpCall& call) {
  const Op* const op = all_ops().find(call.node.op);
  if (op != nullptr && op->cost) return op->cost(call);
  Cost cost;
  const auto add = [&cost](const Type& type) {
    const auto* tensor = std::get_if<TensorType>(&type);
    if (tensor != nullptr && tensor->is_known()) cost.bytes += static_cast<double>(tensor->bytes());
  };
  for (const auto& input : call.inputs) {
    if (input) add(*input);
  }
  for (const auto& output : call.outputs) add(output);
  return cost;
}

}  // namespace unmoor
