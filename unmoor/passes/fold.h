#pragma once

#include <cstddef>

#include "unmoor/passes/rewrite.h"

namespace unmoor {

// What a node may cost to be computed ahead of time.
struct FoldLimits {
  size_t output_bytes = 65536;        // A result of up to this many bytes is always welcome.
  double growth = 0;                  // A larger one too if it is at most so many times its inputs.
  size_t input_bytes = size_t{1} << 24;
  double flop = 1e8;
};

// Computes a node whose inputs are all constants, or that asks only for a known shape, by its operator's reference: its outputs become
// constants and the node goes. False if it cannot, may not or fails: then it stays, and says what is wrong when it runs.
bool fold_node(Rewriter& r, NodeId id, const FoldLimits& limits);

}  // namespace unmoor
