#include "unmoor/backends/cpu/simd/half.h"

#include "unmoor/tensor/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/half.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// Instructions that convert float16 came with AVX2; without them Highway's way rounds otherwise than to nearest.
#if HWY_TARGET <= HWY_AVX2
constexpr size_t f16_step = lanes;
using DH = hn::Rebind<hwy::float16_t, D>;

HWY_INLINE void widen_f16(const uint16_t* from, float* to) {
  store(hn::PromoteTo(D(), hn::LoadU(DH(), reinterpret_cast<const hwy::float16_t*>(from))), to);
}
HWY_INLINE void narrow_f16(const float* from, uint16_t* to) {
  hn::StoreU(hn::DemoteTo(DH(), load(from)), DH(), reinterpret_cast<hwy::float16_t*>(to));
}
#else
constexpr size_t f16_step = 1;
HWY_INLINE void widen_f16(const uint16_t* from, float* to) { *to = unmoor::from_f16(*from); }
HWY_INLINE void narrow_f16(const float* from, uint16_t* to) { *to = unmoor::to_f16(static_cast<double>(*from)); }
#endif

void widen_f16s(const uint16_t* from, size_t n, float* to) {
  size_t i = 0;
  for (; i + f16_step <= n; i += f16_step) widen_f16(from + i, to + i);
  for (; i < n; ++i) to[i] = unmoor::from_f16(from[i]);
}

void narrow_f16s(const float* from, size_t n, uint16_t* to) {
  size_t i = 0;
  for (; i + f16_step <= n; i += f16_step) narrow_f16(from + i, to + i);
  for (; i < n; ++i) to[i] = unmoor::to_f16(static_cast<double>(from[i]));
}

using DB = hn::Rebind<uint16_t, D>;
using DU = hn::RebindToUnsigned<D>;

void widen_bf16s(const uint16_t* from, size_t n, float* to) {
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    store(hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), hn::LoadU(DB(), from + i)))), to + i);
  }
  for (; i < n; ++i) to[i] = unmoor::from_bf16(from[i]);
}

void narrow_bf16s(const float* from, size_t n, uint16_t* to) {
  const DU d;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V x = load(from + i);
    const auto bits = hn::BitCast(d, x);
    const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), last);
    const auto nan = hn::Set(d, 0x7fc00000);
    const auto kept = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), nan, rounded);
    hn::StoreU(hn::TruncateTo(DB(), hn::ShiftRight<16>(kept)), DB(), to + i);
  }
  for (; i < n; ++i) to[i] = unmoor::to_bf16(static_cast<double>(from[i]));
}

const HalfLoops& half_table() {
  static constexpr HalfLoops table = {widen_f16s, narrow_f16s, widen_bf16s, narrow_bf16s};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(half_table);
const HalfLoops& half_loops() { return HWY_DYNAMIC_DISPATCH(half_table)(); }

}  // namespace unmoor::cpu
#endif
