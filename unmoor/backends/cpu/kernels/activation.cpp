#include "unmoor/backends/cpu/kernels/activation.h"

#include <array>
#include <limits>

namespace unmoor::cpu {

namespace {

struct Named {
  std::string_view name;
  Function function;
  float a;  // Where activation_params has none.
  float b;
};
// ONNX's names and default parameters.
constexpr std::array named = {
    Named{"Sigmoid", Function::Sigmoid, 0, 0},        Named{"HardSigmoid", Function::HardSigmoid, 0.2F, 0.5F},
    Named{"HardSwish", Function::HardSwish, 0, 0},    Named{"Swish", Function::Swish, 1, 0},
    Named{"Gelu", Function::Gelu, 0, 0},              Named{"GeluTanh", Function::GeluTanh, 0, 0},
    Named{"LeakyRelu", Function::LeakyRelu, 0.01F, 0}, Named{"Tanh", Function::Tanh, 0, 0},
};

}  // namespace

Support known_activation(const OpCall& call, std::string_view prefix) {
  const std::string name = call.text(cat(prefix, "activation"), "");
  if (name.empty() || name == "Relu" || name == "Clip") {
    return yes();
  }
  for (const Named& one : named) {
    if (one.name == name) return yes();
  }
  return no(Reason::Attribute, "activation ", name);
}

void set_activation(const OpCall& call, Epilogue& epilogue, std::string_view prefix) {
  const std::string name = call.text(cat(prefix, "activation"), "");
  const std::vector<float> params = call.reals(cat(prefix, "activation_params"));
  if (name == "Relu") {
    epilogue.low = 0;
  } else if (name == "Clip") {
    epilogue.low = params.empty() ? std::numeric_limits<float>::lowest() : params[0];
    epilogue.high = params.size() > 1 ? params[1] : std::numeric_limits<float>::max();
  }
  for (const Named& one : named) {
    if (one.name == name) {
      epilogue.activate = unary_loop(one.function);
      epilogue.a = params.empty() ? one.a : params[0];
      epilogue.b = params.size() > 1 ? params[1] : one.b;
    }
  }
}

}  // namespace unmoor::cpu
