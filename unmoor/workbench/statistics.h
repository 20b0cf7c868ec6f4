#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// What is kept of a tensor whose elements are too many to keep. Over the finite elements, in float64.
struct ValueStatistics {
  TensorType type;
  size_t nan = 0;
  size_t positive_infinite = 0;
  size_t negative_infinite = 0;
  double low = 0;
  double high = 0;
  double mean = 0;
  double rms = 0;              // Root mean square.
  std::vector<double> sketch = {};  // sketch_size sums, below; empty for what is no number.
  std::string hash = {};       // SHA-256 of the bytes, row-major, little endian: equal only where all bits are.
};

// A count sketch (Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", 2002): element i is added to sum
// h mod sketch_size, or taken from it where the top bit of h is set; h is SplitMix64's mix of (i + 1)·0x9e3779b97f4a7c15. The
// sketch of a difference is the difference of the sketches, and its sum of squares is that of the difference in the mean, with a
// relative deviation of √(2/sketch_size) at most: an error of 12 %, thus 6 % of its root.
constexpr size_t sketch_size = 128;

ValueStatistics value_statistics(const Tensor& tensor);

// The estimated root mean square difference. Sizes are equal and both have a sketch.
double estimated_distance(const ValueStatistics& a, const ValueStatistics& b);

nlohmann::json statistics_json(const ValueStatistics& statistics);
// Fails with InvalidModel on what is no such object.
ValueStatistics statistics_from(const nlohmann::json& from);

}  // namespace unmoor
