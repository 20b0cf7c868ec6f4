#include <algorithm>
#include <limits>

#include "unmoor/backends/cpu/kernels/channels.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/plane.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/arithmetic.h"
#include "unmoor/backends/cpu/simd/rows.h"

namespace unmoor::cpu {

namespace {

Window window_of_planes(const OpCall& call) { return without_idle_strides(window_of(call, call.integers("kernel_shape"))); }

Support supports_pool(const OpCall& call) {
  if (Support types = all_of(inputs_are(call, {DType::F32}), takes_window(call)); !types) {
    return types;
  }
  return call.wants_output(1) ? no(Reason::Attribute, "output Indices") : PlaneLayout::fits(window_of_planes(call));
}

// Window positions of output `out` that lie in [low, high).
size_t inside(size_t out, size_t kernel, size_t stride, size_t dilation, int64_t pad, int64_t low, int64_t high) {
  size_t count = 0;
  for (size_t tap = 0; tap < kernel; ++tap) {
    const int64_t at = static_cast<int64_t>(out * stride + tap * dilation) - pad;
    count += at >= low && at < high ? 1 : 0;
  }
  return count;
}

// One over how many elements an average is of, by output pixel. Padding counts only if it is asked for; what ceil_mode lets hang
// over the padding never does.
std::vector<float> averaging(const OpCall& call, const Window& w) {
  const bool pads_count = call.integer("count_include_pad", 0) != 0;
  const size_t spatial = call.input(0).shape.rank() - 2;  // The batch and the channels apart, wherever they stand.
  std::vector<int64_t> pads = call.integers("pads");
  if (pads.empty()) pads.assign(2 * spatial, 0);
  const bool explicit_pads = call.text("auto_pad", "NOTSET") == "NOTSET";
  const auto high = [&](size_t size, size_t axis, size_t out, size_t stride, size_t kernel, size_t dilation, int64_t pad) {
    if (!pads_count) return static_cast<int64_t>(size);
    if (explicit_pads) return static_cast<int64_t>(size) + pads[spatial + axis];
    return static_cast<int64_t>((out - 1) * stride + (kernel - 1) * dilation + 1) - pad;
  };
  const int64_t high_w = high(w.w, spatial - 1, w.out_w, w.stride_w, w.kernel_w, w.dilation_w, w.pad_left);
  const int64_t high_h = spatial == 1 ? 1 : high(w.h, 0, w.out_h, w.stride_h, w.kernel_h, w.dilation_h, w.pad_top);
  std::vector<float> scale;
  scale.reserve(w.pixels());
  for (size_t oy = 0; oy < w.out_h; ++oy) {
    const size_t rows = inside(oy, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, pads_count ? -w.pad_top : 0, high_h);
    for (size_t ox = 0; ox < w.out_w; ++ox) {
      const size_t columns = inside(ox, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, pads_count ? -w.pad_left : 0, high_w);
      scale.push_back(1.0F / static_cast<float>(std::max<size_t>(rows * columns, 1)));
    }
  }
  return scale;
}

Prepared prepare_pool(const OpCall& call, Device& device) {
  const bool largest = call.node.op == "MaxPool";
  const Window window = window_of_planes(call);
  return {.run = [&machine = machine_of(device), layout = PlaneLayout(window, largest ? -std::numeric_limits<float>::infinity() : 0.0F), largest,
                  scale = largest ? std::vector<float>() : averaging(call, window)](Stream&, const KernelArgs& args) {
    const float* const x = reinterpret_cast<const float*>(args.inputs[0].host());
    float* const y = reinterpret_cast<float*>(args.outputs[0].host());
    const Window& w = layout.window();
    const PlaneLoops& planes = plane_loops();
    machine.pool().ranges(w.batch * w.channels, 65536 / (w.pixels() * w.taps() + 1) + 1, [&](size_t begin, size_t end) {
      float* const plane = scratch(0, layout.plane_floats());
      float* const sums = scratch(1, layout.output_floats());
      layout.clear(plane);
      for (size_t i = begin; i < end; ++i) {
        layout.fill(x + i * w.h * w.w, plane);
        (largest ? planes.largest : planes.sum)(layout.windows(plane, sums));
        float* const out = y + i * w.pixels();
        layout.extract(sums, out);
        if (!largest) arithmetic_loops().multiply({out, scale.data(), out, w.pixels(), true, true});
      }
    });
  }};
}

Support supports_last(const OpCall& call) {
  if (Support types = all_of(inputs_are(call, {DType::F32}), takes_channel_rows(call, window_of_planes(call))); !types) {
    return types;
  }
  return call.wants_output(1) ? no(Reason::Attribute, "output Indices") : yes();
}

Prepared prepare_last(const OpCall& call, Device& device) {
  const bool largest = call.node.op == "MaxPool";
  const Window window = window_of_planes(call);
  return {.run = [&machine = machine_of(device), window, largest,
                  scale = largest ? std::vector<float>() : averaging(call, window)](Stream&, const KernelArgs& args) {
    const auto* const x = reinterpret_cast<const float*>(args.inputs[0].host());
    auto* const y = reinterpret_cast<float*>(args.outputs[0].host());
    const size_t grain = 65536 / (window.out_w * window.channels * window.taps() + 1) + 1;
    machine.pool().ranges(window.batch * window.out_h, grain, [&](size_t begin, size_t end) {
      ChannelRows rows(window, x, y);
      for (size_t i = begin; i < end; ++i) {
        const ChannelRow row = rows.at(i);
        (largest ? channel_loops().largest : channel_loops().sum)(row);
        for (size_t j = 0; !largest && j < window.out_w; ++j) {
          float* const pixel = row.y + j * window.channels;
          row_loops().affine(pixel, pixel, window.channels, scale[i % window.out_h * window.out_w + j], 0);
        }
      }
    });
  }};
}

}  // namespace

void add_pool_kernels(KernelTable& table) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    table.add(op, {.name = op == std::string_view("MaxPool") ? "cpu.maxpool.plane" : "cpu.averagepool.plane", .supports = supports_pool,
                   .prepare = prepare_pool});
    table.add(op, {.name = op == std::string_view("MaxPool") ? "cpu.maxpool.last" : "cpu.averagepool.last", .supports = supports_last,
                   .prepare = prepare_last});
  }
}

}  // namespace unmoor::cpu
