#include <algorithm>
#include <array>

#include "unmoor/backends/cpu/kernels/contract.h"

namespace unmoor::cpu {

namespace {

bool contains(const std::vector<int>& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

std::vector<int> joined(const std::vector<int>& a, const std::vector<int>& b, const std::vector<int>& c) {
  std::vector<int> all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// The step of a group of axes taken as one long axis, or nothing if they are no such thing. Axes of one element fit anywhere.
std::optional<size_t> step_of(const Labelled& operand, const std::vector<int>& group, const LabelSizes& sizes) {
  std::optional<size_t> step;
  size_t size = 1;
  for (size_t i = group.size(); i-- > 0;) {
    const size_t dim = sizes.at(group[i]);
    if (dim == 1) continue;
    const size_t own = operand.step(group[i]);
    if (own == 0 || (step && own != *step * size)) return std::nullopt;
    if (!step) step = own;
    size *= dim;
  }
  return step.value_or(0);
}

// By place of the batch, the operand's offset.
std::vector<size_t> offsets_of(const Labelled& operand, const std::vector<int>& batch, const LabelSizes& sizes) {
  std::vector<size_t> offsets{0};
  for (const int label : batch) {
    std::vector<size_t> next;
    next.reserve(offsets.size() * sizes.at(label));
    for (const size_t offset : offsets) {
      for (size_t i = 0; i < sizes.at(label); ++i) next.push_back(offset + i * operand.step(label));
    }
    offsets = std::move(next);
  }
  return offsets;
}

constexpr size_t most_batches = size_t{1} << 22;
constexpr size_t least_work = 64;  // Products of a matrix below which loops are faster.

}  // namespace

// The result's last axes that one operand alone has are columns, those of the other before them rows; what is before is a batch.
// Where that leaves much smaller matrices than all axes in order would, the result is arranged afterwards.
Contraction::Groups Contraction::choose(const Labelled& a, const Labelled& b, const std::vector<int>& out,
                                        const LabelSizes& sizes) {
  const auto grouped = [&](const Labelled& left, const Labelled& right, bool swapped) {
    Groups groups{swapped, {}, {}, {}, {}, true};
    size_t at = out.size();
    for (; at > 0 && right.has(out[at - 1]) && !left.has(out[at - 1]); --at)
      groups.columns.insert(groups.columns.begin(), out[at - 1]);
    for (; at > 0 && left.has(out[at - 1]) && !right.has(out[at - 1]); --at) groups.rows.insert(groups.rows.begin(), out[at - 1]);
    groups.batch.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(at));
    for (const int label : left.labels) {
      if (!contains(out, label) && right.has(label)) groups.depth.push_back(label);
    }
    return groups;
  };
  const auto area = [&](const Groups& groups) { return count_of(groups.rows, sizes) * count_of(groups.columns, sizes); };
  Groups best = grouped(a, b, false);
  const Groups other = grouped(b, a, true);
  if (area(other) > area(best)) best = other;
  Groups whole{false, {}, {}, {}, best.depth, false};
  for (const int label : out) {
    (a.has(label) && b.has(label) ? whole.batch : a.has(label) ? whole.rows : whole.columns).push_back(label);
  }
  return area(whole) / 8 > area(best) ? whole : best;
}

bool Contraction::is_worth_it(const Labelled& a, const Labelled& b, const std::vector<int>& out, const LabelSizes& sizes) {
  for (const auto& [label, size] : sizes) {
    if (size == 0) return false;
  }
  const Groups groups = choose(a, b, out, sizes);
  const size_t depth = count_of(groups.depth, sizes);
  const size_t area = count_of(groups.rows, sizes) * count_of(groups.columns, sizes);
  return depth > 1 && area > 1 && depth * area >= least_work && count_of(groups.batch, sizes) <= most_batches;
}

size_t Contraction::reserve(size_t floats) {
  const size_t place = workspace_;
  workspace_ += (floats + 15) / 16 * 16;
  return place;
}

// Where the operand's matrices [outer, inner] lie, after a copy if they must be dense.
Contraction::Side Contraction::side_of(const Machine& machine, const Labelled& operand, const Groups& groups, bool left,
                                       const LabelSizes& sizes) {
  const std::vector<int>& outer = left ? groups.rows : groups.depth;
  const std::vector<int>& inner = left ? groups.depth : groups.columns;
  Side side;
  bool sums = false;
  for (const int label : operand.labels)
    sums = sums || !(contains(groups.batch, label) || contains(outer, label) || contains(inner, label));
  const size_t rows = count_of(outer, sizes);
  const size_t columns = count_of(inner, sizes);
  const auto row_step = step_of(operand, outer, sizes);
  const auto column_step = step_of(operand, inner, sizes);
  const auto fits = [](std::optional<size_t> step, size_t size, size_t wanted) { return step && (size == 1 || *step == wanted); };
  const bool dense = fits(row_step, rows, columns) && fits(column_step, columns, 1);
  side.transposed = !dense && fits(row_step, rows, 1) && fits(column_step, columns, rows);
  if (!sums && (dense || side.transposed)) {
    side.offsets = offsets_of(operand, groups.batch, sizes);
    return side;
  }
  side.transposed = false;
  std::vector<int> own_batch;
  for (const int label : groups.batch) {
    if (operand.has(label)) own_batch.push_back(label);
  }
  const std::vector<int> wanted = joined(own_batch, outer, inner);
  const Labelled target = dense_labelled(wanted, sizes);
  side.offsets = offsets_of(target, groups.batch, sizes);
  side.place = reserve(count_of(wanted, sizes));
  if (sums) {
    LabelSizes own;
    for (const int label : operand.labels) own[label] = sizes.at(label);
    side.sum.emplace(machine, std::vector<Labelled>{operand}, wanted, own);
    return side;
  }
  StridedCopy copy;
  for (const int label : wanted) {
    copy.dims.push_back(sizes.at(label));
    copy.in.push_back(static_cast<int64_t>(operand.step(label)));
    copy.out.push_back(static_cast<int64_t>(target.step(label)));
  }
  side.copy.emplace(machine, copy);
  return side;
}

Contraction::Contraction(const Machine& machine, const Labelled& a, const Labelled& b, const std::vector<int>& out,
                         const LabelSizes& sizes, const Tensor* b_constant)
    : Contraction(machine, a, b, out, sizes, b_constant, choose(a, b, out, sizes)) {}

Contraction::Contraction(const Machine& machine, const Labelled& a, const Labelled& b, const std::vector<int>& out,
                         const LabelSizes& sizes, const Tensor* b_constant, const Groups& groups)
    : swapped_(groups.swapped),
      left_(side_of(machine, swapped_ ? b : a, groups, true, sizes)),
      right_(side_of(machine, swapped_ ? a : b, groups, false, sizes)) {
  Products products;
  products.m = count_of(groups.rows, sizes);
  products.n = count_of(groups.columns, sizes);
  products.k = count_of(groups.depth, sizes);
  products.transposed_a = left_.transposed;
  products.transposed_b = right_.transposed;
  products.a_offsets = left_.offsets;
  products.b_offsets = right_.offsets;
  packed_b_ = !swapped_ && b_constant != nullptr && !right_.copy && !right_.sum;
  if (!groups.direct) {
    const std::vector<int> order = joined(groups.batch, groups.rows, groups.columns);
    const Labelled made = dense_labelled(order, sizes);
    const Labelled wanted = dense_labelled(out, sizes);
    result_ = reserve(count_of(order, sizes));
    StridedCopy copy;
    for (const int label : out) {
      copy.dims.push_back(sizes.at(label));
      copy.in.push_back(static_cast<int64_t>(made.step(label)));
      copy.out.push_back(static_cast<int64_t>(wanted.step(label)));
    }
    arrange_.emplace(machine, copy);
  }
  products_.emplace(machine, products, packed_b_ ? b_constant : nullptr, Bias::None);
  own_ = reserve(products_->workspace_bytes() / sizeof(float) + 1);
}

const float* Contraction::ready(const Side& side, const float* operand, float* workspace) const {
  float* const place = workspace + side.place;
  if (side.copy) {
    side.copy->run(reinterpret_cast<const std::byte*>(operand), reinterpret_cast<std::byte*>(place));
  } else if (side.sum) {
    side.sum->run(std::array<const float*, 1>{operand}, place);
  } else {
    return operand;
  }
  return place;
}

void Contraction::run(const float* a, const float* b, float* y, float* workspace) const {
  const float* const left = ready(left_, swapped_ ? b : a, workspace);
  const float* const right = packed_b_ ? nullptr : ready(right_, swapped_ ? a : b, workspace);
  float* const result = arrange_ ? workspace + result_ : y;
  products_->run({left, right, nullptr, nullptr, result, workspace + own_});
  if (arrange_) arrange_->run(reinterpret_cast<const std::byte*>(result), reinterpret_cast<std::byte*>(y));
}

}  // namespace unmoor::cpu
