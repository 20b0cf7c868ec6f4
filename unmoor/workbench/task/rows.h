#pragma once

#include <string>
#include <vector>

#include "unmoor/workbench/task/task.h"

namespace unmoor {

// The floats of an output, and how they fall into rows of scores.
struct Rows {
  std::vector<double> values;  // [rows, classes]
  size_t rows = 0;
  size_t classes = 0;

  const double* row(size_t i) const { return values.data() + i * classes; }
  size_t best(size_t i) const;                            // The first of the largest; NaN is below all.
  std::vector<size_t> best_of(size_t i, size_t k) const;  // The k largest, best first.
};

// Answers of both sides, row by row, into the result's counts of flips.
void count_flips(const std::string& sample, const Rows& reference, const Rows& target, TaskResult& result);

// The outputs that a metric may take: floating tensors of this name, or all.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};
std::vector<NamedTensor> float_outputs(const NamedData& outputs, const std::string& wanted);

// The label that is a list of integers: called label, labels or target, or the only one of this kind; nothing if there is none.
// Fails with InvalidArgument if it does not have `count` numbers, or if there are several to choose from.
std::optional<std::vector<int64_t>> integer_label(const TaskSample& sample, size_t count, const char* what);

[[noreturn]] void fail_output(const std::string& task, const NamedData& outputs, const std::string& wanted);
std::string described(const NamedData& data);  // "'logits' float32[1,10], 'mask' bool[1]"

// A mean that is taken piece by piece.
struct Mean {
  double sum = 0;
  size_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  std::optional<double> value() const { return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count)); }
};

std::unique_ptr<TaskMetric> make_classification(const std::string& output);
std::unique_ptr<TaskMetric> make_detection(const std::string& output);
std::unique_ptr<TaskMetric> make_segmentation(const std::string& output);
std::unique_ptr<TaskMetric> make_regression(const std::string& output);
std::unique_ptr<TaskMetric> make_embedding(const std::string& output);
std::unique_ptr<TaskMetric> make_generation(const std::string& output);

}  // namespace unmoor
