#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/workbench/task/samples.h"

namespace unmoor {

// A number of a task, of each side where there is a right answer, or between the two.
struct TaskNumber {
  std::string name;                                  // "top-1 accuracy"
  std::optional<double> reference = std::nullopt;
  std::optional<double> target = std::nullopt;
  std::optional<double> between = std::nullopt;      // Of the target against the reference.
  std::optional<double> limit = std::nullopt;        // Of `gated`, at least; nothing: told only.
  std::optional<double> gated = std::nullopt;        // What is held to it: `between`, or how much the target is above the reference.

  bool passed() const { return !limit || (gated && *gated >= *limit); }
};

// An answer that is another one on the target.
struct TaskFlip {
  std::string sample;
  size_t row = 0;      // Within the sample: an item of the batch, a position, a pixel.
  size_t from = 0, to = 0;
  double margin = 0;   // How far the reference's best is above its second: above the threshold.
  double error = 0;    // The largest error of the row.
  bool is_near = false;  // The margin is a tenth of the usual one or less: a small error could turn it.
};

// How many answers there are by their margin, in steps of a quarter of an octave.
class Margins {
 public:
  void add(double margin) { ++counts_[step_of(margin)]; }
  double median() const;                 // 0 without answers.
  size_t up_to(double margin) const;     // How many are not in a step above that of this margin.
  static int step_of(double margin);

 private:
  std::map<int, size_t> counts_;
};

struct TaskWorst {
  std::string sample;
  double error = 0;               // The largest relative L2 error of an output; infinite where classes or shapes differ.
  std::vector<std::string> odd;   // What is odd about the sample, against the others.
};

struct TaskResult {
  std::string task, output;       // The output that was judged; several are joined by commas.
  std::string reference, target;
  size_t samples = 0;
  std::vector<TaskNumber> numbers;
  size_t answers = 0;             // Rows that have one.
  size_t flip_count = 0, near_count = 0;
  Margins margins, flip_margins;  // Of all answers of the reference, and of those that flip.
  std::vector<TaskFlip> flips;    // The first few hundred, those with the largest margin first.
  std::vector<TaskWorst> worst;   // The worst first.
  std::vector<std::string> notes;

  void add_flip(TaskFlip flip);
  bool passed() const;
  nlohmann::json to_json() const;
  std::string text() const;
};

// Gathers a task's numbers over samples.
class TaskMetric {
 public:
  virtual ~TaskMetric() = default;
  // Fails with InvalidArgument where the outputs or labels are not what the task needs, saying what was found and wanted.
  virtual void add(const TaskSample& sample, const NamedData& reference, const NamedData& target, TaskResult& result) = 0;
  virtual void finish(TaskResult& result) = 0;
};
// classification, detection, segmentation, regression, embedding, generation. `output`: the one to judge; empty: the first that
// fits the task.
const std::vector<std::string>& task_names();
std::unique_ptr<TaskMetric> make_task_metric(const std::string& task, const std::string& output);

struct TaskOptions {
  std::string task;
  std::string output = {};
  std::function<void(const std::string&, size_t, size_t)> progress = {};
};
// Runs both on every sample. Fails as the runners do, naming the sample.
TaskResult run_task(Runner& reference, Runner& target, SampleSource& samples, const TaskOptions& options);

}  // namespace unmoor
