#pragma once

#include <array>

#include "unmoor/backends/cpu/kernels/window.h"
#include "unmoor/backends/cpu/simd/channels.h"

namespace unmoor::cpu {

constexpr size_t most_kernel_rows = 64;

// Rows of output pixels of a channels-last window, one after the other.
class ChannelRows {
 public:
  ChannelRows(const Window& window, const float* x, float* y) : w_(window), x_(x), y_(y) {}

  size_t count() const { return w_.batch * w_.out_h; }
  // Row i of all images' outputs. Valid until the next call.
  ChannelRow at(size_t i);

 private:
  const Window& w_;
  const float* x_;
  float* y_;
  std::array<const float*, most_kernel_rows> rows_{};
};

// What the loops over channels take: channels last, kernels of up to most_kernel_rows rows.
Support takes_channel_rows(const OpCall& call, const Window& window);

}  // namespace unmoor::cpu
