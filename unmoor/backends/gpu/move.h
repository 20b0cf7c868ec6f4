#pragma once

#include "unmoor/backends/gpu/kernels.h"

namespace unmoor::gpu {

// Elements that go from an input to an output along a walk of two operands, from, to.
struct Move {
  Walk walk;
  size_t element_bytes = 4;
  size_t input = 0;
  size_t output = 0;
  int64_t input_first = 0;  // Elements to start from.
  int64_t output_first = 0;
};

Launch move(const Move& what);
// Output 0 gets the bytes of input 0, and no other input is read.
Prepared copied(const OpCall& call);
// The input's elements are whole bytes that one load moves.
Support moves_bytes(const OpCall& call, size_t input);
// The walk has no more axes than the kernel.
Support walks(const Walk& walk);

}  // namespace unmoor::gpu
