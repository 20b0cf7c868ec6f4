#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/task/rows.h"

namespace unmoor {
namespace {

constexpr size_t top = 5;
constexpr double agreement_limit = 0.999;

// Scores of classes along the last axis that is no 1; a lone score a row stands for two classes, with the threshold at 0.5 if the
// reference gives nothing outside of [0, 1], else at 0.
class Classification : public TaskMetric {
 public:
  explicit Classification(std::string output) : output_(std::move(output)) {}

  void add(const TaskSample& sample, const NamedData& reference, const NamedData& target, TaskResult& result) override {
    const Tensor expected = choose(reference, result);
    const Tensor& actual = target.at(output_).tensor();
    if (actual.shape() != expected.shape()) fail(ErrorKind::InvalidArgument, "'", output_, "' is ", actual.type(), " on the target and ", expected.type(), " on the reference");
    Rows ours = rows_of(expected);
    Rows theirs = rows_of(actual);
    if (ours.classes == 1) {
      const bool share = std::ranges::all_of(ours.values, [](double x) { return x >= 0 && x <= 1; });
      ours = two_classes(ours, share ? 0.5 : 0);
      theirs = two_classes(theirs, share ? 0.5 : 0);
    }
    count_flips(sample.name, ours, theirs, result);
    classes_ = std::max(classes_, ours.classes);
    const auto labels = integer_label(sample, ours.rows, "row of scores");
    for (size_t i = 0; i < ours.rows; ++i) {
      const auto a = ours.best_of(i, top);
      const auto b = theirs.best_of(i, top);
      agree_.add(a[0] == b[0] ? 1 : 0);
      agree_top_.add(std::ranges::is_permutation(a, b) ? 1 : 0);
      if (!labels) continue;
      if ((*labels)[i] < 0 || static_cast<size_t>((*labels)[i]) >= ours.classes)
        fail(ErrorKind::InvalidArgument, "the label ", (*labels)[i], " is none of the ", ours.classes, " classes that '", output_, "' scores, which count from 0");
      const auto right = static_cast<size_t>((*labels)[i]);
      right_[0].add(a[0] == right ? 1 : 0);
      right_[1].add(b[0] == right ? 1 : 0);
      right_top_[0].add(std::ranges::find(a, right) != a.end() ? 1 : 0);
      right_top_[1].add(std::ranges::find(b, right) != b.end() ? 1 : 0);
    }
  }

  void finish(TaskResult& result) override {
    result.output = output_;
    result.numbers.push_back({"top-1 agreement", {}, {}, agree_.value(), agreement_limit, agree_.value()});
    if (classes_ > top) result.numbers.push_back({"top-5 agreement", {}, {}, agree_top_.value()});
    if (right_[0].count == 0) {
      result.notes.emplace_back("no labels: accuracy is not told");
      return;
    }
    result.numbers.push_back({"top-1 accuracy", right_[0].value(), right_[1].value()});
    if (classes_ > top) result.numbers.push_back({"top-5 accuracy", right_top_[0].value(), right_top_[1].value()});
  }

 private:
  Tensor choose(const NamedData& outputs, TaskResult& result) {
    const auto found = float_outputs(outputs, output_);
    for (const NamedTensor& each : found) {
      if (each.tensor.elements() == 0) continue;
      if (output_.empty() && found.size() > 1) result.notes.push_back(cat("of ", found.size(), " floating outputs '", each.name, "' is judged; --task-output names another"));
      output_ = each.name;
      return each.tensor;
    }
    fail_output("classification", outputs, output_.empty() ? "a floating output with the scores of classes" : cat("the floating output '", output_, "'"));
  }

  static Rows rows_of(const Tensor& tensor) {
    Rows rows{doubles(tensor), 1, 1};
    size_t axis = tensor.shape().rank();
    while (axis > 0 && tensor.shape()[axis - 1] == 1) --axis;
    const bool lone = axis < 2 && tensor.shape().rank() >= 2;  // [N, 1]: a score a row.
    rows.classes = axis == 0 || (lone && tensor.shape()[tensor.shape().rank() - 1] == 1) ? 1 : static_cast<size_t>(tensor.shape()[axis - 1]);
    rows.rows = rows.values.size() / rows.classes;
    return rows;
  }

  static Rows two_classes(const Rows& lone, double threshold) {
    Rows rows{{}, lone.rows, 2};
    for (const double x : lone.values) {
      rows.values.push_back(threshold);
      rows.values.push_back(x);
    }
    return rows;
  }

  std::string output_;
  size_t classes_ = 0;
  Mean agree_, agree_top_;
  Mean right_[2], right_top_[2];  // Of the reference and of the target.
};

}  // namespace

std::unique_ptr<TaskMetric> make_classification(const std::string& output) { return std::make_unique<Classification>(output); }

}  // namespace unmoor
