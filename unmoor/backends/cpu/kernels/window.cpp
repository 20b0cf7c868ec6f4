#include "unmoor/backends/cpu/kernels/window.h"

#include <algorithm>

#include "unmoor/ops/window.h"

namespace unmoor::cpu {

namespace {

Support takes_layout(const OpCall& call, std::string_view wanted) {
  const size_t rank = call.input(0).shape.rank();
  if (rank != 3 && rank != 4) {
    return no(Reason::Rank, "an input of ", rank, " dimensions, not 3 or 4");
  }
  if (call.output(0).shape.elements() == 0) {
    return no(Reason::Size, "an empty result");
  }
  const std::string layout = call.text("layout", "NCHW");
  return layout == wanted ? yes() : no(Reason::Layout, layout);
}

}  // namespace

Support takes_window(const OpCall& call) { return takes_layout(call, "NCHW"); }
Support takes_window_last(const OpCall& call) { return takes_layout(call, "NHWC"); }

namespace {

// Padding before an axis.
int64_t pad_before(const OpCall& call, const std::string& auto_pad, size_t axis, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation) {
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const int64_t total = std::max<int64_t>((out - 1) * stride + (kernel - 1) * dilation + 1 - in, 0);
    return auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  const std::vector<int64_t> pads = call.integers("pads");
  return auto_pad == "VALID" || pads.empty() ? 0 : pads.at(axis);
}

// An attribute that may be missing or empty.
std::vector<int64_t> ones_or(std::vector<int64_t> values, size_t count) {
  return values.empty() ? std::vector<int64_t>(count, 1) : std::move(values);
}

}  // namespace

Window window_of(const OpCall& call, const std::vector<int64_t>& kernel) {
  const Shape in = canonical(call, call.input(0).shape);
  const Shape out = canonical(call, call.output(0).shape);
  const size_t spatial = in.rank() - 2;
  const std::vector<int64_t> strides = ones_or(call.integers("strides"), spatial);
  const std::vector<int64_t> dilations = ones_or(call.integers("dilations"), spatial);
  const std::string auto_pad = call.text("auto_pad", "NOTSET");
  Window window;
  window.batch = static_cast<size_t>(in[0]);
  window.channels = static_cast<size_t>(in[1]);
  for (size_t i = 0; i < spatial; ++i) {
    const bool is_w = i + 1 == spatial;
    const int64_t pad = pad_before(call, auto_pad, i, in[i + 2], out[i + 2], kernel.at(i), strides.at(i), dilations.at(i));
    (is_w ? window.w : window.h) = static_cast<size_t>(in[i + 2]);
    (is_w ? window.out_w : window.out_h) = static_cast<size_t>(out[i + 2]);
    (is_w ? window.kernel_w : window.kernel_h) = static_cast<size_t>(kernel[i]);
    (is_w ? window.stride_w : window.stride_h) = static_cast<size_t>(strides[i]);
    (is_w ? window.dilation_w : window.dilation_h) = static_cast<size_t>(dilations[i]);
    (is_w ? window.pad_left : window.pad_top) = pad;
  }
  return window;
}

Window without_idle_strides(Window window) {
  if (window.out_h == 1) window.stride_h = 1;
  if (window.out_w == 1) window.stride_w = 1;
  return window;
}

Tap tap_of(size_t tap, size_t dilation, size_t stride, int64_t pad) {
  const int64_t at = static_cast<int64_t>(tap * dilation) - pad;
  const auto s = static_cast<int64_t>(stride);
  const int64_t phase = (at % s + s) % s;
  return {static_cast<size_t>(phase), (at - phase) / s};
}

}  // namespace unmoor::cpu
