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

HWY_INLINE V finish_vector(V sum, const Epilogue& e, float row_bias, const float* addend, const float* residual, size_t j, size_t n) {
  V bias = set(row_bias);
  if (e.column_bias != nullptr) bias = hn::Add(bias, load_n(e.column_bias + j, n));
  if (addend != nullptr) bias = hn::Add(bias, load_n(addend + j, n));
  V y = hn::MulAdd(sum, set(e.alpha), hn::Mul(bias, set(e.beta)));
  if (residual != nullptr) y = hn::Add(y, load_n(residual + j, n));
  return at_most(at_least(y, set(e.low)), set(e.high));
}

inline void finish(float* c, size_t c_stride, size_t rows, size_t columns, const Epilogue& e) {
  for (size_t i = 0; i < rows; ++i) {
    float* const y = c + i * c_stride;
    const float row_bias = e.row_bias == nullptr ? 0.0F : e.row_bias[i];
    const float* const addend = e.addend == nullptr ? nullptr : e.addend + i * e.addend_stride;
    const float* const residual = e.residual == nullptr ? nullptr : e.residual + i * c_stride;
    for (size_t j = 0; j < columns; j += lanes) {
      const size_t n = columns - j < lanes ? columns - j : lanes;
      store_n(finish_vector(load_n(y + j, n), e, row_bias, addend, residual, j, n), y + j, n);
    }
    if (e.activate != nullptr) e.activate(y, y, columns, e.a, e.b);
  }
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
