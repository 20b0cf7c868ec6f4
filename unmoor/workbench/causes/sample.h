#pragma once

#include <optional>
#include <span>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor::causes {

// A smaller call whose results are some of the whole one's.
struct Sample {
  std::vector<Data> inputs;
  std::vector<size_t> elements;  // By element of the smaller result: its place in the whole one.
};

// Fewer rows, channels, heads or batch items, evenly spaced and with that of `worst`, an element of the output, so that one
// evaluation costs about `flop` or less. Empty where the call is small enough already, or where its results depend on one another
// in a way that is not known here: then it must be evaluated as a whole. `inputs` as many as the call has; every shape is known.
// First outputs only.
std::optional<Sample> sampled(const OpCall& call, std::span<const Data> inputs, double flop, size_t worst);

}  // namespace unmoor::causes
