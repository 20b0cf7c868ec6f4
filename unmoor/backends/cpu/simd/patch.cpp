#include "unmoor/backends/cpu/simd/patch.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/patch.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// Each store is a whole vector, zeros behind the run; what comes next in the row overwrites them.
HWY_INLINE void copy_run(const float* from, size_t count, float* row, size_t to, size_t width) {
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(load(from + i), row + to + i);
  if (i < count) store_n(load_n(from + i, count - i), row + to + i, std::min(lanes, width - to - i));
}

void pack_patches(const PatchPanel& p) {
  float* row = p.to;
  for (size_t c = 0; c < p.channels; ++c) {
    const float* const channel = p.channel + c * p.channel_step;
    for (size_t t = 0; t < p.tap_count; ++t, row += p.width) {
      const PatchTap& tap = p.taps[t];
      if (tap.count != 1 || tap.copies[0].count != p.width) {
        for (size_t j = 0; j < p.width; j += lanes) store(hn::Zero(D()), row + j);
      }
      for (size_t i = 0; i < tap.count; ++i) copy_run(channel + tap.copies[i].from, tap.copies[i].count, row, tap.copies[i].to, p.width);
    }
  }
}

const PatchLoops& patch_table() {
  static constexpr PatchLoops table = {pack_patches};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(patch_table);
const PatchLoops& patch_loops() { return HWY_DYNAMIC_DISPATCH(patch_table)(); }

}  // namespace unmoor::cpu
#endif
