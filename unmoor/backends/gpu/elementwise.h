#pragma once

#include <string>
#include <vector>

#include "unmoor/backends/gpu/kernels.h"

namespace unmoor::gpu {

// A kernel made from an expression in C over the elements a, b, c … of the inputs (broadcast to the output) and the numbers p, q.
// REAL and R(…) may be used where the output or the first input is floating.
struct Elementwise {
  std::string label;                 // Names the kernel: "relu".
  std::string expression;            // "a > 0 ? a : 0"
  std::vector<DType> input_types;    // Of the inputs that are there, in order.
  std::vector<size_t> inputs;        // Which of the call's inputs they are.
  DType output_type = DType::F32;
  double p = 0;
  double q = 0;
};

// The launch that computes output 0.
Launch elementwise(const Elementwise& what, const OpCall& call);
// The call's inputs and output can be walked together.
Support can_broadcast(const OpCall& call);

}  // namespace unmoor::gpu
