#pragma once

#include <cstddef>

namespace unmoor::cpu {

// A row of output pixels of a window that slides over an image whose pixels hold their channels next to each other.
struct ChannelRow {
  const float* const* rows;  // By kernel row: the image's row that it meets, or null outside of the image.
  size_t kernel_h;
  size_t kernel_w;
  size_t stride;             // Along the row, as dilation and pad.
  size_t dilation;
  long pad;
  size_t width;              // Pixels in an input row.
  size_t out_width;
  size_t channels;
  float* y;                  // out_width pixels.
  size_t y_step = 0;         // Floats from one to the next of them. 0: their channels lie without gaps.
};

// Sums of products, one kernel a channel: weights lie [tap][channel].
struct DepthwiseRow {
  ChannelRow row;
  const float* weights;
  const float* bias;  // Null if there is none.
  float low;          // Results outside of [low, high] become the nearer end.
  float high;
};

struct ChannelLoops {
  void (*depthwise)(const DepthwiseRow& row);
  void (*largest)(const ChannelRow& row);
  void (*sum)(const ChannelRow& row);
};
const ChannelLoops& channel_loops();

}  // namespace unmoor::cpu
