#pragma once

#include <span>

#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

// Whether the node does the same with each row of its first input's first dimension, the only input that is not exact, and all
// its copies are there: products. False where the rows are so many that they had better not be copied.
bool can_stack(const Node& node, std::span<const Sampled> in);

// Output 0 of such a node: one run on the rows of the exact first input and of all its copies, in which weights are read once.
// Fails as the operator does.
Sampled run_stacked(const Node& node, std::span<const Sampled> in);

}  // namespace unmoor
