#include "unmoor/backends/cpu/simd/plane.h"

#include <algorithm>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/plane.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

struct Weighted {
  const float* weights;
  V low;
  V high;
  HWY_INLINE V last(V sum) const { return at_most(at_least(sum, low), high); }
  HWY_INLINE V factor(size_t tap) const { return set(weights[tap]); }
  HWY_INLINE V operator()(V sum, V x, V w) const { return hn::MulAdd(x, w, sum); }
};
struct Largest {
  HWY_INLINE V last(V most) const { return most; }
  HWY_INLINE V factor(size_t) const { return hn::Zero(D()); }
  // NaN in either is kept.
  HWY_INLINE V operator()(V most, V x, V) const { return hn::IfThenElse(hn::IsNaN(most), most, at_least(x, most)); }
};
struct Summed {
  HWY_INLINE V last(V sum) const { return sum; }
  HWY_INLINE V factor(size_t) const { return hn::Zero(D()); }
  HWY_INLINE V operator()(V sum, V x, V) const { return hn::Add(sum, x); }
};

// N vectors of outputs from i on.
template <size_t N, class F>
HWY_INLINE void outputs(const PlaneWindows& w, const F& f, float start, size_t i) {
  V y[N];
  HWY_UNROLL(8)
  for (size_t v = 0; v < N; ++v) y[v] = set(start);
  for (size_t tap = 0; tap < w.taps; ++tap) {
    const float* const x = w.plane + w.offsets[tap] + i;
    const V factor = f.factor(tap);
    HWY_UNROLL(8)
    for (size_t v = 0; v < N; ++v) y[v] = f(y[v], load(x + v * lanes), factor);
  }
  HWY_UNROLL(8)
  for (size_t v = 0; v < N; ++v) store(f.last(y[v]), w.y + i + v * lanes);
}

template <class F>
HWY_INLINE void slide(const PlaneWindows& w, const F& f, float start) {
  size_t i = 0;
  for (; i + 8 * lanes <= w.n; i += 8 * lanes) outputs<8>(w, f, start, i);
  for (; i + 4 * lanes <= w.n; i += 4 * lanes) outputs<4>(w, f, start, i);
  for (; i < w.n; i += lanes) outputs<1>(w, f, start, i);
}

void weighted(const PlaneWindows& windows, const float* weights, float bias, float low, float high) {
  slide(windows, Weighted{weights, set(low), set(high)}, bias);
}
void largest(const PlaneWindows& windows) { slide(windows, Largest(), -std::numeric_limits<float>::infinity()); }
void sum(const PlaneWindows& windows) { slide(windows, Summed(), 0); }

void copy_rows(const float* from, size_t from_step, float* to, size_t to_step, size_t rows, size_t n) {
  for (size_t row = 0; row < rows; ++row) {
    const float* const x = from + row * from_step;
    float* const y = to + row * to_step;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) store(load(x + i), y + i);
    if (i < n) store_n(load_n(x + i, n - i), y + i, n - i);
  }
}

void spread(const float* from, size_t n, size_t stride, float* const* to) {
  if (stride == 1) {
    std::memcpy(to[0], from, n * sizeof(float));
    return;
  }
  size_t i = 0;
#if HWY_MAX_BYTES >= 16 && HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    for (; 2 * (i + lanes) <= n; i += lanes) {
      V even;
      V odd;
      hn::LoadInterleaved2(D(), from + 2 * i, even, odd);
      store(even, to[0] + i);
      store(odd, to[1] + i);
    }
  }
#endif
  for (size_t at = i * stride; at < n; ++i) {
    for (size_t j = 0; j < stride && at < n; ++j, ++at) to[j][i] = from[at];
  }
}

const PlaneLoops& plane_table() {
  static constexpr PlaneLoops table = {weighted, largest, sum, copy_rows, spread};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(plane_table);
const PlaneLoops& plane_loops() { return HWY_DYNAMIC_DISPATCH(plane_table)(); }

}  // namespace unmoor::cpu
#endif
