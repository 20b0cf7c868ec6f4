#pragma once

#include "unmoor/hal/support.h"

namespace unmoor::cpu {

// A convolution's or pool's window over planes [h,w]. One spatial dimension is w, with h = 1.
struct Window {
  size_t batch = 1, channels = 1;
  size_t h = 1, w = 1;                // Input.
  size_t out_h = 1, out_w = 1;
  size_t kernel_h = 1, kernel_w = 1;
  size_t stride_h = 1, stride_w = 1;
  size_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;  // What lies behind the other edges follows from the output.

  size_t taps() const { return kernel_h * kernel_w; }
  size_t pixels() const { return out_h * out_w; }
};

// Whether input 0 is [N,C,W] or [N,C,H,W], channels first; or [N,W,C] or [N,H,W,C], channels last.
Support takes_window(const OpCall& call);
Support takes_window_last(const OpCall& call);
// For a call that takes_window; `kernel` is the kernel's spatial shape.
Window window_of(const OpCall& call, const std::vector<int64_t>& kernel);
// The same window where strides of axes with one result, which never step, are 1: they may be larger than any memory.
Window without_idle_strides(Window window);

// Along one axis: the input position of output 0 at tap `tap`, as (phase, shift): position(o) = (o + shift) * stride + phase,
// 0 <= phase < stride. Splitting an input axis by phase makes every tap step by one.
struct Tap {
  size_t phase;
  int64_t shift;
};
Tap tap_of(size_t tap, size_t dilation, size_t stride, int64_t pad);

}  // namespace unmoor::cpu
