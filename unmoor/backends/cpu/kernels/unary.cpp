#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/functions.h"

namespace unmoor::cpu {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// An operator of one float input: its function, and the attributes that give a and b.
struct UnaryOp {
  const char* op;
  const char* kernel;
  Function function;
  const char* a = nullptr;
  float a_default = 0;
  const char* b = nullptr;
  float b_default = 0;
};

constexpr UnaryOp unary_ops[] = {
    {"Sigmoid", "cpu.sigmoid.vector", Function::Sigmoid},
    {"Tanh", "cpu.tanh.vector", Function::Tanh},
    {"Exp", "cpu.exp.vector", Function::Exp},
    {"Log", "cpu.log.vector", Function::Log},
    {"Sqrt", "cpu.sqrt.vector", Function::Sqrt},
    {"Reciprocal", "cpu.reciprocal.vector", Function::Reciprocal},
    {"Neg", "cpu.neg.vector", Function::Neg},
    {"Abs", "cpu.abs.vector", Function::Abs},
    {"Floor", "cpu.floor.vector", Function::Floor},
    {"Ceil", "cpu.ceil.vector", Function::Ceil},
    {"Round", "cpu.round.vector", Function::Round},
    {"Erf", "cpu.erf.vector", Function::Erf},
    {"Sign", "cpu.sign.vector", Function::Sign},
    {"Swish", "cpu.swish.vector", Function::Swish, "alpha", 1},
    {"HardSwish", "cpu.hardswish.vector", Function::HardSwish},
    {"HardSigmoid", "cpu.hardsigmoid.vector", Function::HardSigmoid, "alpha", 0.2F, "beta", 0.5F},
    {"LeakyRelu", "cpu.leakyrelu.vector", Function::LeakyRelu, "alpha", 0.01F},
    {"Elu", "cpu.elu.vector", Function::Elu, "alpha", 1},
    {"Celu", "cpu.celu.vector", Function::Celu, "alpha", 1},
    {"Selu", "cpu.selu.vector", Function::Selu, "alpha", 1.67326319217681884765625F, "gamma", 1.05070102214813232421875F},
    {"Softplus", "cpu.softplus.vector", Function::Softplus},
    {"Softsign", "cpu.softsign.vector", Function::Softsign},
    {"Mish", "cpu.mish.vector", Function::Mish},
    {"ThresholdedRelu", "cpu.thresholdedrelu.vector", Function::ThresholdedRelu, "alpha", 1},
};

// Applies loop(from, to, count) to the whole of input 0, in parts.
template <class T, class Loop>
Prepared elementwise(const OpCall& call, Device& device, Loop loop) {
  return {.run = [&machine = machine_of(device), n = static_cast<size_t>(call.output(0).shape.elements()), loop](Stream&, const KernelArgs& args) {
    const T* const x = reinterpret_cast<const T*>(args.inputs[0].host());
    T* const y = reinterpret_cast<T*>(args.outputs[0].host());
    machine.pool().ranges(n, 16384, [&](size_t begin, size_t end) { loop(x + begin, y + begin, end - begin); });
  }};
}

Prepared with_function(const OpCall& call, Device& device, Function function, float a, float b) {
  return elementwise<float>(call, device, [loop = unary_loop(function), a, b](const float* x, float* y, size_t n) { loop(x, y, n, a, b); });
}

Support takes_floats(const OpCall& call) { return inputs_are(call, {DType::F32}); }

Kernel kernel_of(const UnaryOp& one) {
  return {.name = one.kernel,
          .supports = takes_floats,
          .prepare =
              [one](const OpCall& call, Device& device) {
                const float a = one.a == nullptr ? 0.0F : static_cast<float>(call.real(one.a, static_cast<double>(one.a_default)));
                const float b = one.b == nullptr ? 0.0F : static_cast<float>(call.real(one.b, static_cast<double>(one.b_default)));
                return with_function(call, device, one.function, a, b);
              },
          .in_place = true};
}

Kernel gelu_kernel() {
  return {.name = "cpu.gelu.vector",
          .supports = takes_floats,
          .prepare =
              [](const OpCall& call, Device& device) {
                const bool tanh = call.text("approximate", "none") == "tanh";
                return with_function(call, device, tanh ? Function::GeluTanh : Function::Gelu, 0, 0);
              },
          .in_place = true};
}

Kernel relu_kernel() {
  return {.name = "cpu.relu.vector",
          .supports = takes_floats,
          .prepare = [](const OpCall& call, Device& device) { return with_function(call, device, Function::Clamp, 0, infinity); },
          .in_place = true};
}

Support supports_clip(const OpCall& call) {
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (call.has(i) && call.input(i).shape.elements() != 1) return no(Reason::Size, "a bound of ", call.input(i).shape, ", not one element");
  }
  return takes_floats(call);
}

