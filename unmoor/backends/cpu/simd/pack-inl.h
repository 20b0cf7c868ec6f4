// The tile of matrix products and the packing of their operands. Included once a target.
#if defined(UNMOOR_CPU_SIMD_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNMOOR_CPU_SIMD_PACK_INL_H
#undef UNMOOR_CPU_SIMD_PACK_INL_H
#else
#define UNMOOR_CPU_SIMD_PACK_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// Sums fill the registers: 8 x 3 vectors of 32, 6 x 2 of AVX2's 16; elsewhere 4 x 2.
constexpr size_t tile_rows = HWY_MAX_BYTES == 64 ? 8 : HWY_MAX_BYTES == 32 ? 6 : 4;
constexpr size_t panel_columns = (HWY_MAX_BYTES == 64 ? 3 : 2) * lanes;

// Rows of the piece that starts where `rest` rows are left.
HWY_INLINE size_t piece_rows(size_t rest) { return rest >= tile_rows ? tile_rows : rest >= 4 ? 4 : rest >= 2 ? 2 : 1; }

// Weights lie in mapped files at any alignment.
HWY_INLINE float read(const float* from) {
  float value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns.
inline void transpose(const float* from, size_t from_step, size_t rows, size_t columns, float* to, size_t to_step) {
  size_t i = 0;
#if HWY_MAX_BYTES >= 16 && HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> dd;
  for (; i + 4 <= rows; i += 4) {
    const float* const f = from + i * from_step;
    size_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      const auto r0 = hn::LoadU(d, f + j);
      const auto r1 = hn::LoadU(d, f + from_step + j);
      const auto r2 = hn::LoadU(d, f + 2 * from_step + j);
      const auto r3 = hn::LoadU(d, f + 3 * from_step + j);
      const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
      float* const t = to + j * to_step + i;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, low01, low23)), d, t);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23)), d, t + to_step);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, high01, high23)), d, t + 2 * to_step);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23)), d, t + 3 * to_step);
    }
    for (; j < columns; ++j) {
      for (size_t u = 0; u < 4; ++u) to[j * to_step + i + u] = read(f + u * from_step + j);
    }
  }
#endif
  for (; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) to[j * to_step + i] = read(from + i * from_step + j);
  }
}

inline void pack_a(const Strided& a, size_t rows, size_t k, float* to) {
  for (size_t row = 0; row < rows;) {
    const size_t size = piece_rows(rows - row);
    float* const piece = to + row * k;
    const float* const from = a.data + row * a.row_step;
    if (a.column_step == 1) {
      transpose(from, a.row_step, size, k, piece, size);
    } else {
      for (size_t j = 0; j < k; ++j) {
        for (size_t i = 0; i < size; ++i) piece[j * size + i] = read(from + i * a.row_step + j * a.column_step);
      }
    }
    row += size;
  }
}

inline void pack_b(const Strided& b, size_t n, size_t k, size_t begin, size_t end, float* to) {
  for (size_t panel = begin; panel < end; ++panel) {
    const size_t column = panel * panel_columns;
    const size_t columns = std::min(panel_columns, n - column);
    const size_t width = (columns + lanes - 1) / lanes * lanes;
    float* const out = to + column * k;
    const float* const from = b.data + column * b.column_step;
    if (b.column_step != 1) {
      // In blocks of k, so that the cache lines being written stay near.
      constexpr size_t part = 64;
      for (size_t i = 0; i < k; i += part) {
        transpose(from + i * b.row_step, b.column_step, columns, std::min(part, k - i), out + i * width, width);
      }
    } else {
      for (size_t i = 0; i < k; ++i) std::memcpy(out + i * width, from + i * b.row_step, columns * sizeof(float));
    }
    if (columns < width) {
      for (size_t i = 0; i < k; ++i) std::fill(out + i * width + columns, out + (i + 1) * width, 0.0F);
    }
  }
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
