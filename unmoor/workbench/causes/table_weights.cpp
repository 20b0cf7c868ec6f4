#include <numeric>
#include <span>

#include "unmoor/base/error.h"
#include "unmoor/ops/compose.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

constexpr size_t weight = 1;  // The place of the weights in all operators of this file.
// A convolution over more axes of 2 or more is not tried with single ones flipped, and weights of more such axes only with the last
// two swapped: every change holds a copy of the weights.
constexpr size_t most_flipped = 3;
constexpr size_t most_swapped = 5;

// Two axes swapped; then under the shape that the operator takes, as the bytes lie.
Tensor swapped(const Situation& at, size_t a, size_t b) {
  const Tensor& w = at.tensor(weight);
  std::vector<int64_t> order(w.shape().rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[a], order[b]);
  return result_by(at.call, "Transpose", {w}, {{"perm", order}}).reshaped(w.shape());
}

std::vector<Change> transposed(const Situation& at) {
  std::vector<Change> changes;
  if (!at.has_floats(weight) || at.tensor(weight).elements() < 2) return {};
  const Shape& shape = at.tensor(weight).shape();
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1) axes.push_back(axis);
  }
  if (axes.size() > most_swapped) axes.erase(axes.begin(), axes.end() - 2);
  for (size_t i = axes.size(); i-- > 0;) {
    for (size_t k = i; k-- > 0;) {
      const size_t a = axes[k];
      const size_t b = axes[i];
      const std::string detail = shape.rank() == 2 ? "" : cat("axes ", a, " and ", b);
      changes.push_back(with_input(at, weight, swapped(at, a, b), detail));
    }
  }
  return changes;
}

// Back to front along these axes.
Tensor reversed(const Tensor& w, std::span<const size_t> axes) {
  const std::vector<double> from = doubles(w);
  const std::vector<int64_t> steps = w.shape().strides();
  std::vector<double> to(from.size());
  for (size_t i = 0; i < to.size(); ++i) {
    auto place = static_cast<int64_t>(i);
    for (const size_t axis : axes) {
      const int64_t size = w.shape()[axis];
      const int64_t index = static_cast<int64_t>(i) / steps[axis] % size;
      place += (size - 1 - 2 * index) * steps[axis];
    }
    to[i] = from[static_cast<size_t>(place)];
  }
  Tensor result(w.type());
  store(result, to);
  return result;
}

// All spatial axes; of up to three each alone, and of three the pairs: no more than seven, whatever the rank.
std::vector<Change> flipped(const Situation& at) {
  if (!at.has(weight)) return {};
  const Tensor& w = at.tensor(weight);
  std::vector<size_t> axes;  // Those that are not the same back to front.
  for (size_t axis = 2; axis < w.shape().rank(); ++axis) {
    if (w.shape()[axis] > 1) axes.push_back(axis);
  }
  if (axes.empty()) return {};
  std::vector<Change> changes{with_input(at, weight, reversed(w, axes))};
  if (axes.size() == 1 || axes.size() > most_flipped) return changes;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::vector<size_t> others = axes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    changes.push_back(with_input(at, weight, reversed(w, others), "not every axis"));
    if (axes.size() == 3) changes.push_back(with_input(at, weight, reversed(w, std::span(axes).subspan(i, 1)), "not every axis"));
  }
  return changes;
}

}  // namespace

void add_weight_causes(std::vector<Entry>& table) {
  table.push_back(
      {"transposed-weights",
       "reads its weights with two axes swapped",
       "Check the layout that the target takes weights in.",
       1,
       true,
       {"MatMul", "Gemm", "unmoor:FusedMatMul", "com.microsoft:FusedMatMul", "Conv", "unmoor:FusedConv", "ConvTranspose"},
       transposed});
  table.push_back({"flipped-weights",
                   "reads its kernel back to front, as a true convolution does",
                   "Flip the kernel, or use the target's cross-correlation.",
                   1,
                   true,
                   {"Conv", "unmoor:FusedConv", "ConvTranspose", "QLinearConv", "ConvInteger"},
                   flipped});
}

}  // namespace unmoor::causes