// Bounds are read when it runs: they may be computed.
Prepared prepare_clip(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), n = static_cast<size_t>(call.output(0).shape.elements()),
                  loop = unary_loop(Function::Clamp)](Stream&, const KernelArgs& args) {
    const auto bound = [&](size_t i, float otherwise) {
      return i < args.inputs.size() && args.inputs[i].buffer != nullptr ? *reinterpret_cast<const float*>(args.inputs[i].host()) : otherwise;
    };
    const float low = bound(1, -infinity);
    const float high = bound(2, infinity);
    const float* const x = reinterpret_cast<const float*>(args.inputs[0].host());
    float* const y = reinterpret_cast<float*>(args.outputs[0].host());
    if (std::isnan(low) || std::isnan(high)) {
      std::fill_n(y, n, std::isnan(high) ? high : low);
      return;
    }
    machine.pool().ranges(n, 16384, [&](size_t begin, size_t end) { loop(x + begin, y + begin, end - begin, low, high); });
  }};
}

// Functions without a vector form, by the C library.
struct PlainOp {
  const char* op;
  const char* kernel;
  float (*function)(float);
};
constexpr PlainOp plain_ops[] = {
    {"Sin", "cpu.sin.plain", [](float x) { return std::sin(x); }},    {"Cos", "cpu.cos.plain", [](float x) { return std::cos(x); }},
    {"Tan", "cpu.tan.plain", [](float x) { return std::tan(x); }},    {"Atan", "cpu.atan.plain", [](float x) { return std::atan(x); }},
    {"Asin", "cpu.asin.plain", [](float x) { return std::asin(x); }}, {"Acos", "cpu.acos.plain", [](float x) { return std::acos(x); }},
};

Kernel plain_kernel(const PlainOp& one) {
  return {.name = one.kernel,
          .supports = takes_floats,
          .prepare =
              [function = one.function](const OpCall& call, Device& device) {
                return elementwise<float>(call, device, [function](const float* x, float* y, size_t n) { std::transform(x, x + n, y, function); });
              },
          .in_place = true};
}

Kernel not_kernel() {
  return {.name = "cpu.not.plain",
          .supports = [](const OpCall& call) { return inputs_are(call, {DType::Bool}); },
          .prepare =
              [](const OpCall& call, Device& device) {
                return elementwise<uint8_t>(call, device, [](const uint8_t* x, uint8_t* y, size_t n) {
                  std::transform(x, x + n, y, [](uint8_t value) { return static_cast<uint8_t>(value == 0); });
                });
              },
          .in_place = true};
}

}  // namespace

void add_unary_kernels(KernelTable& table) {
  for (const UnaryOp& one : unary_ops) table.add(one.op, kernel_of(one));
  for (const PlainOp& one : plain_ops) table.add(one.op, plain_kernel(one));
  table.add("Gelu", gelu_kernel());
  table.add("Relu", relu_kernel());
  table.add("Clip", {.name = "cpu.clip.vector", .supports = supports_clip, .prepare = prepare_clip, .in_place = true});
  table.add("Not", not_kernel());
}

}  // namespace unmoor::cpu
