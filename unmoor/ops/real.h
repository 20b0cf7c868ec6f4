#pragma once

#include <span>
#include <vector>

#include "unmoor/ops/numeric.h"
#include "unmoor/ops/product.h"

namespace unmoor {

// What references in float64 read and write without copies, and on the threads of Float64Scope.

// The elements of a tensor of real numbers as float64: its own where they are that, else a copy. It must outlive this.
class RealInput {
 public:
  explicit RealInput(const Tensor& tensor);
  std::span<const double> numbers() const { return numbers_; }
  const double* data() const { return numbers_.data(); }

 private:
  std::vector<double> copy_;
  std::span<const double> numbers_;
};

// Where a result is made in float64: in the tensor itself where it is that, else beside it; store() rounds it to the tensor's dtype.
class RealOutput {
 public:
  explicit RealOutput(Tensor& tensor);
  std::span<double> numbers() const { return numbers_; }  // Zero at first.
  double* data() const { return numbers_.data(); }
  void store();

 private:
  Tensor& tensor_;
  std::vector<double> beside_;
  std::span<double> numbers_;
};

// Calls body(begin, end) on parts of [0, total), side by side where this thread has a Float64Scope and it is worth it; `cost` is about
// how many nanoseconds an element takes. Each element must be made alone, whatever the parts.
template <class Body>
void side_by_side_ranges(size_t total, double cost, const Body& body) {
  const Float64Help* const help = Float64Scope::current();
  constexpr double worth = 50000;  // Nanoseconds that pay for waking a thread.
  if (help == nullptr || help->pool == nullptr || static_cast<double>(total) * cost < 2 * worth) {
    if (total > 0) body(size_t{0}, total);
    return;
  }
  help->pool->ranges(total, static_cast<size_t>(worth / cost) + 1, body);
}

// out[i] = function(in[i]), of two tensors of one shape.
template <class Function>
void map_reals(const Tensor& in, Tensor& out, double cost, const Function& function) {
  const RealInput from(in);
  RealOutput to(out);
  const double* const x = from.data();
  double* const y = to.data();
  side_by_side_ranges(to.numbers().size(), cost, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = function(x[i]);
  });
  to.store();
}

// out[i] = function(a[i], b[i]), a and b broadcast to the shape of `out`.
template <class Function>
void combine_reals(const Tensor& a, const Tensor& b, Tensor& out, const Function& function);

// A broadcast pair as rows: element c of row r is a[rows[0][r] + c·steps[0]], likewise of b. A row is as long as the last axes allow
// that both step through evenly.
struct RowPair {
  RowPair(const Shape& a, const Shape& b, const Shape& shape);
  size_t length = 1;                // Of a row.
  std::array<int64_t, 2> steps{};   // 0 or 1.
  std::vector<std::array<int64_t, 2>> starts;
};

template <class Function>
void combine_reals(const Tensor& a, const Tensor& b, Tensor& out, const Function& function) {
  const RowPair rows(a.shape(), b.shape(), out.shape());
  const RealInput left(a), right(b);
  RealOutput to(out);
  if (to.numbers().empty()) return;
  const size_t length = rows.length;
  // Parts of rows, so that a few long ones are shared out too.
  side_by_side_ranges(to.numbers().size(), 1, [&](size_t begin, size_t end) {
    while (begin < end) {
      const size_t row = begin / length;
      const size_t first = begin - row * length;
      const size_t count = std::min(length - first, end - begin);
      const auto at = [&](size_t k) { return rows.starts[row][k] + rows.steps[k] * static_cast<int64_t>(first); };
      const double* const x = left.data() + at(0);
      const double* const y = right.data() + at(1);
      double* const z = to.data() + begin;
      if (rows.steps[0] == 1 && rows.steps[1] == 1) {
        for (size_t i = 0; i < count; ++i) z[i] = function(x[i], y[i]);
      } else if (rows.steps[0] == 1) {
        for (size_t i = 0; i < count; ++i) z[i] = function(x[i], *y);
      } else if (rows.steps[1] == 1) {
        for (size_t i = 0; i < count; ++i) z[i] = function(*x, y[i]);
      } else {
        std::fill_n(z, count, function(*x, *y));
      }
      begin += count;
    }
  });
  to.store();
}

}  // namespace unmoor
