#include <algorithm>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/compose.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

constexpr size_t weight = 1;  // The place of the weights in all operators of this file.

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
  for (size_t b = shape.rank(); b-- > 0;) {
    for (size_t a = b; a-- > 0;) {
      if (shape[a] < 2 || shape[b] < 2) continue;
      const std::string detail = shape.rank() == 2 ? "" : cat("axes ", a, " and ", b);
      changes.push_back(with_input(at, weight, swapped(at, a, b), detail));
    }
  }
  return changes;
}

// Every spatial axis in turn that `flips` names by a bit.
Tensor reversed(const Tensor& w, size_t flips) {
  const std::vector<double> from = doubles(w);
  const std::vector<int64_t> steps = w.shape().strides();
  std::vector<double> to(from.size());
  for (size_t i = 0; i < to.size(); ++i) {
    auto place = static_cast<int64_t>(i);
    for (size_t axis = 2; axis < steps.size(); ++axis) {
      if ((flips >> (axis - 2) & 1U) == 0) continue;
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

std::vector<Change> flipped(const Situation& at) {
  std::vector<Change> changes;
  if (!at.has(weight) || at.tensor(weight).shape().rank() < 3) return {};
  const size_t axes = at.tensor(weight).shape().rank() - 2;
  const size_t all = (size_t{1} << axes) - 1;
  for (size_t flips = all; flips > 0; --flips) {
    changes.push_back(with_input(at, weight, reversed(at.tensor(weight), flips), flips == all ? "" : "not every axis"));
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
