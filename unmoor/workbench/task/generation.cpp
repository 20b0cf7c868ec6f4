#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/task/rows.h"

namespace unmoor {
namespace {

constexpr double agreement_limit = 0.999;
constexpr int64_t no_label = -100;  // The label of a place that counts nowhere, as training programs have it.

// −ln p of one class under a row of scores.
double surprise(const Rows& rows, size_t i, size_t token) {
  const double* const scores = rows.row(i);
  const double top = *std::max_element(scores, scores + rows.classes);
  double sum = 0;
  for (size_t c = 0; c < rows.classes; ++c) sum += std::exp(scores[c] - top);
  return top + std::log(sum) - scores[token];
}

// Scores of the next token at each place, [B, T, V], or the tokens themselves, [B, T].
class Generation : public TaskMetric {
 public:
  explicit Generation(std::string output) : output_(std::move(output)) {}

  void add(const TaskSample& sample, const NamedData& reference, const NamedData& target, TaskResult& result) override {
    choose(reference);
    const Tensor& expected = reference.at(output_).tensor();
    const Tensor& actual = target.at(output_).tensor();
    if (!is_float(expected.dtype())) return add_tokens(expected, actual);
    if (actual.shape() != expected.shape()) fail(ErrorKind::InvalidArgument, "'", output_, "' is ", actual.type(), " on the target and ", expected.type(), " on the reference");
    const Rows ours = rows_of(expected);
    const Rows theirs = rows_of(actual);
    count_flips(sample.name, ours, theirs, result);
    std::vector<int64_t> before, after;
    for (size_t i = 0; i < ours.rows; ++i) {
      before.push_back(static_cast<int64_t>(ours.best(i)));
      after.push_back(static_cast<int64_t>(theirs.best(i)));
    }
    compare(before, after, static_cast<size_t>(expected.shape()[1]));
    add_surprise(sample, ours, theirs, expected.shape());
  }

  void finish(TaskResult& result) override {
    result.output = output_;
    result.numbers.push_back({"token agreement", {}, {}, agree_.value(), agreement_limit, agree_.value()});
    result.numbers.push_back({"tokens until one differs, mean", {}, {}, until_.value()});
    result.numbers.push_back({"tokens until one differs, least", {}, {}, static_cast<double>(least_)});
    if (surprise_[0].count == 0) {
      result.notes.emplace_back("no labels, and no input of tokens to take the next one from: perplexity is not told");
      return;
    }
    result.numbers.push_back({"perplexity", std::exp(*surprise_[0].value()), std::exp(*surprise_[1].value())});
  }

 private:
  void choose(const NamedData& outputs) {
    for (const auto& [name, data] : outputs) {
      if ((!output_.empty() && name != output_) || !data.is_tensor()) continue;
      const size_t rank = data.tensor().shape().rank();
      const bool fits = (is_float(data.tensor().dtype()) && rank == 3) || (is_integer(data.tensor().dtype()) && rank == 2);
      if (!fits || data.tensor().elements() == 0) continue;
      output_ = name;
      return;
    }
    fail_output("generation", outputs, "an output [B,T,V] of scores, or [B,T] of tokens");
  }

  static Rows rows_of(const Tensor& tensor) {
    Rows rows{doubles(tensor), 0, static_cast<size_t>(tensor.shape()[2])};
    rows.rows = rows.values.size() / rows.classes;
    return rows;
  }

  // Generated tokens may be of another number: what only one side has differs. Without scores there is no margin to tell of.
  void add_tokens(const Tensor& expected, const Tensor& actual) {
    const auto before = integers(expected);
    const auto after = integers(actual);
    if (actual.shape().rank() != 2 || actual.shape()[0] != expected.shape()[0])
      fail(ErrorKind::InvalidArgument, "'", output_, "' is ", actual.type(), " on the target and ", expected.type(), " on the reference");
    const auto a = static_cast<size_t>(expected.shape()[1]);
    const auto b = static_cast<size_t>(actual.shape()[1]);
    for (size_t row = 0; row < static_cast<size_t>(expected.shape()[0]); ++row) {
      std::vector<int64_t> ours(before.begin() + static_cast<std::ptrdiff_t>(row * a), before.begin() + static_cast<std::ptrdiff_t>((row + 1) * a));
      std::vector<int64_t> theirs(after.begin() + static_cast<std::ptrdiff_t>(row * b), after.begin() + static_cast<std::ptrdiff_t>((row + 1) * b));
      ours.resize(std::max(a, b), -1);
      theirs.resize(std::max(a, b), -2);
      compare(ours, theirs, ours.size());
    }
  }

  void compare(const std::vector<int64_t>& ours, const std::vector<int64_t>& theirs, size_t length) {
    for (size_t start = 0; start < ours.size(); start += length) {
      size_t until = length;
      for (size_t i = length; i-- > 0;) {
        const bool same = ours[start + i] == theirs[start + i];
        agree_.add(same ? 1 : 0);
        if (!same) until = i;
      }
      until_.add(static_cast<double>(until));
      least_ = sequences_++ == 0 ? until : std::min(least_, until);
    }
  }

  void add_surprise(const TaskSample& sample, const Rows& ours, const Rows& theirs, const Shape& shape) {
    const auto length = static_cast<size_t>(shape[1]);
    const std::vector<int64_t> next = next_tokens(sample, ours.rows, length);
    for (size_t i = 0; i < next.size(); ++i) {
      if (next[i] == no_label) continue;
      if (next[i] < 0 || static_cast<size_t>(next[i]) >= ours.classes)
        fail(ErrorKind::InvalidArgument, "the token ", next[i], " of '", sample.name, "' is none of the ", ours.classes, " that '", output_, "' scores");
      surprise_[0].add(surprise(ours, i, static_cast<size_t>(next[i])));
      surprise_[1].add(surprise(theirs, i, static_cast<size_t>(next[i])));
    }
  }

  // Labels; else the input's own tokens, one place on.
  static std::vector<int64_t> next_tokens(const TaskSample& sample, size_t rows, size_t length) {
    if (auto labels = integer_label(sample, rows, "place")) return std::move(*labels);
    const auto tokens = sample.inputs.find("input_ids");
    if (tokens == sample.inputs.end() || !tokens->second.is_tensor() || tokens->second.tensor().elements() != rows) return {};
    const auto ids = integers(tokens->second.tensor());
    std::vector<int64_t> next(rows, no_label);
    for (size_t i = 0; i + 1 < rows; ++i) {
      if ((i + 1) % length != 0) next[i] = ids[i + 1];
    }
    return next;
  }

  std::string output_;
  Mean agree_, until_;
  size_t least_ = 0;
  size_t sequences_ = 0;
  Mean surprise_[2];  // Of the reference and of the target.
};

}  // namespace

std::unique_ptr<TaskMetric> make_generation(const std::string& output) { return std::make_unique<Generation>(output); }

}  // namespace unmoor
