#pragma once

#include <cstdint>
#include <vector>

#include "unmoor/backends/cpu/kernels/integers.h"
#include "unmoor/ops/convolve.h"

namespace unmoor::cpu {

// Where ConvInteger and QLinearConv have things.
struct IntegerConvPlaces {
  size_t x, x_zero, w, w_zero;
  bool quantized;
};
IntegerConvPlaces integer_conv_places(const OpCall& call);

struct IntegerConv {
  IntegerConvPlaces at;
  Convolution convolution;
  size_t group = 1, channels = 0, outputs = 0, taps = 0, plane = 0, positions = 0, depth = 0;  // channels, outputs: of one group.
  bool last = false;                                                                           // Channels last.
  Bytes x, x_zero, y;
  std::vector<int64_t> offsets;  // [positions, taps]: in the plane, or -1 in the padding.
  std::vector<int16_t> weights;  // [group * outputs, depth], without zero points; zeros fill the rows.
  size_t scales = 0;             // Of w.
};

Support supports_integer_conv(const OpCall& call);
// Rows of weights are `depth` long, at least channels * taps of one group.
IntegerConv integer_conv_of(const OpCall& call, size_t (*depth)(size_t));

// Positions of one group of one item.
struct IntegerConvBlock {
  size_t item, group, first, count;
};
// Puts sums [outputs, count], rows so far apart, where they belong.
void finish_integer_conv(const IntegerConv& c, const KernelArgs& args, const IntegerConvBlock& block, const int32_t* sums,
                         size_t stride);

// The kernel that multiplies bytes of the image in panels.
Kernel integer_conv_by_bytes(std::string name);

}  // namespace unmoor::cpu
