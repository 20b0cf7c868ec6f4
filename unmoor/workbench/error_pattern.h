#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unmoor/workbench/error_plane.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

// Whether an error is random, as rounding is, or has a pattern. It describes a difference and judges none.
struct ErrorPattern {
  std::vector<std::string> fired;  // "bias", "shrink", "smooth", "edge" of systematic.h, or "plane"; empty if the error is as random as rounding.
  std::string text;                // The same in words: "systematic: …" or "random: …".
};

// The error of a target's floating value for wanted[output] of a region against 8 noise runs of it. Empty where there is no error,
// no noise model, or another shape. May be called from any thread. Fails with Stopped.
std::optional<ErrorPattern> error_pattern(const Region& region, size_t output, const Data& found, uint64_t seed);

// Two looks at one error, by noise runs and by where it lies in the tensor: it is systematic for both as soon as it is for one.
void agree(ErrorPattern& pattern, ErrorPlane& plane);

}  // namespace unmoor
