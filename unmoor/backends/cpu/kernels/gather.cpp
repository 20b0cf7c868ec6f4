#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/walk.h"

namespace unmoor::cpu {

namespace {

struct Gather {
  size_t outer, count, run;  // run: bytes of what one index picks.
  int64_t length;            // Of the axis.
  bool wide;                 // int64 indices.
};

// Negative indices count from the end. Fails on what is out of range, before anything is read there.
size_t place(const Gather& g, const std::byte* indices, size_t i) {
  const int64_t index = g.wide ? reinterpret_cast<const int64_t*>(indices)[i] : reinterpret_cast<const int32_t*>(indices)[i];
  if (index < -g.length || index >= g.length) {
    fail(ErrorKind::InvalidArgument, "Gather: index ", index, " is outside of an axis of ", g.length);
  }
  return static_cast<size_t>(index < 0 ? index + g.length : index);
}

Support supports_gather(const OpCall& call) {
  if (element_bytes(call.input(0).dtype) == 0) {
    return no(Reason::DType, call.input(0).dtype);
  }
  return call.input(0).shape.rank() == 0 ? no(Reason::Rank, "a scalar") : input_is(call, 1, {DType::I64, DType::I32});
}

Prepared prepare_gather(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const size_t axis = shape.axis(call.integer("axis", 0));
  const Gather gather{static_cast<size_t>(shape.elements(0, axis)), static_cast<size_t>(call.input(1).shape.elements()),
                      static_cast<size_t>(shape.elements(axis + 1, shape.rank())) * element_bytes(call.input(0).dtype), shape[axis],
                      call.input(1).dtype == DType::I64};
  return {.run = [&machine = machine_of(device), g = gather](Stream&, const KernelArgs& args) {
    const std::byte* const x = args.inputs[0].host();
    const std::byte* const indices = args.inputs[1].host();
    std::byte* const y = args.outputs[0].host();
    machine.pool().ranges(g.outer * g.count, 65536 / (g.run + 16) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t from = i / g.count * static_cast<size_t>(g.length) + place(g, indices, i % g.count);
        if (g.run != 0) std::memcpy(y + i * g.run, x + from * g.run, g.run);
      }
    });
  }};
}

}  // namespace

void add_gather_kernels(KernelTable& table) {
  table.add("Gather", {.name = "cpu.gather.runs", .supports = supports_gather, .prepare = prepare_gather});
}

}  // namespace unmoor::cpu
