#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace unmoor {

// A box with its corners (x1, y1, x2, y2), in whatever unit all of them have.
struct Box {
  std::array<double, 4> corners{};
  int64_t label = 0;
  double score = 1;
};

double overlap_of(const Box& a, const Box& b);  // Area of both by area of either; 0 of boxes without an area.

// The mean average precision as COCO takes it: over classes that have a true box, and over the least overlaps 0.50, 0.55, … 0.95,
// the precision at 101 recalls. Images are added one by one.
class MeanPrecision {
 public:
  void add(const std::vector<Box>& found, const std::vector<Box>& truth);
  double value() const;  // 0 without a true box.

 private:
  static constexpr size_t thresholds = 10;
  struct Hit {
    double score = 0;
    std::array<bool, thresholds> right{};
  };
  struct Class {
    std::vector<Hit> hits;
    size_t truth = 0;
  };
  std::map<int64_t, Class> classes_;
};

}  // namespace unmoor
