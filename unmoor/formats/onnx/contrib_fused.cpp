#include <algorithm>
#include <array>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::onnx {
namespace {

// An activation that ONNX Runtime fuses, and the attributes that its parameters are.
struct Activation {
  std::string_view name;
  std::array<std::string_view, 2> parameters = {};
};
constexpr std::array activations{
    Activation{"Relu"},
    Activation{"Tanh"},
    Activation{"Sigmoid"},
    Activation{"Softplus"},
    Activation{"Softsign"},
    Activation{"HardSwish"},
    Activation{"LeakyRelu", {"alpha"}},
    Activation{"Elu", {"alpha"}},
    Activation{"Celu", {"alpha"}},
    Activation{"ThresholdedRelu", {"alpha"}},
    Activation{"HardSigmoid", {"alpha", "beta"}},
    Activation{"Selu", {"alpha", "gamma"}},
    Activation{"Clip", {"min", "max"}},
};

const Activation& activation_named(std::string_view name) {
  const auto found = std::ranges::find(activations, name, &Activation::name);
  if (found == activations.end()) fail(ErrorKind::Unsupported, "the fused activation '", name, "' is not supported");
  return *found;
}

Tensor scalar_of(DType dtype, float value) {
  Tensor tensor(TensorType{dtype, Shape()});
  const auto number = static_cast<double>(value);
  store(tensor, std::span<const double>(&number, 1));
  return tensor;
}

// Makes the node `activation` of what it was, whose element type is `dtype`. Parameters are by the names above.
void activate(NodeDraft& draft, const std::string& activation, const std::map<std::string_view, float>& parameters, DType dtype) {
  if (activation.empty()) return;
  const Activation& known = activation_named(activation);
  const ValueId value = draft.add(draft.node.op, draft.node.inputs, draft.node.attributes);
  draft.node.op = activation;
  draft.node.inputs = {value};
  draft.node.attributes.clear();
  for (size_t i = 0; i < known.parameters.size(); ++i) {
    const auto found = parameters.find(known.parameters[i]);
    if (known.parameters[i].empty() || found == parameters.end()) continue;
    if (activation == "Clip") {
      draft.set_input(i + 1, draft.constant(scalar_of(dtype, found->second)));
    } else {
      draft.set(std::string(found->first), found->second);
    }
  }
}

void split_conv(NodeDraft& draft, bool channels_last) {
  const auto activation = draft.take<std::string>("activation", "");
  const auto given = draft.take<std::vector<float>>("activation_params", {});
  std::map<std::string_view, float> parameters;
  if (!activation.empty()) {
    const Activation& known = activation_named(activation);
    if (given.size() > known.parameters.size())
      fail(ErrorKind::InvalidModel, "activation_params has ", given.size(), " numbers for ", activation);
    for (size_t i = 0; i < given.size(); ++i) parameters[known.parameters[i]] = given[i];
  }
  const DType dtype = draft.dtype_or_float(0);
  draft.node.op = "Conv";
  if (channels_last) draft.set("layout", std::string("NHWC"));
  if (const ValueId residual = draft.input(3); residual != no_value) {
    draft.node.inputs.resize(draft.input(2) == no_value ? 2 : 3);
    const ValueId sum = draft.add("Conv", draft.node.inputs, draft.node.attributes);
    draft.node.op = "Add";
    draft.node.inputs = {sum, residual};
    draft.node.attributes.clear();
  }
  activate(draft, activation, parameters, dtype);
}

void split_gemm(NodeDraft& draft) {
  const auto activation = draft.take<std::string>("activation", "");
  std::map<std::string_view, float> parameters;
  for (const auto& [attribute, name] : {std::pair<const char*, const char*>{"activation_alpha", "alpha"},
                                        {"activation_beta", "beta"},
                                        {"activation_gamma", "gamma"}}) {
    if (const auto value = draft.take<float>(attribute)) parameters[name] = *value;
  }
  const DType dtype = draft.dtype_or_float(0);
  draft.node.op = "Gemm";
  activate(draft, activation, parameters, dtype);
}

}  // namespace

void split_fused(NodeDraft& draft) {
  const std::string op = draft.node.op;
  if (op == "com.microsoft:FusedConv") split_conv(draft, false);
  if (op == "com.microsoft:NhwcConv" || op == "com.microsoft:NhwcFusedConv") split_conv(draft, true);
  if (op == "com.microsoft:FusedGemm") split_gemm(draft);
}

}  // namespace unmoor::onnx
