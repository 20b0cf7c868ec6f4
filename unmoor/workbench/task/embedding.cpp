#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/task/rows.h"

namespace unmoor {
namespace {

constexpr size_t most_compared = 2000;  // Every vector is compared with every other: a few seconds.
constexpr double recall_limit = 0.999;

using Vector = std::vector<float>;

double cosine(const Vector& a, const Vector& b) {
  double product = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return aa == 0 && bb == 0 ? 1 : product / std::sqrt(aa * bb);
}

// Of each vector the k nearest others by cosine.
std::vector<std::vector<size_t>> nearest(const std::vector<Vector>& vectors, size_t k) {
  std::vector<std::vector<size_t>> result;
  for (size_t i = 0; i < vectors.size(); ++i) {
    check_stop();
    std::vector<double> scores(vectors.size());
    std::vector<size_t> order;
    for (size_t j = 0; j < vectors.size(); ++j) {
      if (j == i) continue;
      const double score = cosine(vectors[i], vectors[j]);
      scores[j] = std::isnan(score) ? -2 : score;
      order.push_back(j);
    }
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                      [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    order.resize(k);
    result.push_back(std::move(order));
  }
  return result;
}

// A vector an item of the batch: [N, D], or the mean over the middle axes of [N, …, D].
class Embedding : public TaskMetric {
 public:
  explicit Embedding(std::string output) : output_(std::move(output)) {}

  void add(const TaskSample&, const NamedData& reference, const NamedData& target, TaskResult& result) override {
    const Tensor expected = choose(reference, result);
    const Tensor& actual = target.at(output_).tensor();
    if (actual.shape() != expected.shape()) fail(ErrorKind::InvalidArgument, "'", output_, "' is ", actual.type(), " on the target and ", expected.type(), " on the reference");
    const auto ours = vectors_of(expected);
    const auto theirs = vectors_of(actual);
    for (size_t i = 0; i < ours.size(); ++i) {
      ++result.answers;
      const double each = cosine(ours[i], theirs[i]);
      cosine_.add(each);
      if (!(each >= lowest_) && !std::isnan(lowest_)) lowest_ = each;
      if (ours_.size() == most_compared) continue;
      if (!ours_.empty() && ours_[0].size() != ours[i].size())
        fail(ErrorKind::InvalidArgument, "'", output_, "' gives vectors of ", ours_[0].size(), " and of ", ours[i].size(), " numbers, which cannot be neighbours");
      ours_.push_back(ours[i]);
      theirs_.push_back(theirs[i]);
    }
  }

  void finish(TaskResult& result) override {
    result.output = output_;
    result.numbers.push_back({"mean cosine", {}, {}, cosine_.value()});
    result.numbers.push_back({"lowest cosine", {}, {}, lowest_});
    if (result.answers > ours_.size()) result.notes.push_back(cat("neighbours are looked for among the first ", ours_.size(), " of ", result.answers, " vectors"));
    if (averaged_) result.notes.push_back(cat("'", output_, "' has a vector for each place: the mean over places is taken"));
    for (const size_t k : {size_t{1}, size_t{5}, size_t{10}}) {
      if (ours_.size() < k + 2) continue;
      const auto before = nearest(ours_, k);
      const auto after = nearest(theirs_, k);
      Mean recall;
      for (size_t i = 0; i < before.size(); ++i) {
        const auto kept = std::ranges::count_if(before[i], [&](size_t each) { return std::ranges::find(after[i], each) != after[i].end(); });
        recall.add(static_cast<double>(kept) / static_cast<double>(k));
      }
      result.numbers.push_back({cat("recall@", k), {}, {}, recall.value(), k == 1 ? std::optional(recall_limit) : std::nullopt, recall.value()});
    }
    if (ours_.size() < 3) result.notes.emplace_back("fewer than three vectors: no neighbours to look for");
  }

 private:
  Tensor choose(const NamedData& outputs, TaskResult& result) {
    for (const NamedTensor& each : float_outputs(outputs, output_)) {
      if (each.tensor.shape().rank() < 2 || each.tensor.elements() == 0) continue;
      if (output_.empty() && float_outputs(outputs, "").size() > 1) result.notes.push_back(cat("'", each.name, "' is judged; --task-output names another output"));
      output_ = each.name;
      return each.tensor;
    }
    fail_output("embedding", outputs, "a floating output [N,D] or [N,places,D]");
  }

  std::vector<Vector> vectors_of(const Tensor& tensor) {
    const auto values = doubles(tensor);
    const auto items = static_cast<size_t>(tensor.shape()[0]);
    const auto width = static_cast<size_t>(tensor.shape()[tensor.shape().rank() - 1]);
    const size_t places = values.size() / (items * width);
    averaged_ = averaged_ || places > 1;
    std::vector<Vector> vectors(items, Vector(width));
    for (size_t i = 0; i < items; ++i) {
      for (size_t d = 0; d < width; ++d) {
        double sum = 0;
        for (size_t p = 0; p < places; ++p) sum += values[(i * places + p) * width + d];
        vectors[i][d] = static_cast<float>(sum / static_cast<double>(places));
      }
    }
    return vectors;
  }

  std::string output_;
  Mean cosine_;
  double lowest_ = 1;
  bool averaged_ = false;
  std::vector<Vector> ours_, theirs_;
};

}  // namespace

std::unique_ptr<TaskMetric> make_embedding(const std::string& output) { return std::make_unique<Embedding>(output); }

}  // namespace unmoor
