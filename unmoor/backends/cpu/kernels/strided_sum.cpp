#include <algorithm>

#include "unmoor/backends/cpu/kernels/contract.h"

namespace unmoor::cpu {

size_t Labelled::step(int label) const {
  const auto found = std::ranges::find(labels, label);
  return found == labels.end() ? 0 : steps[static_cast<size_t>(found - labels.begin())];
}

bool Labelled::has(int label) const { return std::ranges::find(labels, label) != labels.end(); }

size_t count_of(const std::vector<int>& labels, const LabelSizes& sizes) {
  size_t count = 1;
  for (const int label : labels) count *= sizes.at(label);
  return count;
}

Labelled dense_labelled(const std::vector<int>& labels, const LabelSizes& sizes) {
  Labelled result{labels, std::vector<size_t>(labels.size(), 1)};
  for (size_t i = labels.size(); i-- > 1;) result.steps[i - 1] = result.steps[i] * sizes.at(labels[i]);
  return result;
}

// Joins the axis to the one before it where all operands step over both as over one.
void StridedSum::append(std::vector<Axis>& axes, Axis axis) {
  if (axis.size == 1) return;
  bool joins = !axes.empty();
  for (size_t k = 0; joins && k < axis.steps.size(); ++k) joins = axes.back().steps[k] == axis.steps[k] * axis.size;
  if (joins) axis.size *= axes.back().size, axes.pop_back();
  axes.push_back(std::move(axis));
}

size_t StridedSum::count(const std::vector<Axis>& axes) {
  size_t product = 1;
  for (const Axis& axis : axes) product *= axis.size;
  return product;
}

void StridedSum::move(const std::vector<Axis>& axes, size_t index, Places& places) {
  for (size_t i = axes.size(); i-- > 0 && index != 0;) {
    const size_t here = index % axes[i].size;
    index /= axes[i].size;
    for (size_t k = 0; k < places.size(); ++k) places[k] += here * axes[i].steps[k];
  }
}

StridedSum::StridedSum(const Machine& machine, const std::vector<Labelled>& operands, const std::vector<int>& out,
                       const LabelSizes& sizes)
    : machine_(machine) {
  const auto axis_of = [&](int label) {
    Axis axis{sizes.at(label), {}};
    for (const Labelled& operand : operands) axis.steps.push_back(operand.step(label));
    return axis;
  };
  for (const int label : out) append(kept_, axis_of(label));
  // Summed in the order in which the first operand that has them lies.
  std::vector<int> rest;
  for (const Labelled& operand : operands) {
    for (const int label : operand.labels) {
      if (std::ranges::find(out, label) == out.end() && std::ranges::find(rest, label) == rest.end()) rest.push_back(label);
    }
  }
  for (const auto& [label, size] : sizes) {  // What no operand steps along is summed as often as it has places.
    if (std::ranges::find(out, label) == out.end() && std::ranges::find(rest, label) == rest.end()) rest.push_back(label);
  }
  for (const int label : rest) append(summed_, axis_of(label));
  inner_ = {1, std::vector<size_t>(operands.size(), 0)};
  const auto cost = [](const Axis& axis) {  // Of a step of the innermost loop: far steps miss the cache.
    size_t far = 0;
    for (const size_t step : axis.steps) far += step > 1 ? 4 : 1;
    return static_cast<double>(far) + 16.0 / static_cast<double>(axis.size);
  };
  by_rows_ = summed_.empty() || (!kept_.empty() && cost(kept_.back()) <= cost(summed_.back()));
  std::vector<Axis>& from = by_rows_ ? kept_ : summed_;
  if (from.empty()) return;
  inner_ = from.back();
  from.pop_back();
}

// y[j] += the product of the operands at j, for j in [begin, end).
void StridedSum::add_row(const Places& at, size_t begin, size_t end, float* y) const {
  const float* const a = at[0];
  const size_t sa = inner_.steps[0];
  if (at.size() == 1) {
    if (sa == 1) {
      for (size_t j = begin; j < end; ++j) y[j - begin] += a[j];
    } else {
      for (size_t j = begin; j < end; ++j) y[j - begin] += a[j * sa];
    }
    return;
  }
  const float* const b = at[1];
  const size_t sb = inner_.steps[1];
  if (at.size() == 2 && sa == 1 && sb == 1) {
    for (size_t j = begin; j < end; ++j) y[j - begin] += a[j] * b[j];
  } else if (at.size() == 2 && sa <= 1 && sb <= 1) {
    const float factor = sa == 0 ? *a : *b;
    const float* const moving = sa == 0 ? b : a;
    if (sa + sb == 0) {
      for (size_t j = begin; j < end; ++j) y[j - begin] += *a * *b;
    } else {
      for (size_t j = begin; j < end; ++j) y[j - begin] += factor * moving[j];
    }
  } else {
    for (size_t j = begin; j < end; ++j) {
      float product = a[j * sa] * b[j * sb];
      for (size_t k = 2; k < at.size(); ++k) product *= at[k][j * inner_.steps[k]];
      y[j - begin] += product;
    }
  }
}

double StridedSum::dot(const Places& at) const {
  const float* const a = at[0];
  const size_t sa = inner_.steps[0];
  double sums[4] = {};  // Independent, so that additions overlap.
  if (at.size() == 1) {
    for (size_t j = 0; j < inner_.size; ++j) sums[j % 4] += static_cast<double>(a[j * sa]);
  } else {
    for (size_t j = 0; j < inner_.size; ++j) {
      double product = static_cast<double>(a[j * sa]);
      for (size_t k = 1; k < at.size(); ++k) product *= static_cast<double>(at[k][j * inner_.steps[k]]);
      sums[j % 4] += product;
    }
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void StridedSum::run(std::span<const float* const> operands, float* y) const {
  constexpr size_t most = 4096;
  const size_t results = by_rows_ ? inner_.size : 1;
  const size_t pieces = by_rows_ ? (inner_.size + most - 1) / most : 1;
  const size_t parts = !by_rows_ && inner_.size == 0 ? 0 : count(summed_);
  const size_t work = (by_rows_ ? std::min(inner_.size, most) : inner_.size) + 8;
  machine_.pool().ranges(count(kept_) * pieces, 32768 / (work * std::min<size_t>(parts + 1, 32768)) + 1,
                         [&](size_t first, size_t last) {
                           for (size_t i = first; i < last; ++i) {
                             Places base(operands.begin(), operands.end());
                             move(kept_, i / pieces, base);
                             const size_t begin = i % pieces * most;
                             const size_t end = std::min(begin + most, results);
                             float* const to = y + i / pieces * results + begin;
                             double sum = 0;
                             if (by_rows_) std::fill_n(to, end - begin, 0.0F);
                             for (size_t part = 0; part < parts; ++part) {
                               Places at = base;
                               move(summed_, part, at);
                               if (by_rows_) {
                                 add_row(at, begin, end, to);
                               } else {
                                 sum += dot(at);
                               }
                             }
                             if (!by_rows_) *to = static_cast<float>(sum);
                           }
                         });
}

}  // namespace unmoor::cpu
