#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace unmoor::gpu {

// One axis that is resized.
struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;
  double region_start = 0;  // Of tf_crop_and_resize.
  double region_end = 1;
};

// Resize's attributes, as ONNX names their choices.
struct ResizeRule {
  std::string mode;
  std::string coordinates;
  std::string nearest;
  double cubic_a = -0.75;
  bool exclude_outside = false;
};

// For each place of the result, `taps` pairs of a place in the input and its weight. A negative place: outside of the input, where
// the extrapolation value stands.
struct ResizeTable {
  int64_t taps = 1;
  std::vector<double> numbers;
};

// The choice that no table can be made for, in words; empty if there is none.
std::string unknown_choice(const ResizeRule& rule);
ResizeTable resize_table(const ResizeAxis& axis, const ResizeRule& rule);

}  // namespace unmoor::gpu
