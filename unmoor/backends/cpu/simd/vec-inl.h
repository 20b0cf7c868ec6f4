// Vectors of float32 for the target being compiled, and what Highway lacks for our loops. Included once a target.
#if defined(UNMOOR_CPU_SIMD_VEC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNMOOR_CPU_SIMD_VEC_INL_H
#undef UNMOOR_CPU_SIMD_VEC_INL_H
#else
#define UNMOOR_CPU_SIMD_VEC_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
using M = hn::Mask<D>;
constexpr size_t lanes = HWY_LANES(float);

HWY_INLINE V set(float value) { return hn::Set(D(), value); }
HWY_INLINE V load(const float* from) { return hn::LoadU(D(), from); }
HWY_INLINE void store(V value, float* to) { hn::StoreU(value, D(), to); }

// The first n of up to `lanes` floats, zeros behind. Touches no memory behind them.
HWY_INLINE V load_n(const float* from, size_t n) {
  if (n >= lanes) {
    return load(from);
  }
#if HWY_MAX_BYTES >= 32
  return hn::MaskedLoad(hn::FirstN(D(), n), D(), from);
#else
  HWY_ALIGN float part[lanes] = {};
  for (size_t i = 0; i < n; ++i) {
    part[i] = from[i];
  }
  return hn::Load(D(), part);
#endif
}

HWY_INLINE void store_n(V value, float* to, size_t n) {
  if (n >= lanes) {
    store(value, to);
    return;
  }
#if HWY_MAX_BYTES >= 32
  hn::BlendedStore(value, hn::FirstN(D(), n), D(), to);
#else
  HWY_ALIGN float part[lanes];
  hn::Store(value, D(), part);
  for (size_t i = 0; i < n; ++i) {
    to[i] = part[i];
  }
#endif
}

// max(x, low) and min(x, high), where a NaN in x stays.
HWY_INLINE V at_least(V x, V low) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#else
  return hn::Max(low, x);
#endif
}
HWY_INLINE V at_most(V x, V high) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Lt(high, x), high, x);
#else
  return hn::Min(high, x);
#endif
}

HWY_INLINE float sum_of(V x) { return hn::GetLane(hn::SumOfLanes(D(), x)); }
HWY_INLINE float max_of(V x) { return hn::GetLane(hn::MaxOfLanes(D(), x)); }

// y[i] = f(x[i]); x and y may be the same.
template <class F>
HWY_INLINE void map(const float* x, float* y, size_t n, const F& f) {
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    store(f(load(x + i)), y + i);
  }
  if (i < n) {
    store_n(f(load_n(x + i, n - i)), y + i, n - i);
  }
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
