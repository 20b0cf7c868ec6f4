#include <algorithm>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/rows.h"

namespace unmoor::cpu {

namespace {

Support supports_softmax(const OpCall& call) {
  if (Support types = inputs_are(call, {DType::F32}); !types) {
    return types;
  }
  return call.input(0).shape.rank() == 0 ? no(Reason::Rank, "a scalar") : yes();
}

Prepared prepare_softmax(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const size_t axis = shape.axis(call.integer("axis", -1));
  const auto outer = static_cast<size_t>(shape.elements(0, axis));
  const auto length = static_cast<size_t>(shape[axis]);
  const auto inner = static_cast<size_t>(shape.elements(axis + 1, shape.rank()));
  const bool logarithm = call.node.op == "LogSoftmax";
  return {.run = [&machine = machine_of(device), &loops = row_loops(), outer, length, inner, logarithm](Stream&, const KernelArgs& args) {
    const float* const x = reinterpret_cast<const float*>(args.inputs[0].host());
    float* const y = reinterpret_cast<float*>(args.outputs[0].host());
    if (outer * length * inner == 0) return;
    if (inner == 1) {
      machine.pool().ranges(outer, 4096 / length + 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) (logarithm ? loops.log_softmax : loops.softmax)(x + i * length, y + i * length, length);
      });
      return;
    }
    constexpr size_t most = 256;  // Columns at a time.
    const size_t parts = (inner + most - 1) / most;
    machine.pool().ranges(outer * parts, 4096 / (length * std::min(inner, most)) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t column = i % parts * most;
        const size_t at = i / parts * length * inner + column;
        loops.softmax_columns(x + at, y + at, length, inner, std::min(most, inner - column), logarithm, scratch(0, 2 * most));
      }
    });
  }};
}

}  // namespace

void add_softmax_kernels(KernelTable& table) {
  table.add("Softmax", {.name = "cpu.softmax.row", .supports = supports_softmax, .prepare = prepare_softmax, .in_place = true});
  table.add("LogSoftmax", {.name = "cpu.logsoftmax.row", .supports = supports_softmax, .prepare = prepare_softmax, .in_place = true});
}

}  // namespace unmoor::cpu
