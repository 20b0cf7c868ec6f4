#include "unmoor/workbench/task/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

double without_nan(double x) { return std::isnan(x) ? -std::numeric_limits<double>::infinity() : x; }

}  // namespace

size_t Rows::best(size_t i) const {
  const double* const scores = row(i);
  size_t found = 0;
  for (size_t c = 1; c < classes; ++c) {
    if (without_nan(scores[c]) > without_nan(scores[found])) found = c;
  }
  return found;
}

std::vector<size_t> Rows::best_of(size_t i, size_t k) const {
  std::vector<size_t> order(classes);
  std::iota(order.begin(), order.end(), 0);
  const double* const scores = row(i);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(k, classes));
  std::partial_sort(order.begin(), middle, order.end(), [&](size_t a, size_t b) {
    const double x = without_nan(scores[a]);
    const double y = without_nan(scores[b]);
    return x != y ? x > y : a < b;
  });
  order.erase(middle, order.end());
  return order;
}

void count_flips(const std::string& sample, const Rows& reference, const Rows& target, TaskResult& result) {
  for (size_t i = 0; i < reference.rows; ++i) {
    const size_t from = reference.best(i);
    const size_t to = target.best(i);
    const auto top = reference.best_of(i, 2);
    const double apart = reference.row(i)[top[0]] - reference.row(i)[top.back()];
    const double margin = std::isnan(apart) ? 0 : apart;  // Of NaN, or of two infinities.
    ++result.answers;
    result.margins.add(margin);
    if (from == to) continue;
    TaskFlip flip{sample, i, from, to, margin, 0};
    for (size_t c = 0; c < reference.classes; ++c) {
      const double error = std::fabs(target.row(i)[c] - reference.row(i)[c]);
      if (!(error <= flip.error) && !std::isnan(flip.error)) flip.error = error;
    }
    result.add_flip(std::move(flip));
  }
}

std::vector<NamedTensor> float_outputs(const NamedData& outputs, const std::string& wanted) {
  std::vector<NamedTensor> found;
  for (const auto& [name, data] : outputs) {
    if ((wanted.empty() || name == wanted) && data.is_tensor() && is_float(data.tensor().dtype())) found.push_back({name, data.tensor()});
  }
  return found;
}

std::optional<std::vector<int64_t>> integer_label(const TaskSample& sample, size_t count, const char* what) {
  const Data* found = nullptr;
  size_t candidates = 0;
  for (const auto& [name, data] : sample.labels) {
    if (!data.is_tensor() || !is_integer(data.tensor().dtype())) continue;
    constexpr std::array<std::string_view, 3> usual{"label", "labels", "target"};
    const bool named = std::ranges::find(usual, name) != usual.end();
    if (named || found == nullptr) found = &data;
    candidates = named ? 1 : candidates + 1;
    if (named) break;
  }
  if (found == nullptr) return std::nullopt;
  if (candidates > 1) fail(ErrorKind::InvalidArgument, "'", sample.name, "' has ", described(sample.labels), ": call the one that is right 'label'");
  auto numbers = integers(found->tensor());
  if (numbers.size() != count) fail(ErrorKind::InvalidArgument, "the label of '", sample.name, "' has ", numbers.size(), " numbers, not ", count, ", one a ", what);
  return numbers;
}

std::string described(const NamedData& data) {
  std::string text;
  for (const auto& [name, each] : data) text += cat(text.empty() ? "" : ", ", "'", name, "' ", to_text(type_of(each)));
  return text.empty() ? "nothing" : text;
}

void fail_output(const std::string& task, const NamedData& outputs, const std::string& wanted) {
  fail(ErrorKind::InvalidArgument, "the task ", task, " needs ", wanted, "; the model gives ", described(outputs));
}

}  // namespace unmoor
