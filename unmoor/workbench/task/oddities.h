#pragma once

#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"

namespace unmoor {

// What could be odd about a sample, in numbers.
struct SampleTraits {
  size_t nan = 0, infinite = 0;           // Of its floating inputs.
  size_t output_nan = 0, output_infinite = 0;  // Of the target's outputs.
  double largest = 0;                     // |x| over floating inputs.
  double rms = 0;
  double low = 0, high = 0;
  size_t elements = 0;                    // Of all inputs: how long it is.
  bool constant = false;                  // All floating inputs hold one number each.
};

SampleTraits traits_of(const NamedData& inputs, const NamedData& outputs);

// What is odd about one sample against all, in words: NaN and infinities; a length, a largest number or a range beyond the
// quartiles by three times what lies between them; nothing but one number.
std::vector<std::string> oddities(const SampleTraits& sample, const std::vector<SampleTraits>& all);

}  // namespace unmoor
