#include "unmoor/backends/cpu/simd/winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/winograd.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// Six values to six points: the rows of B^T.
HWY_INLINE void to_points(const V* d, V* p) {
  const V two = set(2);
  const V four = set(4);
  const V five = set(5);
  const V a = hn::NegMulAdd(four, d[2], d[4]);
  const V b = hn::NegMulAdd(four, d[1], d[3]);
  const V e = hn::Sub(d[4], d[2]);
  const V f = hn::Mul(two, hn::Sub(d[3], d[1]));
  p[0] = hn::MulAdd(four, d[0], hn::NegMulAdd(five, d[2], d[4]));
  p[1] = hn::Add(a, b);
  p[2] = hn::Sub(a, b);
  p[3] = hn::Add(e, f);
  p[4] = hn::Sub(e, f);
  p[5] = hn::MulAdd(four, d[1], hn::NegMulAdd(five, d[3], d[5]));
}

// Six points to four values: the rows of A^T.
HWY_INLINE void to_values(const V* p, V* y) {
  const V a = hn::Add(p[1], p[2]);
  const V b = hn::Sub(p[1], p[2]);
  const V c = hn::Add(p[3], p[4]);
  const V d = hn::Sub(p[3], p[4]);
  y[0] = hn::Add(hn::Add(p[0], a), c);
  y[1] = hn::MulAdd(set(2), d, b);
  y[2] = hn::MulAdd(set(4), c, a);
  y[3] = hn::Add(hn::MulAdd(set(8), d, b), p[5]);
}

HWY_INLINE void input_part(const WinogradTile& t, size_t at, size_t n) {
  V down[winograd_points];  // By column, then point.
  HWY_UNROLL(6)
  for (size_t x = 0; x < winograd_in; ++x) {
    V column[winograd_in];
    HWY_UNROLL(6)
    for (size_t y = 0; y < winograd_in; ++y) {
      const float* const pixel = t.pixels[y * winograd_in + x];
      column[y] = pixel == nullptr ? set(0) : load_n(pixel + at, n);
    }
    to_points(column, down + x * winograd_in);
  }
  HWY_UNROLL(6)
  for (size_t y = 0; y < winograd_in; ++y) {
    V row[winograd_in];
    V points[winograd_in];
    HWY_UNROLL(6)
    for (size_t x = 0; x < winograd_in; ++x) row[x] = down[x * winograd_in + y];
    to_points(row, points);
    HWY_UNROLL(6)
    for (size_t x = 0; x < winograd_in; ++x) store_n(points[x], t.to + (y * winograd_in + x) * t.step + at, n);
  }
}

HWY_INLINE void output_part(const WinogradResult& r, size_t at, size_t n) {
  V down[winograd_in * winograd_out];  // By column of points, then row of values.
  HWY_UNROLL(6)
  for (size_t x = 0; x < winograd_in; ++x) {
    V column[winograd_in];
    HWY_UNROLL(6)
    for (size_t y = 0; y < winograd_in; ++y) column[y] = load_n(r.from + (y * winograd_in + x) * r.step + at, n);
    to_values(column, down + x * winograd_out);
  }
  for (size_t y = 0; y < r.rows; ++y) {
    V row[winograd_in];
    V values[winograd_out];
    HWY_UNROLL(6)
    for (size_t x = 0; x < winograd_in; ++x) row[x] = down[x * winograd_out + y];
    to_values(row, values);
    for (size_t x = 0; x < r.columns; ++x) store_n(values[x], r.to + y * r.row_step + x * r.pixel_step + at, n);
  }
}

HWY_INLINE void input_line_part(const WinogradTile& t, size_t at, size_t n) {
  V pixels[winograd_in];
  V points[winograd_in];
  HWY_UNROLL(6)
  for (size_t x = 0; x < winograd_in; ++x) pixels[x] = t.pixels[x] == nullptr ? set(0) : load_n(t.pixels[x] + at, n);
  to_points(pixels, points);
  HWY_UNROLL(6)
  for (size_t x = 0; x < winograd_in; ++x) store_n(points[x], t.to + x * t.step + at, n);
}

HWY_INLINE void output_line_part(const WinogradResult& r, size_t at, size_t n) {
  V points[winograd_in];
  V values[winograd_out];
  HWY_UNROLL(6)
  for (size_t x = 0; x < winograd_in; ++x) points[x] = load_n(r.from + x * r.step + at, n);
  to_values(points, values);
  for (size_t x = 0; x < r.columns; ++x) store_n(values[x], r.to + x * r.pixel_step + at, n);
}

// A tile's channels, as many at a time as a vector holds.
template <auto part, class Tile>
void by_lanes(const Tile& tile) {
  size_t at = 0;
  for (; at + lanes <= tile.channels; at += lanes) part(tile, at, lanes);
  if (at < tile.channels) part(tile, at, tile.channels - at);
}

const WinogradLoops& winograd_table() {
  static constexpr WinogradLoops table = {by_lanes<input_part>, by_lanes<output_part>, by_lanes<input_line_part>, by_lanes<output_line_part>};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(winograd_table);
const WinogradLoops& winograd_loops() { return HWY_DYNAMIC_DISPATCH(winograd_table)(); }

namespace {

// One line of three taps as six points: the rows of G.
std::array<double, winograd_in> kernel_points(double a, double b, double c) {
  return {a / 4, -(a + b + c) / 6, -(a - b + c) / 6, a / 24 + b / 12 + c / 6, a / 24 - b / 12 + c / 6, c};
}

}  // namespace

void winograd_kernel(const float* taps, size_t taps_step, float* points, size_t points_step) {
  constexpr size_t size = 3;
  std::array<double, size * size> g{};
  for (size_t i = 0; i < g.size(); ++i) {
    float tap = 0;
    std::memcpy(&tap, taps + i * taps_step, sizeof tap);  // Weights lie at any alignment.
    g[i] = static_cast<double>(tap);
  }
  std::array<std::array<double, winograd_in>, size> down{};  // By column, then point.
  for (size_t x = 0; x < size; ++x) down[x] = kernel_points(g[x], g[size + x], g[2 * size + x]);
  for (size_t y = 0; y < winograd_in; ++y) {
    const auto row = kernel_points(down[0][y], down[1][y], down[2][y]);
    for (size_t x = 0; x < winograd_in; ++x) points[(y * winograd_in + x) * points_step] = static_cast<float>(row[x]);
  }
}

void winograd_line_kernel(const float* taps, float* points, size_t points_step) {
  std::array<float, 3> g{};
  std::memcpy(g.data(), taps, sizeof g);
  const auto line = kernel_points(static_cast<double>(g[0]), static_cast<double>(g[1]), static_cast<double>(g[2]));
  for (size_t x = 0; x < winograd_in; ++x) points[x * points_step] = static_cast<float>(line[x]);
}

}  // namespace unmoor::cpu
#endif
