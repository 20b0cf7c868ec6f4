#include "unmoor/backends/cpu/kernels/channels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/ops/window.h"

namespace unmoor::cpu {

ChannelRow ChannelRows::at(size_t i) {
  const size_t image = i / w_.out_h;
  const auto top = static_cast<int64_t>(i % w_.out_h * w_.stride_h) - w_.pad_top;
  for (size_t ky = 0; ky < w_.kernel_h; ++ky) {
    const int64_t row = top + static_cast<int64_t>(ky * w_.dilation_h);
    const bool inside = row >= 0 && row < static_cast<int64_t>(w_.h);
    rows_.at(ky) = inside ? x_ + (image * w_.h + static_cast<size_t>(row)) * w_.w * w_.channels : nullptr;
  }
  return {rows_.data(), w_.kernel_h, w_.kernel_w, w_.stride_w, w_.dilation_w, w_.pad_left, w_.w, w_.out_w, w_.channels, y_ + i * w_.out_w * w_.channels};
}

Support takes_channel_rows(const OpCall& call, const Window& window) {
  if (Support layout = takes_window_last(call); !layout) return layout;
  return window.kernel_h <= most_kernel_rows ? yes() : no(Reason::Size, "a kernel of ", window.kernel_h, " rows, not up to ", most_kernel_rows);
}

namespace {

Support supports_depthwise(const OpCall& call) {
  if (Support takes = all_of(takes_convolution(call), takes_channel_rows(call, window_of_weights(call))); !takes) {
    return takes;
  }
  const int64_t channels = canonical(call, call.input(0).shape)[1];
  const bool single = call.integer("group", 1) == channels && call.input(1).shape[1] == 1 && call.input(1).shape[0] == channels;
  return single ? yes() : no(Reason::Size, "groups of more than one channel");
}

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Depthwise {
  const Machine& machine;
  Window window;
  Epilogue epilogue;
  Packed weights = nullptr;  // [tap][channel].
};

// Pieces of about so many products, in rows.
size_t grain_of(const Window& w) { return 65536 / (w.out_w * w.channels * w.taps() + 1) + 1; }

void run_depthwise(const Depthwise& d, const KernelArgs& args) {
  const ConvOperands o(args);
  const bool later = o.residual != nullptr;  // The activation comes behind the residual.
  const size_t row_floats = d.window.out_w * d.window.channels;
  d.machine.pool().ranges(d.window.batch * d.window.out_h, grain_of(d.window), [&](size_t begin, size_t end) {
    ChannelRows rows(d.window, o.x, o.y);
    for (size_t i = begin; i < end; ++i) {
      const ChannelRow row = rows.at(i);
      channel_loops().depthwise({row, floats_of(d.weights), o.bias, later ? -infinity : d.epilogue.low, later ? infinity : d.epilogue.high});
      if (!later && d.epilogue.activate == nullptr) continue;
      Epilogue epilogue = d.epilogue;
      if (later) epilogue.residual = o.residual + i * row_floats;
      gemm_loops().finish(row.y, row_floats, 1, row_floats, epilogue);
    }
  });
}

Prepared prepare_depthwise(const OpCall& call, Device& device) {
  Depthwise depthwise{machine_of(device), window_of_weights(call), {}};
  set_activation(call, depthwise.epilogue);
  const Tensor& weights = *call.constant(1);
  const size_t channels = depthwise.window.channels;
  const size_t taps = depthwise.window.taps();
  depthwise.weights = depthwise.machine.weights().get(weights, cat("taps of ", channels, " channels"), channels * taps, [&](float* to) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t t = 0; t < taps; ++t) std::memcpy(to + t * channels + c, weights.bytes().data() + (c * taps + t) * sizeof(float), sizeof(float));
    }
  });
  return {.run = [depthwise](Stream&, const KernelArgs& args) { run_depthwise(depthwise, args); }, .unused_inputs = without_weights(call)};
}

}  // namespace

void add_last_depthwise_kernels(KernelTable& table) {
  add_dot_conv_kernels(table);  // A depthwise convolution of one channel is such a one.
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.depthwise.last", .supports = supports_depthwise, .prepare = prepare_depthwise});
  }
}

}  // namespace unmoor::cpu
