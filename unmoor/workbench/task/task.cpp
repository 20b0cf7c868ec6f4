#include "unmoor/workbench/task/task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/task/oddities.h"
#include "unmoor/workbench/task/rows.h"

namespace unmoor {
namespace {

using Maker = std::unique_ptr<TaskMetric> (*)(const std::string&);

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> table{{"classification", make_classification}, {"detection", make_detection},
                                                  {"segmentation", make_segmentation},     {"regression", make_regression},
                                                  {"embedding", make_embedding},           {"generation", make_generation}};
  return table;
}

// √(Σ(a−e)²/Σe²) of one output; infinite where a class, a shape or an integer is another.
double error_of(const Data& expected, const Data& actual) {
  constexpr double other = std::numeric_limits<double>::infinity();
  if (!expected.is_tensor() || !actual.is_tensor() || expected.tensor().dtype() == DType::String) return 0;
  const Tensor& e = expected.tensor();
  const Tensor& a = actual.tensor();
  if (e.shape() != a.shape() || e.dtype() == DType::C64 || e.dtype() == DType::C128) return e.shape() == a.shape() ? 0 : other;
  const auto x = doubles(e);
  const auto y = doubles(a);
  double errors = 0;
  double squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i]) || (std::isinf(y[i]) && x[i] != y[i])) return other;
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    errors += (y[i] - x[i]) * (y[i] - x[i]);
    squares += x[i] * x[i];
  }
  const double relative = errors == 0 ? 0 : std::sqrt(errors / std::max(squares, std::numeric_limits<double>::min()));
  return std::isnan(relative) ? other : relative;  // Squares of float64 may overflow.
}

double largest_error(const NamedData& reference, const NamedData& target) {
  double largest = 0;
  for (const auto& [name, data] : reference) {
    const auto found = target.find(name);
    if (found == target.end()) fail(ErrorKind::InvalidArgument, "the target gives no output '", name, "'");
    largest = std::max(largest, error_of(data, found->second));
  }
  return largest;
}

class TaskRun {
 public:
  TaskRun(Runner& reference, Runner& target, const TaskOptions& options)
      : reference_(reference), target_(target), options_(options), metric_(make_task_metric(options.task, options.output)) {
    result_.task = options.task;
    result_.reference = reference.name();
    result_.target = target.name();
  }

  TaskResult run(SampleSource& samples) {
    while (auto sample = samples.next()) {
      if (options_.progress) options_.progress("samples", result_.samples, samples.total());
      try {
        add(*sample);
      } catch (Error& error) {
        if (error.kind() != ErrorKind::Stopped) error.note(cat("in sample '", sample->name, "'"));
        throw;
      }
    }
    if (result_.samples == 0) fail(ErrorKind::InvalidArgument, "the data set has no samples");
    metric_->finish(result_);
    std::ranges::sort(result_.notes);
    const auto repeated = std::ranges::unique(result_.notes);
    result_.notes.erase(repeated.begin(), repeated.end());
    judge_flips();
    find_worst();
    return std::move(result_);
  }

 private:
  void add(const TaskSample& sample) {
    const NamedData expected = reference_.run(sample.inputs);
    const NamedData actual = target_.run(sample.inputs);
    errors_.push_back(largest_error(expected, actual));
    traits_.push_back(traits_of(sample.inputs, actual));
    names_.push_back(sample.name);
    metric_->add(sample, expected, actual, result_);
    ++result_.samples;
  }

  void judge_flips() {
    const double near = result_.margins.median() / 10;
    result_.near_count = result_.flip_margins.up_to(near);
    for (TaskFlip& flip : result_.flips) flip.is_near = Margins::step_of(flip.margin) <= Margins::step_of(near);
    std::ranges::stable_sort(result_.flips, std::greater<>(), &TaskFlip::margin);
  }

  void find_worst() {
    constexpr size_t most = 5;
    std::vector<size_t> order(errors_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [this](size_t a, size_t b) { return errors_[a] > errors_[b]; });
    for (size_t i = 0; i < std::min(order.size(), most) && errors_[order[i]] > 0; ++i)
      result_.worst.push_back({names_[order[i]], errors_[order[i]], oddities(traits_[order[i]], traits_)});
  }

  Runner& reference_;
  Runner& target_;
  const TaskOptions& options_;
  std::unique_ptr<TaskMetric> metric_;
  std::vector<double> errors_;
  std::vector<SampleTraits> traits_;
  std::vector<std::string> names_;
  TaskResult result_;
};

}  // namespace

int Margins::step_of(double margin) {
  constexpr int lowest = -4096;
  return margin > 0 && std::isfinite(margin) ? static_cast<int>(std::floor(4 * std::log2(margin))) : margin > 0 ? -lowest : lowest;
}

double Margins::median() const {
  size_t all = 0;
  for (const auto& [step, count] : counts_) all += count;
  size_t seen = 0;
  for (const auto& [step, count] : counts_) {
    seen += count;
    if (2 * seen >= all) return std::exp2(step / 4.0);
  }
  return 0;
}

size_t Margins::up_to(double margin) const {
  size_t found = 0;
  for (const auto& [step, count] : counts_) found += step <= step_of(margin) ? count : 0;
  return found;
}

void TaskResult::add_flip(TaskFlip flip) {
  constexpr size_t most_kept = 400;
  ++flip_count;
  flip_margins.add(flip.margin);
  if (flips.size() < most_kept) flips.push_back(std::move(flip));
}

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, maker] : makers()) list.push_back(name);
    return list;
  }();
  return names;
}

std::unique_ptr<TaskMetric> make_task_metric(const std::string& task, const std::string& output) {
  const auto found = makers().find(task);
  if (found == makers().end()) fail(ErrorKind::InvalidArgument, "there is no task '", task, "'");
  return found->second(output);
}

TaskResult run_task(Runner& reference, Runner& target, SampleSource& samples, const TaskOptions& options) {
  return TaskRun(reference, target, options).run(samples);
}

}  // namespace unmoor
