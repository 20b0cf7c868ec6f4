#include "unmoor/backends/gpu/window.h"

#include <algorithm>

namespace unmoor::gpu {
namespace {

// The values of an attribute as (height, width).
std::array<int64_t, 2> pair_of(const std::vector<int64_t>& values, int64_t otherwise) {
  if (values.empty()) return {otherwise, otherwise};
  if (values.size() == 1) return {otherwise, values[0]};
  return {values[0], values[1]};
}

// Padding that makes the output as large as it is, the odd one at the end (SAME_UPPER) or at the beginning.
void pad_to_same(Window& window, bool upper) {
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (window.out[axis] - 1) * window.stride[axis] + (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    const int64_t total = std::max<int64_t>(reach - window.in[axis], 0);
    window.before[axis] = upper ? total / 2 : total - total / 2;
    window.after[axis] = total - window.before[axis];
  }
}

}  // namespace

Support is_picture(const OpCall& call) {
  const auto rank = call.input(0).shape.rank();
  if (rank != 3 && rank != 4) return no(Reason::Rank, "input 0 has rank ", rank, ", not 3 or 4");
  for (const char* const key : {"strides", "dilations", "kernel_shape"}) {
    for (const auto value : call.integers(key)) {
      if (value < 1) return no(Reason::Attribute, key, " holds ", value);
    }
  }
  const auto layout = call.text("layout", "NCHW");
  return layout == "NCHW" ? yes() : no(Reason::Layout, "the layout is ", layout, ", not NCHW");
}

Window window_of(const OpCall& call, const std::vector<int64_t>& kernel) {
  const auto& shape = call.input(0).shape;
  const auto spatial = [](const Shape& of) { return pair_of(std::vector<int64_t>(of.dims().begin() + 2, of.dims().end()), 1); };
  Window window;
  window.batch = shape[0];
  window.channels = shape[1];
  window.in = spatial(shape);
  window.out = spatial(call.output(0).shape);
  window.kernel = pair_of(kernel.empty() ? call.integers("kernel_shape") : kernel, 1);
  window.stride = pair_of(call.integers("strides"), 1);
  window.dilation = pair_of(call.integers("dilations"), 1);
  const auto pads = call.integers("pads");
  if (pads.size() == 2) {
    window.before = {0, pads[0]};
    window.after = {0, pads[1]};
  } else if (pads.size() == 4) {
    window.before = {pads[0], pads[1]};
    window.after = {pads[2], pads[3]};
  }
  const auto automatic = call.text("auto_pad", "NOTSET");
  if (automatic == "VALID") window.before = window.after = {0, 0};
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") pad_to_same(window, automatic == "SAME_UPPER");
  return window;
}

Support window_fits(const Window& window) {
  constexpr int64_t most_reach = (int64_t{1} << 31) - 1;
  constexpr int64_t most_taps = int64_t{1} << 20;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (window.out[axis] - 1) * window.stride[axis] + (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    const int64_t padded = window.in[axis] + window.before[axis] + window.after[axis];
    if (std::max(reach, padded) > most_reach) return no(Reason::Size, "a window over ", std::max(reach, padded), " places with padding");
  }
  const int64_t taps = window.kernel[0] * window.kernel[1];
  return taps <= most_taps ? yes() : no(Reason::Size, "a window of ", taps, " taps, more than ", most_taps);
}

}  // namespace unmoor::gpu
