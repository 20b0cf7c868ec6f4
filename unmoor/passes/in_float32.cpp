#include "unmoor/passes/in_float32.h"

#include <algorithm>
#include <cstring>

#include "unmoor/base/error.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/passes/derived.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

bool is_narrow(const Type& type) {
  const auto* const tensor = std::get_if<TensorType>(&type);
  return tensor != nullptr && is_narrow(tensor->dtype);
}

Tensor converted(const Tensor& narrow) {
  Tensor wide(TensorType{DType::F32, narrow.shape()});
  const std::byte* from = narrow.bytes().data();  // At any alignment.
  const auto convert = narrow.dtype() == DType::F16 ? from_f16 : from_bf16;
  for (float& to : wide.writable_span<float>()) {
    uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    from += sizeof bits;
    to = convert(bits);
  }
  return wide;
}

Tensor in_float32(const Tensor& narrow) {
  return derived(narrow, cat("float32 of ", name(narrow.dtype()), narrow.shape()), [&narrow] { return converted(narrow); });
}

// Whether the node says a dtype in an attribute, which the outputs then have whatever the inputs are.
bool names_dtype(const Node& node) {
  return node.attributes.contains("dtype") || node.attributes.contains("output_dtype") || node.attributes.contains("to");
}

}  // namespace

Float32Call::Float32Call(const OpCall& narrow)
    : node(narrow.node), constants(narrow.inputs.size()), call{node, narrow.inputs, {}, narrow.constants} {
  call.constants.resize(call.inputs.size(), nullptr);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i] || !is_narrow(*call.inputs[i])) continue;
    std::get<TensorType>(*call.inputs[i]).dtype = DType::F32;
    if (call.constants[i] == nullptr) continue;
    constants[i] = in_float32(*call.constants[i]);
    call.constants[i] = &constants[i];
  }
  call.outputs = infer_outputs(call);
}

std::shared_ptr<const Float32Call> in_float32(const OpCall& call) {
  const Op* const op = all_ops().find(call.node.op);
  if (op == nullptr || op->rounding == Rounding::Quantise || names_dtype(call.node)) return nullptr;
  if (std::ranges::none_of(call.inputs, [](const auto& type) { return type && is_narrow(*type); })) return nullptr;
  try {
    auto wide = std::make_shared<const Float32Call>(call);
    if (std::ranges::any_of(wide->call.outputs, [](const Type& type) { return is_narrow(type); })) return nullptr;
    return wide;
  } catch (const Error&) {
    return nullptr;
  }
}

void build_in_float32(const Float32Call& wide, GraphBuilder& builder) {
  const OpCall& narrow = builder.call();
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < narrow.inputs.size(); ++i) {
    if (!narrow.inputs[i] || !is_narrow(*narrow.inputs[i])) {
      inputs.push_back(builder.input(i));
    } else if (narrow.constant(i) != nullptr) {
      inputs.push_back(builder.constant(wide.constants[i]));
    } else {
      inputs.push_back(builder.add("Cast", {builder.input(i)}, {{"to", onnx_number(DType::F32)}}));
    }
  }
  const auto made = builder.add_many(narrow.node.op, std::move(inputs), narrow.node.attributes, narrow.node.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (!narrow.wants_output(i)) continue;
    const bool same = !is_narrow(narrow.outputs[i]);
    builder.output(i, same ? made[i] : builder.add("Cast", {made[i]}, {{"to", onnx_number(narrow.output(i).dtype)}}));
  }
}

}  // namespace unmoor
