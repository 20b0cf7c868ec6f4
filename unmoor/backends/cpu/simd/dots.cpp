#include "unmoor/backends/cpu/simd/dots.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/dots.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// Eight sums at once hide what an addition takes.
template <size_t windows, size_t outputs>
void dot_tile(const Dots& d, const float* x, const float* w, size_t to_step, float* to) {
  V sums[windows][outputs];
  HWY_UNROLL(8)
  for (size_t i = 0; i < windows; ++i) {
    for (size_t o = 0; o < outputs; ++o) sums[i][o] = hn::Zero(D());
  }
  for (size_t run = 0; run < d.runs; ++run, x += d.x_run, w += d.w_run) {
    size_t j = 0;
    for (; j + lanes <= d.run; j += lanes) {
      V weights[outputs];
      for (size_t o = 0; o < outputs; ++o) weights[o] = load(w + o * d.w_step + j);
      HWY_UNROLL(8)
      for (size_t i = 0; i < windows; ++i) {
        const V seen = load(x + i * d.x_step + j);
        for (size_t o = 0; o < outputs; ++o) sums[i][o] = hn::MulAdd(seen, weights[o], sums[i][o]);
      }
    }
    if (j == d.run) continue;
    for (size_t o = 0; o < outputs; ++o) {
      const V weights = load_n(w + o * d.w_step + j, d.run - j);
      for (size_t i = 0; i < windows; ++i) sums[i][o] = hn::MulAdd(load_n(x + i * d.x_step + j, d.run - j), weights, sums[i][o]);
    }
  }
  for (size_t i = 0; i < windows; ++i) {
    for (size_t o = 0; o < outputs; ++o) to[i * to_step + o] = sum_of(sums[i][o]);
  }
}

template <size_t outputs>
void dot_windows(const Dots& d, size_t windows, const float* w, size_t to_step, float* to) {
  constexpr size_t together = 8 / outputs;
  size_t i = 0;
  for (; i + together <= windows; i += together) dot_tile<together, outputs>(d, d.x + i * d.x_step, w, to_step, to + i * to_step);
  for (; i < windows; ++i) dot_tile<1, outputs>(d, d.x + i * d.x_step, w, to_step, to + i * to_step);
}

void dot_multiply(const Dots& d, size_t windows, size_t outputs, float* to) {
  size_t o = 0;
  for (; o + 2 <= outputs; o += 2) dot_windows<2>(d, windows, d.w + o * d.w_step, outputs, to + o);
  if (o < outputs) dot_windows<1>(d, windows, d.w + o * d.w_step, outputs, to + o);
}

const DotLoops& dot_table() {
  static constexpr DotLoops table = {dot_multiply};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(dot_table);
const DotLoops& dot_loops() { return HWY_DYNAMIC_DISPATCH(dot_table)(); }

}  // namespace unmoor::cpu
#endif
