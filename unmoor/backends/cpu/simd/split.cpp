#include "unmoor/backends/cpu/simd/split.h"

#include <algorithm>
#include <cstring>

#include "unmoor/backends/cpu/amx/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/split.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;
using D16 = hn::Rebind<uint16_t, D>;

// Each part as a float whose lower half is zero.
struct Parts {
  VU part[3];
};

HWY_INLINE VU nearest_bf16(V x) {
  const DU d;
  const VU bits = hn::BitCast(d, x);
  const VU last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  return hn::And(hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), last), hn::Set(d, 0xffff0000));
}

// What is left for the last part has no more than eight bits. A NaN whose bits round to no NaN is one in the last.
HWY_INLINE Parts split(V x) {
  const DU d;
  Parts parts;
  parts.part[0] = nearest_bf16(x);
  x = hn::Sub(x, hn::BitCast(D(), parts.part[0]));
  parts.part[1] = nearest_bf16(x);
  x = hn::Sub(x, hn::BitCast(D(), parts.part[1]));
  parts.part[2] = hn::And(hn::BitCast(d, x), hn::Set(d, 0xffff0000));
  return parts;
}

constexpr uint32_t least_magnitude = (127U - 60U) << 23;  // 2^-60, in bits.

// One row of A into its place in all sets. Returns the bits of the largest magnitude.
HWY_INLINE uint32_t split_row(const float* a, size_t k, uint16_t* to) {
  const DU d;
  VU largest = hn::Zero(d);
  for (size_t begin = 0; begin < k; begin += set_depth, to += set_values) {
    for (size_t i = 0; i < set_depth; i += lanes) {
      const V x = begin + i < k ? load_n(a + begin + i, std::min(lanes, k - begin - i)) : hn::Zero(D());
      largest = hn::Max(largest, hn::BitCast(d, hn::Abs(x)));
      const Parts parts = split(x);
      for (size_t p = 0; p < 3; ++p) hn::StoreU(hn::TruncateTo(D16(), hn::ShiftRight<16>(parts.part[p])), D16(), to + 2 * p * tile_values + i);
    }
  }
  HWY_ALIGN uint32_t by_lane[lanes];
  hn::Store(largest, d, by_lane);
  return *std::max_element(by_lane, by_lane + lanes);
}

void split_rows(const float* a, size_t step, size_t rows, size_t k, uint16_t* sets) {
  const size_t steps = (k + set_depth - 1) / set_depth;
  for (size_t row = 0; row < set_rows; ++row) {
    uint16_t* const to = sets + row / 16 * tile_values + row % 16 * set_depth;
    if (row < rows) {
      const uint32_t largest = split_row(a + row * step, k, to);
      if (largest != 0 && largest < least_magnitude) *to = 0x7fc0;
      continue;
    }
    for (size_t s = 0; s < steps; ++s) {
      for (size_t p = 0; p < 3; ++p) std::fill_n(to + s * set_values + 2 * p * tile_values, set_depth, uint16_t{0});
    }
  }
}

void split_columns(const float* b, size_t step, uint16_t* set) {
  const DU d;
  for (size_t pair = 0; pair < set_depth / 2; ++pair, b += 2 * step) {
    for (size_t j = 0; j < set_rows; j += lanes) {
      const Parts first = split(load(b + j));
      const Parts second = split(load(b + step + j));
      for (size_t p = 0; p < 3; ++p) {
        uint16_t* const to = set + (2 * p + j / 16) * tile_values + pair * 32 + j % 16 * 2;
        hn::StoreU(hn::Or(hn::ShiftRight<16>(first.part[p]), second.part[p]), d, reinterpret_cast<uint32_t*>(to));
      }
    }
  }
}

void join_columns(const uint16_t* set, float* b) {
  const DU d;
  for (size_t pair = 0; pair < set_depth / 2; ++pair) {
    for (size_t j = 0; j < set_rows; j += lanes) {
      V first = hn::Zero(D());
      V second = hn::Zero(D());
      for (size_t p = 0; p < 3; ++p) {
        const uint16_t* const from = set + (2 * p + j / 16) * tile_values + pair * 32 + j % 16 * 2;
        const VU both = hn::LoadU(d, reinterpret_cast<const uint32_t*>(from));
        first = hn::Add(first, hn::BitCast(D(), hn::ShiftLeft<16>(both)));
        second = hn::Add(second, hn::BitCast(D(), hn::And(both, hn::Set(d, 0xffff0000))));
      }
      store(first, b + 2 * pair * set_rows + j);
      store(second, b + (2 * pair + 1) * set_rows + j);
    }
  }
}

void add_sums(const float* from, size_t count, float* to) {
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(hn::Add(load(to + i), load(from + i)), to + i);
  if (i < count) store_n(hn::Add(load_n(to + i, count - i), load_n(from + i, count - i)), to + i, count - i);
}

bool take_sums(const float* sums, size_t rows, size_t columns, float* c, size_t c_stride) {
  V difference = hn::Zero(D());  // Of each sum from itself: 0, or NaN.
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; j += lanes) {
      const size_t n = std::min(lanes, columns - j);
      const V x = load_n(sums + i * set_rows + j, n);
      difference = hn::Add(difference, hn::Sub(x, x));
      store_n(x, c + i * c_stride + j, n);
    }
  }
  return sum_of(difference) == 0;
}

const SplitLoops& split_table() {
  static constexpr SplitLoops table = {split_rows, split_columns, join_columns, add_sums, take_sums};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(split_table);
const SplitLoops& split_loops() { return HWY_DYNAMIC_DISPATCH(split_table)(); }

size_t first_unsplit(const float* numbers, size_t count) {
  constexpr uint32_t least = (127U - 103U) << 23;  // 2^-103: its last bit is the smallest normal.
  constexpr uint32_t beyond = 0x7f7f8000;          // What rounds to no finite bfloat16.
  const auto is_unsplit = [&](size_t i) {
    uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(numbers) + i * sizeof bits, sizeof bits);
    bits &= 0x7fffffff;
    return bits - 1 < least - 1 || bits >= beyond;
  };
  constexpr size_t part = 4096;
  for (size_t begin = 0; begin < count; begin += part) {
    const size_t end = std::min(begin + part, count);
    uint32_t found = 0;
    for (size_t i = begin; i < end; ++i) found |= is_unsplit(i) ? 1U : 0U;
    for (size_t i = begin; found != 0 && i < end; ++i) {
      if (is_unsplit(i)) return i;
    }
  }
  return count;
}

}  // namespace unmoor::cpu
#endif
