// What becomes of sums before they are results. Included once a target.
#if defined(UNMOOR_CPU_SIMD_FINISH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNMOOR_CPU_SIMD_FINISH_INL_H
#undef UNMOOR_CPU_SIMD_FINISH_INL_H
#else
#define UNMOOR_CPU_SIMD_FINISH_INL_H
#endif

#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// What is added to a row of sums, each part null if there is none.
struct RowParts {
  const float* column_bias;
  const float* addend;
  const float* residual;
  float row_bias;
};

template <bool has_column, bool has_addend, bool has_residual>
void finish_row(float* y, size_t columns, const RowParts& parts, const Epilogue& e) {
  const V alpha = set(e.alpha);
  const V beta = set(e.beta);
  const V low = set(e.low);
  const V high = set(e.high);
  const V row_bias = set(parts.row_bias);
  const auto one = [&](size_t j, size_t n) HWY_ATTR {
    V bias = row_bias;
    if constexpr (has_column) bias = hn::Add(bias, load_n(parts.column_bias + j, n));
    if constexpr (has_addend) bias = hn::Add(bias, load_n(parts.addend + j, n));
    V value = hn::MulAdd(load_n(y + j, n), alpha, hn::Mul(bias, beta));
    if constexpr (has_residual) value = hn::Add(value, load_n(parts.residual + j, n));
    store_n(at_most(at_least(value, low), high), y + j, n);
  };
  size_t j = 0;
  for (; j + lanes <= columns; j += lanes) one(j, lanes);
  if (j < columns) one(j, columns - j);
}

using FinishRow = void (*)(float*, size_t, const RowParts&, const Epilogue&);
constexpr FinishRow finish_rows[] = {finish_row<false, false, false>, finish_row<false, false, true>,
                                     finish_row<false, true, false>,  finish_row<false, true, true>,
                                     finish_row<true, false, false>,  finish_row<true, false, true>,
                                     finish_row<true, true, false>,   finish_row<true, true, true>};

// The same, without `activate`, for n columns of sums, up to one vector, that lie `step` apart: what becomes of them is stored in
// c. With `accumulate`, c holds more sums.
inline void finish_column(const float* sums, size_t step, float* c, size_t rows, size_t n, size_t c_stride, bool accumulate,
                          const Epilogue& e) {
  const V alpha = set(e.alpha);
  const V beta = set(e.beta);
  const V low = set(e.low);
  const V high = set(e.high);
  const V column_bias = e.column_bias == nullptr ? hn::Zero(D()) : hn::Mul(load_n(e.column_bias, n), beta);
  for (size_t i = 0; i < rows; ++i) {
    float* const to = c + i * c_stride;
    V sum = hn::Load(D(), sums + i * step);
    if (accumulate) sum = hn::Add(sum, load_n(to, n));
    V bias = column_bias;
    if (e.row_bias != nullptr) bias = hn::Add(bias, set(e.row_bias[i] * e.beta));
    if (e.addend != nullptr) bias = hn::MulAdd(load_n(e.addend + i * e.addend_stride, n), beta, bias);
    V value = hn::MulAdd(sum, alpha, bias);
    if (e.residual != nullptr) value = hn::Add(value, load_n(e.residual + i * c_stride, n));
    store_n(at_most(at_least(value, low), high), to, n);
  }
}

inline void activate(float* c, size_t c_stride, size_t rows, size_t columns, const Epilogue& e) {
  if (e.activate == nullptr) return;
  for (size_t i = 0; i < rows; ++i) e.activate(c + i * c_stride, c + i * c_stride, columns, e.a, e.b);
}

inline void finish(float* c, size_t c_stride, size_t rows, size_t columns, const Epilogue& e) {
  const size_t kind = (e.column_bias != nullptr ? 4U : 0U) + (e.addend != nullptr ? 2U : 0U) + (e.residual != nullptr ? 1U : 0U);
  for (size_t i = 0; i < rows; ++i) {
    float* const y = c + i * c_stride;
    const RowParts parts{e.column_bias, e.addend == nullptr ? nullptr : e.addend + i * e.addend_stride,
                         e.residual == nullptr ? nullptr : e.residual + i * c_stride,
                         e.row_bias == nullptr ? 0.0F : e.row_bias[i]};
    finish_rows[kind](y, columns, parts, e);
  }
  activate(c, c_stride, rows, columns, e);
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
