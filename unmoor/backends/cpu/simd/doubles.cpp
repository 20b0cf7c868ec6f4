#include "unmoor/backends/cpu/simd/doubles.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/doubles.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;
constexpr size_t double_lanes = HWY_LANES(double);
constexpr size_t double_rows = 6;  // With two vectors a row the sums and what they need fit 16 registers.
constexpr size_t double_columns = 2 * double_lanes;

// C[rows][columns] += A B over k steps; rows of B are b_step apart and a panel wide.
struct DoubleTile {
  const double* a;
  size_t a_step;
  const double* b;
  size_t b_step;
  size_t k;
  double* c;
  size_t c_step;
  size_t columns;
};

template <size_t R>
void double_tile(const DoubleTile& t) {
  VD sums[R][2];
  HWY_UNROLL(8)
  for (size_t i = 0; i < R; ++i) sums[i][0] = sums[i][1] = hn::Zero(DD());
  const double* b = t.b;
  for (size_t p = 0; p < t.k; ++p, b += t.b_step) {
    const VD left = hn::LoadU(DD(), b);
    const VD right = hn::LoadU(DD(), b + double_lanes);
    HWY_UNROLL(8)
    for (size_t i = 0; i < R; ++i) {
      const VD x = hn::Set(DD(), t.a[i * t.a_step + p]);
      sums[i][0] = hn::MulAdd(x, left, sums[i][0]);
      sums[i][1] = hn::MulAdd(x, right, sums[i][1]);
    }
  }
  for (size_t i = 0; i < R; ++i) {
    double* const c = t.c + i * t.c_step;
    if (t.columns == double_columns) {
      hn::StoreU(hn::Add(hn::LoadU(DD(), c), sums[i][0]), DD(), c);
      hn::StoreU(hn::Add(hn::LoadU(DD(), c + double_lanes), sums[i][1]), DD(), c + double_lanes);
      continue;
    }
    HWY_ALIGN double row[double_columns];
    hn::Store(sums[i][0], DD(), row);
    hn::Store(sums[i][1], DD(), row + double_lanes);
    for (size_t j = 0; j < t.columns; ++j) c[j] += row[j];
  }
}

using DoubleTileLoop = void (*)(const DoubleTile&);
template <size_t... R>
constexpr DoubleTileLoop double_tile_of(size_t rows, std::index_sequence<R...> /*rows*/) {
  constexpr DoubleTileLoop by_rows[] = {double_tile<R + 1>...};
  return by_rows[rows - 1];
}

void pack_double_panel(const double* b, size_t n, size_t k, size_t columns, double* to) {
  for (size_t p = 0; p < k; ++p, b += n, to += double_columns) {
    std::copy_n(b, columns, to);
    std::fill(to + columns, to + double_columns, 0.0);
  }
}

// As many rows of A as a second-level cache holds of a block of its columns, beside a panel.
constexpr size_t double_block_rows = 32 * double_rows;

void add_double_rows(const double* a, const double* b, double* c, size_t m, size_t n, size_t k, size_t begin, size_t end,
                     double* panel) {
  for (size_t from = 0; from < k; from += DoubleLoops::depth) {
    const size_t steps = std::min(DoubleLoops::depth, k - from);
    for (size_t j = begin; j < end; j += double_columns) {
      const size_t columns = std::min(double_columns, end - j);
      // Packing pays where it is read more than once.
      const bool packed = m > double_rows || columns < double_columns;
      if (packed) pack_double_panel(b + from * n + j, n, steps, columns, panel);
      for (size_t i = 0; i < m; i += double_rows) {
        const size_t rows = std::min(double_rows, m - i);
        double_tile_of(rows, std::make_index_sequence<double_rows>())({.a = a + i * k + from,
                                                                       .a_step = k,
                                                                       .b = packed ? panel : b + from * n + j,
                                                                       .b_step = packed ? double_columns : n,
                                                                       .k = steps,
                                                                       .c = c + i * n + j,
                                                                       .c_step = n,
                                                                       .columns = columns});
      }
    }
  }
}

void add_double_product(const double* a, const double* b, double* c, size_t m, size_t n, size_t k, size_t begin, size_t end,
                        double* panel) {
  for (size_t i = 0; i < m; i += double_block_rows)
    add_double_rows(a + i * k, b, c + i * n, std::min(double_block_rows, m - i), n, k, begin, end, panel);
}

const DoubleLoops& double_table() {
  static constexpr DoubleLoops table = {double_columns, add_double_product};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(double_table);
const DoubleLoops& double_loops() { return HWY_DYNAMIC_DISPATCH(double_table)(); }

}  // namespace unmoor::cpu
#endif
