#pragma once

#include <cstddef>

namespace unmoor::cpu {

// Windows that lie in memory as runs of floats, times weights that lie likewise.
struct Dots {
  const float* x = nullptr;  // The first window.
  size_t x_step = 0;         // From window to window.
  size_t x_run = 0;          // From run to run of a window.
  const float* w = nullptr;
  size_t w_step = 0;  // From output to output.
  size_t w_run = 0;
  size_t runs = 0;
  size_t run = 0;  // Floats of each.
};

struct DotLoops {
  // to[i * outputs + o] = the sum of window i times the weights of output o, for i < windows, o < outputs.
  void (*multiply)(const Dots& dots, size_t windows, size_t outputs, float* to);
};
const DotLoops& dot_loops();

}  // namespace unmoor::cpu
