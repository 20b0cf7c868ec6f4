#pragma once

#include <span>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// Inputs on which causes differ that recorded inputs leave alike: a wide range of magnitudes, values at float16's limits, ties
// between two steps, both zeros, denormals, negative values, a mean far above the deviation and rows that hardly vary, masks of
// -infinity, NaN for what compares. Each set has the call's inputs in order, in its dtypes. What is varied are floats that are no
// constants and no scales, statistics or tables; everything else, integers with them, is as recorded. Seeded: the same call and
// seed give the same values. Empty if nothing can be varied.
std::vector<std::vector<Data>> probing_inputs(const OpCall& call, std::span<const Data> recorded, uint64_t seed);

}  // namespace unmoor
