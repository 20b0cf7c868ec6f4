// Products of few rows, bound by memory: B is read once. Included once a target.
#if defined(UNMOOR_CPU_SIMD_FEW_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNMOOR_CPU_SIMD_FEW_ROWS_INL_H
#undef UNMOOR_CPU_SIMD_FEW_ROWS_INL_H
#else
#define UNMOOR_CPU_SIMD_FEW_ROWS_INL_H
#endif

#include <algorithm>

#include "unmoor/backends/cpu/simd/finish-inl.h"
#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/backends/cpu/simd/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// R rows times P panels at once.
template <size_t R, size_t P>
void few_rows(const RowProduct& p, size_t panel) {
  constexpr size_t N = panel_columns / lanes;
  V c[P][R][N];
  HWY_UNROLL(16)
  for (size_t s = 0; s < P; ++s) {
    HWY_UNROLL(16)
    for (size_t i = 0; i < R; ++i) {
      HWY_UNROLL(16)
      for (size_t j = 0; j < N; ++j) c[s][i][j] = hn::Zero(D());
    }
  }
  const float* const b0 = p.b + panel * panel_columns * p.k;
  const size_t panel_step = panel_columns * p.k;
  for (size_t k = 0; k < p.k; ++k) {
    HWY_UNROLL(16)
    for (size_t s = 0; s < P; ++s) {
      const float* const b = b0 + s * panel_step + k * panel_columns;
      HWY_UNROLL(16)
      for (size_t j = 0; j < N; ++j) {
        const V row = load(b + j * lanes);
        HWY_UNROLL(16)
        for (size_t i = 0; i < R; ++i) c[s][i][j] = hn::MulAdd(set(p.a[i * p.a_stride + k]), row, c[s][i][j]);
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t s = 0; s < P; ++s) {
    HWY_UNROLL(16)
    for (size_t i = 0; i < R; ++i) {
      HWY_UNROLL(16)
      for (size_t j = 0; j < N; ++j) store(c[s][i][j], p.c + i * p.c_stride + (panel + s) * panel_columns + j * lanes);
    }
  }
}

// The last panel, where it is narrower.
template <size_t R>
void few_rows_tail(const RowProduct& p, size_t panel) {
  const size_t column = panel * panel_columns;
  const size_t columns = p.n - column;
  const size_t width = (columns + lanes - 1) / lanes * lanes;
  const float* const b = p.b + column * p.k;
  for (size_t j = 0; j < width; j += lanes) {
    V c[R];
    HWY_UNROLL(16)
    for (size_t i = 0; i < R; ++i) c[i] = hn::Zero(D());
    for (size_t k = 0; k < p.k; ++k) {
      const V row = load(b + k * width + j);
      HWY_UNROLL(16)
      for (size_t i = 0; i < R; ++i) c[i] = hn::MulAdd(set(p.a[i * p.a_stride + k]), row, c[i]);
    }
    HWY_UNROLL(16)
    for (size_t i = 0; i < R; ++i) store_n(c[i], p.c + i * p.c_stride + column + j, std::min(columns - j, lanes));
  }
}

template <size_t R, size_t P>
void few_rows_range(const RowProduct& p, size_t begin, size_t end) {
  const size_t whole = std::min(end, p.n / panel_columns);
  size_t panel = begin;
  for (; panel + P <= whole; panel += P) few_rows<R, P>(p, panel);
  for (; panel < whole; ++panel) few_rows<R, 1>(p, panel);
  for (; panel < end; ++panel) few_rows_tail<R>(p, panel);
}

inline void multiply_rows(const RowProduct& p, size_t begin, size_t end) {
  constexpr bool many = HWY_MAX_BYTES == 64;  // Registers: 32, else 16.
  switch (p.m) {
    case 1:
      few_rows_range<1, 4>(p, begin, end);
      break;
    case 2:
      few_rows_range<2, many ? 4 : 2>(p, begin, end);
      break;
    case 3:
      few_rows_range<3, many ? 3 : 1>(p, begin, end);
      break;
    default:
      few_rows_range<4, many ? 2 : 1>(p, begin, end);
      break;
  }
  if (!p.epilogue.is_identity()) {
    const size_t column = begin * panel_columns;
    finish(p.c + column, p.c_stride, p.m, std::min(p.n, end * panel_columns) - column, p.epilogue.at(0, column, p.c_stride));
  }
}

// Dots of `a` with rows of a transposed B, four at a time.
template <size_t R>
HWY_INLINE void dots(const float* a, const float* b, size_t step, size_t k, float* c) {
  V sum[R];
  HWY_UNROLL(16)
  for (size_t i = 0; i < R; ++i) sum[i] = hn::Zero(D());
  for (size_t at = 0; at < k; at += lanes) {
    const size_t n = std::min(lanes, k - at);
    const V x = load_n(a + at, n);
    HWY_UNROLL(16)
    for (size_t i = 0; i < R; ++i) sum[i] = hn::MulAdd(x, load_n(b + i * step + at, n), sum[i]);
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < R; ++i) c[i] = sum_of(sum[i]);
}

inline void multiply_unpacked(const float* a, const Strided& b, size_t k, size_t begin, size_t end, float* c) {
  size_t j = begin;
  if (b.row_step == 1 && b.column_step != 1) {
    for (; j + 4 <= end; j += 4) dots<4>(a, b.data + j * b.column_step, b.column_step, k, c + j);
    for (; j < end; ++j) dots<1>(a, b.data + j * b.column_step, b.column_step, k, c + j);
    return;
  }
  for (; j < end; j += 4 * lanes) {
    V sum[4];
    size_t size[4];
    for (size_t v = 0; v < 4; ++v) {
      sum[v] = hn::Zero(D());
      size[v] = std::min(lanes, end - std::min(end, j + v * lanes));
    }
    for (size_t i = 0; i < k; ++i) {
      const V x = set(a[i]);
      const float* const row = b.data + i * b.row_step + j;
      HWY_UNROLL(4)
      for (size_t v = 0; v < 4; ++v) sum[v] = hn::MulAdd(x, load_n(row + v * lanes, size[v]), sum[v]);
    }
    for (size_t v = 0; v < 4; ++v) store_n(sum[v], c + j + v * lanes, size[v]);
  }
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
