#pragma once

#include <cstddef>
#include <cstdint>

namespace unmoor::cpu {

// A run of floats that belongs into a row of a packed panel.
struct PatchCopy {
  size_t from;   // From the channel's start.
  uint32_t to;   // Column.
  uint32_t count;
};

// Rows of a packed panel for one kernel tap: copies, by column; zero where there is none.
struct PatchTap {
  const PatchCopy* copies;
  size_t count;
};

// For each channel and tap, one row of `width` floats (whole vectors) at `to`, one after the other.
struct PatchPanel {
  const float* channel;
  size_t channel_step;
  size_t channels;
  const PatchTap* taps;
  size_t tap_count;
  size_t width;
  float* to;
};

struct PatchLoops {
  void (*pack)(const PatchPanel& panel);
};
const PatchLoops& patch_loops();

}  // namespace unmoor::cpu
