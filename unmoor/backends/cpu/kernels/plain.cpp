#include <cmath>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"

namespace unmoor::cpu {

// Functions of one float without a vector form.
namespace {

Support takes_floats(const OpCall& call) { return inputs_are(call, {DType::F32}); }

template <class Out, class F>
Prepared elementwise(const OpCall& call, Device& device, F function) {
  return {.run = [&machine = machine_of(device), n = static_cast<size_t>(call.output(0).shape.elements()), function](
                     Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    Out* const y = output_as<Out>(args, 0);
    machine.pool().ranges(n, 8192, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) y[i] = function(x[i]);
    });
  }};
}

struct PlainOp {
  const char* op;
  const char* kernel;
  float (*function)(float);
};
constexpr PlainOp plain_ops[] = {
    {"Sinh", "cpu.sinh.plain", [](float x) { return std::sinh(x); }},
    {"Cosh", "cpu.cosh.plain", [](float x) { return std::cosh(x); }},
    {"Asinh", "cpu.asinh.plain", [](float x) { return std::asinh(x); }},
    {"Acosh", "cpu.acosh.plain", [](float x) { return std::acosh(x); }},
    {"Atanh", "cpu.atanh.plain", [](float x) { return std::atanh(x); }},
};

Prepared prepare_shrink(const OpCall& call, Device& device) {
  const auto bias = static_cast<float>(call.real("bias", 0));
  const auto limit = static_cast<float>(call.real("lambd", 0.5));
  return elementwise<float>(call, device, [bias, limit](float x) { return x < -limit ? x + bias : x > limit ? x - bias : 0.0F; });
}

Prepared prepare_is_inf(const OpCall& call, Device& device) {
  const bool above = call.integer("detect_positive", 1) != 0;
  const bool below = call.integer("detect_negative", 1) != 0;
  return elementwise<uint8_t>(call, device,
                              [above, below](float x) -> uint8_t { return std::isinf(x) && (x > 0 ? above : below) ? 1 : 0; });
}

}  // namespace

void add_plain_kernels(KernelTable& table) {
  for (const PlainOp& one : plain_ops) {
    table.add(one.op, {.name = one.kernel,
                       .supports = takes_floats,
                       .prepare = [function = one.function](
                                      const OpCall& call, Device& device) { return elementwise<float>(call, device, function); },
                       .in_place = true});
  }
  table.add("Shrink", {.name = "cpu.shrink.plain", .supports = takes_floats, .prepare = prepare_shrink, .in_place = true});
  table.add("IsNaN", {.name = "cpu.isnan.plain", .supports = takes_floats, .prepare = [](const OpCall& call, Device& device) {
                        return elementwise<uint8_t>(call, device, [](float x) -> uint8_t { return std::isnan(x) ? 1 : 0; });
                      }});
  table.add("IsInf", {.name = "cpu.isinf.plain", .supports = takes_floats, .prepare = prepare_is_inf});
}

}  // namespace unmoor::cpu
