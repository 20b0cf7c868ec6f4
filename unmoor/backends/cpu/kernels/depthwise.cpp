#include <limits>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/plane.h"
#include "unmoor/backends/cpu/machine.h"

namespace unmoor::cpu {

namespace {

Window window_of_planes(const OpCall& call) {
  const std::vector<int64_t>& dims = call.input(1).shape.dims();
  return without_idle_strides(window_of(call, {dims.begin() + 2, dims.end()}));
}

Support supports_depthwise(const OpCall& call) {
  if (Support types = all_of(inputs_are(call, {DType::F32}), takes_window(call), known_activation(call)); !types) {
    return types;
  }
  if (call.integer("group", 1) != call.input(0).shape[1] || call.input(1).shape[1] != 1) {
    return no(Reason::Size, "groups of more than one channel");
  }
  const Shape& out = call.output(0).shape;
  if (call.has(3) && !(call.input(3).shape == out)) {
    return no(Reason::Size, "a residual of ", call.input(3).shape, " for a result of ", out);
  }
  return PlaneLayout::fits(window_of_planes(call));
}

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Depthwise {
  const Machine& machine;
  PlaneLayout layout;
  Epilogue epilogue;
  size_t multiple;  // Output channels for each input channel.
};

void run_depthwise(const Depthwise& d, const KernelArgs& args) {
  const auto input = [&](size_t i) { return i < args.inputs.size() ? reinterpret_cast<const float*>(args.inputs[i].host()) : nullptr; };
  const float* const x = input(0);
  const float* const weights = input(1);
  const float* const bias = input(2);
  const float* const residual = input(3);
  float* const y = reinterpret_cast<float*>(args.outputs[0].host());
  const Window& w = d.layout.window();
  const PlaneLoops& planes = plane_loops();
  const GemmLoops& loops = gemm_loops();
  const size_t grain = 65536 / (w.pixels() * w.taps() * d.multiple + 1) + 1;
  d.machine.pool().ranges(w.batch * w.channels, grain, [&](size_t begin, size_t end) {
    float* const plane = scratch(0, d.layout.plane_floats());
    float* const sums = scratch(1, d.layout.output_floats());
    d.layout.clear(plane);
    for (size_t i = begin; i < end; ++i) {
      d.layout.fill(x + i * w.h * w.w, plane);
      for (size_t j = 0; j < d.multiple; ++j) {
        const size_t channel = i % w.channels * d.multiple + j;
        const size_t at = (i * d.multiple + j) * w.pixels();
        planes.weighted(d.layout.windows(plane, sums), weights + channel * w.taps(), bias == nullptr ? 0.0F : bias[channel],
                        residual == nullptr ? d.epilogue.low : -infinity, residual == nullptr ? d.epilogue.high : infinity);
        d.layout.extract(sums, y + at);
        Epilogue epilogue = d.epilogue;
        if (residual != nullptr) epilogue.residual = residual + at;
        if (residual != nullptr || epilogue.activate != nullptr) loops.finish(y + at, w.pixels(), 1, w.pixels(), epilogue);
      }
    }
  });
}

Prepared prepare_depthwise(const OpCall& call, Device& device) {
  Depthwise depthwise{machine_of(device), PlaneLayout(window_of_planes(call), 0.0F), {},
                      static_cast<size_t>(call.input(1).shape[0] / call.input(0).shape[1])};
  set_activation(call, depthwise.epilogue);
  return {.run = [depthwise](Stream&, const KernelArgs& args) { run_depthwise(depthwise, args); }};
}

}  // namespace

void add_depthwise_kernels(KernelTable& table) {
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.depthwise", .supports = supports_depthwise, .prepare = prepare_depthwise});
  }
}

}  // namespace unmoor::cpu
