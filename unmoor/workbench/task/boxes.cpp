#include "unmoor/workbench/task/boxes.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

namespace unmoor {
namespace {

double area_of(const std::array<double, 4>& c) { return std::max(0.0, c[2] - c[0]) * std::max(0.0, c[3] - c[1]); }

std::vector<Box> of_class(const std::vector<Box>& boxes, int64_t label) {
  std::vector<Box> result;
  std::ranges::copy_if(boxes, std::back_inserter(result), [label](const Box& box) { return box.label == label; });
  std::ranges::stable_sort(result, std::greater<>(), &Box::score);
  return result;
}

// Whether each found box, the best score first, meets a true one that none before it has met.
std::vector<bool> meets(const std::vector<Box>& found, const std::vector<Box>& truth, double least) {
  std::vector<bool> taken(truth.size());
  std::vector<bool> result;
  for (const Box& box : found) {
    size_t best = truth.size();
    double most = least;
    for (size_t i = 0; i < truth.size(); ++i) {
      const double overlap = taken[i] ? 0 : overlap_of(box, truth[i]);
      if (overlap < most || overlap == 0) continue;
      most = overlap;
      best = i;
    }
    result.push_back(best < truth.size());
    if (best < truth.size()) taken[best] = true;
  }
  return result;
}

// `right` in order of falling scores.
double average_precision(const std::vector<bool>& right, size_t truth) {
  std::vector<double> precision;
  std::vector<double> recall;
  size_t met = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    met += right[i] ? 1 : 0;
    precision.push_back(static_cast<double>(met) / static_cast<double>(i + 1));
    recall.push_back(static_cast<double>(met) / static_cast<double>(truth));
  }
  for (size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double sum = 0;
  for (int step = 0; step <= 100; ++step) {
    const auto at = std::ranges::lower_bound(recall, step / 100.0);
    if (at != recall.end()) sum += precision[static_cast<size_t>(at - recall.begin())];
  }
  return sum / 101;
}

}  // namespace

double overlap_of(const Box& a, const Box& b) {
  const std::array<double, 4> both{std::max(a.corners[0], b.corners[0]), std::max(a.corners[1], b.corners[1]), std::min(a.corners[2], b.corners[2]),
                                   std::min(a.corners[3], b.corners[3])};
  const double shared = area_of(both);
  const double either = area_of(a.corners) + area_of(b.corners) - shared;
  return either > 0 ? shared / either : 0;
}

void MeanPrecision::add(const std::vector<Box>& found, const std::vector<Box>& truth) {
  std::set<int64_t> labels;
  for (const auto* boxes : {&found, &truth}) {
    for (const Box& box : *boxes) labels.insert(box.label);
  }
  for (const int64_t label : labels) {
    const auto ours = of_class(found, label);
    const auto right = of_class(truth, label);
    Class& kept = classes_[label];
    const size_t first = kept.hits.size();
    kept.truth += right.size();
    for (const Box& box : ours) kept.hits.push_back({box.score, {}});
    for (size_t t = 0; t < thresholds; ++t) {
      const auto met = meets(ours, right, 0.5 + 0.05 * static_cast<double>(t));
      for (size_t i = 0; i < met.size(); ++i) kept.hits[first + i].right[t] = met[i];
    }
  }
}

double MeanPrecision::value() const {
  double sum = 0;
  size_t count = 0;
  for (const auto& [label, kept] : classes_) {
    if (kept.truth == 0) continue;
    auto hits = kept.hits;
    std::ranges::stable_sort(hits, std::greater<>(), &Hit::score);
    for (size_t t = 0; t < thresholds; ++t) {
      std::vector<bool> right;
      for (const Hit& hit : hits) right.push_back(hit.right[t]);
      sum += average_precision(right, kept.truth);
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace unmoor
