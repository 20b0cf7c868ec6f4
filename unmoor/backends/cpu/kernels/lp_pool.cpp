#include <algorithm>
#include <cmath>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/plane.h"
#include "unmoor/backends/cpu/machine.h"

namespace unmoor::cpu {

namespace {

Window pool_window(const OpCall& call) { return without_idle_strides(window_of(call, call.integers("kernel_shape"))); }

Support supports_lp(const OpCall& call) {
  const Support takes = all_of(inputs_are(call, {DType::F32}), takes_window(call));
  return takes ? PlaneLayout::fits(pool_window(call)) : takes;
}

void raise(const float* x, float* y, size_t n, float p) {
  if (p == 1.0F) {
    for (size_t i = 0; i < n; ++i) y[i] = std::fabs(x[i]);
  } else if (p == 2.0F) {
    for (size_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
  } else {
    for (size_t i = 0; i < n; ++i) y[i] = std::pow(std::fabs(x[i]), p);
  }
}

void root(float* y, size_t n, float p) {
  if (p == 1.0F) return;
  if (p == 2.0F) {
    for (size_t i = 0; i < n; ++i) y[i] = std::sqrt(y[i]);
  } else {
    for (size_t i = 0; i < n; ++i) y[i] = std::pow(y[i], 1.0F / p);
  }
}

// The root of sums of powers: sums as an average pool makes them, over planes of powers.
Prepared prepare_lp(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), layout = PlaneLayout(pool_window(call), 0.0F),
                  p = static_cast<float>(call.integer("p", 2))](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    const Window& w = layout.window();
    machine.pool().ranges(w.batch * w.channels, 65536 / (w.pixels() * w.taps() + 1) + 1, [&](size_t begin, size_t end) {
      float* const plane = scratch(0, layout.plane_floats());
      float* const sums = scratch(1, layout.output_floats());
      float* const powers = scratch(2, w.h * w.w);
      layout.clear(plane);
      for (size_t i = begin; i < end; ++i) {
        raise(x + i * w.h * w.w, powers, w.h * w.w, p);
        layout.fill(powers, plane);
        plane_loops().sum(layout.windows(plane, sums));
        layout.extract(sums, y + i * w.pixels());
        root(y + i * w.pixels(), w.pixels(), p);
      }
    });
  }};
}

}  // namespace

void add_lp_pool_kernels(KernelTable& table) {
  table.add("LpPool", {.name = "cpu.lppool.plane", .supports = supports_lp, .prepare = prepare_lp});
}

}  // namespace unmoor::cpu
