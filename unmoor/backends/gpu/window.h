#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "unmoor/hal/support.h"

namespace unmoor::gpu {

// A window that moves over a picture: by axis (height, width). One-dimensional data is a picture of height 1.
struct Window {
  int64_t batch = 1;
  int64_t channels = 1;  // Of the input.
  std::array<int64_t, 2> in{1, 1};
  std::array<int64_t, 2> out{1, 1};
  std::array<int64_t, 2> kernel{1, 1};
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 2> dilation{1, 1};
  std::array<int64_t, 2> before{0, 0};  // Padding at the beginnings.
  std::array<int64_t, 2> after{0, 0};
};

// Input 0 has one or two spatial axes, and the layout is NCHW.
Support is_picture(const OpCall& call);
// From the attributes strides, dilations, pads and auto_pad, and `kernel`, or the attribute kernel_shape where that is empty.
Window window_of(const OpCall& call, const std::vector<int64_t>& kernel);
// Places reach into the padding in 32 bits, and one work-item walks all taps.
Support window_fits(const Window& window);

}  // namespace unmoor::gpu
