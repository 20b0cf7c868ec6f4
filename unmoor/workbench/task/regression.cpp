#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/task/rows.h"

namespace unmoor {
namespace {

// Every number of the output, against the reference's and, where there is one, against a floating label of as many.
class Regression : public TaskMetric {
 public:
  explicit Regression(std::string output) : output_(std::move(output)) {}

  void add(const TaskSample& sample, const NamedData& reference, const NamedData& target, TaskResult& result) override {
    const auto found = float_outputs(reference, output_);
    if (found.empty()) fail_output("regression", reference, output_.empty() ? "a floating output" : cat("the floating output '", output_, "'"));
    if (output_.empty() && found.size() > 1) result.notes.push_back(cat("of ", found.size(), " floating outputs '", found[0].name, "' is judged; --task-output names another"));
    output_ = found[0].name;
    const auto expected = doubles(found[0].tensor);
    const auto actual = doubles(target.at(output_).tensor());
    if (actual.size() != expected.size()) fail(ErrorKind::InvalidArgument, "'", output_, "' has ", actual.size(), " numbers on the target, and ", expected.size(), " on the reference");
    const auto label = label_of(sample, expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ++result.answers;
      const double error = actual[i] == expected[i] ? 0 : std::fabs(actual[i] - expected[i]);  // Of equal infinities it would be NaN.
      if (!(error <= largest_) && !std::isnan(largest_)) largest_ = error;
      mean_.add(error);
      if (label.empty()) continue;
      absolute_[0].add(std::fabs(expected[i] - label[i]));
      absolute_[1].add(std::fabs(actual[i] - label[i]));
      squares_[0].add((expected[i] - label[i]) * (expected[i] - label[i]));
      squares_[1].add((actual[i] - label[i]) * (actual[i] - label[i]));
    }
  }

  void finish(TaskResult& result) override {
    result.output = output_;
    result.numbers.push_back({"largest error", {}, {}, largest_});
    result.numbers.push_back({"mean error", {}, {}, mean_.value()});
    if (absolute_[0].count == 0) {
      result.notes.emplace_back("no floating label: errors against what is right are not told");
      return;
    }
    result.numbers.push_back({"mean absolute error", absolute_[0].value(), absolute_[1].value()});
    result.numbers.push_back({"root mean square error", std::sqrt(*squares_[0].value()), std::sqrt(*squares_[1].value())});
  }

 private:
  std::vector<double> label_of(const TaskSample& sample, size_t count) const {
    for (const auto& [name, data] : sample.labels) {
      if (!data.is_tensor() || data.tensor().dtype() == DType::String || data.tensor().elements() != count) continue;
      if (is_float(data.tensor().dtype()) || is_integer(data.tensor().dtype())) return doubles(data.tensor());
    }
    if (!sample.labels.empty())
      fail(ErrorKind::InvalidArgument, "no label of '", sample.name, "' has ", count, " numbers as '", output_, "' has; there is ", described(sample.labels));
    return {};
  }

  std::string output_;
  double largest_ = 0;
  Mean mean_;
  Mean absolute_[2], squares_[2];  // Of the reference and of the target.
};

}  // namespace

std::unique_ptr<TaskMetric> make_regression(const std::string& output) { return std::make_unique<Regression>(output); }

}  // namespace unmoor
