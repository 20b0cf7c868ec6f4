#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/ops/window.h"

namespace unmoor::cpu {

Support takes_convolution(const OpCall& call) {
  if (Support types = all_of(inputs_are(call, {DType::F32}), is_constant(call, 1), known_activation(call)); !types) {
    return types;
  }
  const int64_t channels = canonical(call, call.input(0).shape)[1];
  if (const int64_t groups = call.integer("group", 1); groups < 1 || channels != groups * call.input(1).shape[1]) {
    return no(Reason::Attribute, "group ", groups, " for weights of ", call.input(1).shape);
  }
  const Shape& out = call.output(0).shape;
  return !call.has(3) || call.input(3).shape == out ? yes() : no(Reason::Size, "a residual of ", call.input(3).shape, " for a result of ", out);
}

Window window_of_weights(const OpCall& call) {
  const std::vector<int64_t>& dims = call.input(1).shape.dims();
  return without_idle_strides(window_of(call, {dims.begin() + 2, dims.end()}));
}

ConvOperands::ConvOperands(const KernelArgs& args)
    : y(reinterpret_cast<float*>(args.outputs[0].host())), workspace(reinterpret_cast<float*>(args.workspace.host())) {
  const auto input = [&](size_t i) { return i < args.inputs.size() ? reinterpret_cast<const float*>(args.inputs[i].host()) : nullptr; };
  x = input(0);
  weights = input(1);
  bias = input(2);
  residual = input(3);
}

std::vector<bool> without_weights(const OpCall& call) {
  std::vector<bool> unused(call.input_count(), false);
  unused.at(1) = true;
  return unused;
}

}  // namespace unmoor::cpu
