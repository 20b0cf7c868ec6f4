#include <algorithm>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/task/rows.h"

namespace unmoor {
namespace {

constexpr double drop_limit = 0.005;
constexpr int64_t ignored = 255;  // The class of pixels that count nowhere, as data sets have it.

// How many pixels are of a class on one side, on the other, and on both.
class Overlap {
 public:
  void add(int64_t a, int64_t b) {
    ++counts_[a].a;
    ++counts_[b].b;
    if (a == b) ++counts_[a].both;
  }
  // The mean over classes of pixels on both sides by pixels on either; nothing without pixels.
  std::optional<double> mean() const {
    Mean mean;
    for (const auto& [label, count] : counts_) mean.add(static_cast<double>(count.both) / static_cast<double>(count.a + count.b - count.both));
    return mean.value();
  }

 private:
  struct Count {
    size_t a = 0, b = 0, both = 0;
  };
  std::map<int64_t, Count> counts_;
};

// Scores [N, C, H, W], or one score a pixel [N, 1, H, W], or the classes themselves as integers [N, H, W].
class Segmentation : public TaskMetric {
 public:
  explicit Segmentation(std::string output) : output_(std::move(output)) {}

  void add(const TaskSample& sample, const NamedData& reference, const NamedData& target, TaskResult& result) override {
    choose(reference);
    const Tensor& expected = reference.at(output_).tensor();
    const Tensor& actual = target.at(output_).tensor();
    if (actual.shape() != expected.shape()) fail(ErrorKind::InvalidArgument, "'", output_, "' is ", actual.type(), " on the target and ", expected.type(), " on the reference");
    const std::vector<int64_t> ours = classes_of(sample.name, expected, expected, nullptr);
    const std::vector<int64_t> theirs = classes_of(sample.name, actual, expected, &result);
    const auto labels = integer_label(sample, ours.size(), "pixel");
    for (size_t i = 0; i < ours.size(); ++i) {
      between_.add(ours[i], theirs[i]);
      agree_.add(ours[i] == theirs[i] ? 1 : 0);
      if (!labels || (*labels)[i] == ignored) continue;
      right_[0].add((*labels)[i], ours[i]);
      right_[1].add((*labels)[i], theirs[i]);
    }
  }

  void finish(TaskResult& result) override {
    result.output = output_;
    const auto before = right_[0].mean();
    const auto after = right_[1].mean();
    const auto both = between_.mean();
    if (before) {
      result.numbers.push_back({"mIoU", before, after, {}, -drop_limit, *after - *before});
      result.numbers.push_back({"mIoU of the two", {}, {}, both});
    } else {
      result.numbers.push_back({"mIoU of the two", {}, {}, both, 1 - drop_limit, both});
      result.notes.emplace_back("no labels: the reference's classes stand for what is right");
    }
    result.numbers.push_back({"pixel agreement", {}, {}, agree_.value()});
  }

 private:
  void choose(const NamedData& outputs) {
    if (!output_.empty() && outputs.contains(output_)) return;
    for (const auto& [name, data] : outputs) {
      if (!output_.empty() || !data.is_tensor()) continue;
      const size_t rank = data.tensor().shape().rank();
      if ((is_float(data.tensor().dtype()) && rank == 4) || (is_integer(data.tensor().dtype()) && rank >= 2)) output_ = name;
    }
    if (output_.empty() || !outputs.contains(output_)) fail_output("segmentation", outputs, "an output [N,C,H,W] of scores, or [N,H,W] of classes");
  }

  // Flips are counted where `flips` is given, against what the reference says.
  std::vector<int64_t> classes_of(const std::string& sample, const Tensor& tensor, const Tensor& expected, TaskResult* flips) const {
    if (!is_float(tensor.dtype())) return integers(tensor);
    if (tensor.shape().rank() != 4) fail(ErrorKind::InvalidArgument, "'", output_, "' is ", tensor.type(), "; scores of a segmentation are [N,C,H,W]");
    const bool share = std::ranges::all_of(doubles(expected), [](double x) { return x >= 0 && x <= 1; });
    const Rows rows = pixels(tensor, share);
    if (flips != nullptr) count_flips(sample, pixels(expected, share), rows, *flips);
    std::vector<int64_t> classes(rows.rows);
    for (size_t i = 0; i < rows.rows; ++i) classes[i] = static_cast<int64_t>(rows.best(i));
    return classes;
  }

  // [N, C, H, W] as a row a pixel; a lone score is held against 0.5 of shares, else against 0.
  static Rows pixels(const Tensor& tensor, bool share) {
    const auto values = doubles(tensor);
    const auto images = static_cast<size_t>(tensor.shape()[0]);
    const auto channels = static_cast<size_t>(tensor.shape()[1]);
    const size_t area = values.empty() ? 0 : values.size() / (images * channels);
    Rows rows{{}, images * area, std::max<size_t>(channels, 2)};
    rows.values.reserve(rows.rows * rows.classes);
    for (size_t i = 0; i < rows.rows; ++i) {
      if (channels == 1) rows.values.push_back(share ? 0.5 : 0);
      for (size_t c = 0; c < channels; ++c) rows.values.push_back(values[(i / area * channels + c) * area + i % area]);
    }
    return rows;
  }

  std::string output_;
  Overlap between_;
  Overlap right_[2];  // Of the labels with the reference, and with the target.
  Mean agree_;
};

}  // namespace

std::unique_ptr<TaskMetric> make_segmentation(const std::string& output) { return std::make_unique<Segmentation>(output); }

}  // namespace unmoor
