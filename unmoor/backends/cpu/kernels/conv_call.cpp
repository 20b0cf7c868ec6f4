#include <algorithm>
#include <cstring>

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

std::vector<float> weights_by_tap(const Tensor& weights, size_t group, size_t outputs, size_t channels, size_t taps) {
  std::vector<float> rows(taps * channels * outputs);
  const std::byte* from = weights.bytes().data() + group * rows.size() * sizeof(float);
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t t = 0; t < taps; ++t, from += sizeof(float)) std::memcpy(&rows[(t * channels + c) * outputs + o], from, sizeof(float));
    }
  }
  return rows;
}

void gather_pixels(const Window& w, size_t groups, const float* x, size_t group, const PixelRange& pixels, size_t row_step, float* to) {
  const size_t channels = w.channels / groups;
  // Taps next to each other in memory are copied together.
  const size_t run = w.dilation_w == 1 && groups == 1 ? w.kernel_w : 1;
  for (size_t row = pixels.begin; row < pixels.end; ++row, to += row_step) {
    const size_t image = row / w.pixels();
    const auto top = static_cast<int64_t>(row % w.pixels() / w.out_w * w.stride_h) - w.pad_top;
    const auto left = static_cast<int64_t>(row % w.out_w * w.stride_w) - w.pad_left;
    float* out = to;
    for (size_t ky = 0; ky < w.kernel_h; ++ky) {
      const int64_t y = top + static_cast<int64_t>(ky * w.dilation_h);
      const bool inside = y >= 0 && y < static_cast<int64_t>(w.h);
      const float* const line = x + (image * w.h + static_cast<size_t>(inside ? y : 0)) * w.w * w.channels + group * channels;
      for (size_t kx = 0; kx < w.kernel_w; kx += run, out += run * channels) {
        const int64_t first = left + static_cast<int64_t>(kx * w.dilation_w);
        const int64_t from = std::clamp<int64_t>(first, 0, static_cast<int64_t>(w.w));
        const int64_t last = std::clamp<int64_t>(first + static_cast<int64_t>(run), from, static_cast<int64_t>(w.w));
        const size_t before = inside ? std::min(static_cast<size_t>(from - first), run) * channels : run * channels;
        const size_t count = inside ? static_cast<size_t>(last - from) * channels : 0;
        std::fill_n(out, before, 0.0F);
        if (count > 0) std::memcpy(out + before, line + static_cast<size_t>(from) * w.channels, count * sizeof(float));
        std::fill(out + before + count, out + run * channels, 0.0F);
      }
    }
  }
}

}  // namespace unmoor::cpu
