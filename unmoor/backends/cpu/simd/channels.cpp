#include "unmoor/backends/cpu/simd/channels.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/channels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

constexpr size_t many_pixels = HWY_MAX_BYTES == 64 ? 14 : 7;  // Whose sums stand in registers at once: feature maps are multiples of seven wide.

// Taps of a kernel row that meet the image at output pixel `x`: [begin, end).
struct Taps {
  size_t begin;
  size_t end;
};
HWY_INLINE Taps taps_at(const ChannelRow& r, size_t x) {
  const long start = static_cast<long>(x * r.stride) - r.pad;
  const auto dilation = static_cast<long>(r.dilation);
  const auto kernel = static_cast<long>(r.kernel_w);
  const long before = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  const long room = static_cast<long>(r.width) - start;  // Places from the first tap to the image's end.
  const long after = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  const long end = std::min(kernel, after);
  return {static_cast<size_t>(std::min(before, end)), static_cast<size_t>(std::max(end, 0L))};
}
HWY_INLINE const float* pixel_at(const ChannelRow& r, const float* row, size_t x, size_t tap) {
  return row + (static_cast<long>(x * r.stride + tap * r.dilation) - r.pad) * static_cast<long>(r.channels);
}

HWY_INLINE float* result_at(const ChannelRow& r, size_t x) { return r.y + x * (r.y_step == 0 ? r.channels : r.y_step); }

struct WeightedOp {
  const DepthwiseRow& d;
  HWY_INLINE V start(size_t channel, size_t n) const { return d.bias == nullptr ? set(0) : load_n(d.bias + channel, n); }
  HWY_INLINE V step(V y, V x, size_t tap, size_t channel, size_t n) const {
    return hn::MulAdd(x, load_n(d.weights + tap * d.row.channels + channel, n), y);
  }
  HWY_INLINE V end(V y) const { return at_most(at_least(y, set(d.low)), set(d.high)); }
};
struct LargestOp {
  HWY_INLINE V start(size_t, size_t) const { return set(-std::numeric_limits<float>::infinity()); }
  HWY_INLINE V step(V y, V x, size_t, size_t, size_t) const { return hn::IfThenElse(hn::IsNaN(y), y, at_least(x, y)); }
  HWY_INLINE V end(V y) const { return y; }
};
struct SumOp {
  HWY_INLINE V start(size_t, size_t) const { return set(0); }
  HWY_INLINE V step(V y, V x, size_t, size_t, size_t) const { return hn::Add(y, x); }
  HWY_INLINE V end(V y) const { return y; }
};

// N vectors of one pixel's channels, the last of n elements.
template <size_t N, class Op>
HWY_INLINE void one_pixel(const ChannelRow& r, const Op& op, size_t x, size_t channel, size_t n) {
  V sum[N];
  HWY_UNROLL(4)
  for (size_t j = 0; j < N; ++j) sum[j] = op.start(channel + j * lanes, n);
  const Taps taps = taps_at(r, x);
  for (size_t ky = 0; ky < r.kernel_h; ++ky) {
    if (r.rows[ky] == nullptr) continue;
    for (size_t kx = taps.begin; kx < taps.end; ++kx) {
      const float* const pixel = pixel_at(r, r.rows[ky], x, kx) + channel;
      HWY_UNROLL(4)
      for (size_t j = 0; j < N; ++j) sum[j] = op.step(sum[j], load_n(pixel + j * lanes, n), ky * r.kernel_w + kx, channel + j * lanes, n);
    }
  }
  HWY_UNROLL(4)
  for (size_t j = 0; j < N; ++j) store_n(op.end(sum[j]), result_at(r, x) + channel + j * lanes, n);
}

// Pixels [begin, end), channels [from, to).
template <class Op>
void each_pixel(const ChannelRow& r, const Op& op, size_t begin, size_t end, size_t from, size_t to) {
  if (from == to) return;
  for (size_t x = begin; x < end; ++x) {
    size_t channel = from;
    for (; channel + 4 * lanes <= to; channel += 4 * lanes) one_pixel<4>(r, op, x, channel, lanes);
    for (; channel + lanes <= to; channel += lanes) one_pixel<1>(r, op, x, channel, lanes);
    if (channel < to) one_pixel<1>(r, op, x, channel, to - channel);
  }
}

// P pixels of one vector of channels whose taps all meet the image: each input pixel is loaded once a kernel row.
template <size_t K, size_t S, size_t P>
HWY_INLINE void inner_pixels(const DepthwiseRow& d, size_t x, size_t channel) {
  const ChannelRow& r = d.row;
  V sum[P];
  const V start = d.bias == nullptr ? set(0) : load(d.bias + channel);
  HWY_UNROLL(16)
  for (size_t i = 0; i < P; ++i) sum[i] = start;
  for (size_t ky = 0; ky < r.kernel_h; ++ky) {
    if (r.rows[ky] == nullptr) continue;
    V weight[K];
    HWY_UNROLL(8)
    for (size_t kx = 0; kx < K; ++kx) weight[kx] = load(d.weights + (ky * K + kx) * r.channels + channel);
    const float* const pixel = pixel_at(r, r.rows[ky], x, 0) + channel;
    HWY_UNROLL(40)
    for (size_t at = 0; at < (P - 1) * S + K; ++at) {
      const V value = load(pixel + at * r.channels);
      HWY_UNROLL(8)
      for (size_t kx = 0; kx < K; ++kx) {
        if (at >= kx && (at - kx) % S == 0 && (at - kx) / S < P) sum[(at - kx) / S] = hn::MulAdd(value, weight[kx], sum[(at - kx) / S]);
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < P; ++i) store(at_most(at_least(sum[i], set(d.low)), set(d.high)), result_at(r, x + i) + channel);
}

template <size_t K, size_t S>
void depthwise_of(const DepthwiseRow& d) {
  const ChannelRow& r = d.row;
  // Output pixels [first, last) whose taps all meet the image.
  const auto pad = static_cast<size_t>(std::max(r.pad, 0L));
  const size_t first = std::min((pad + S - 1) / S, r.out_width);
  const long room = static_cast<long>(r.width) + r.pad - static_cast<long>(K);
  const size_t last = room < 0 ? first : std::clamp(static_cast<size_t>(room) / S + 1, first, r.out_width);
  const size_t whole = r.channels / lanes * lanes;
  const WeightedOp op{d};
  each_pixel(r, op, 0, first, 0, r.channels);
  each_pixel(r, op, last, r.out_width, 0, r.channels);
  each_pixel(r, op, first, last, whole, r.channels);
  for (size_t channel = 0; channel < whole; channel += lanes) {
    size_t x = first;
    for (; x + many_pixels <= last; x += many_pixels) inner_pixels<K, S, many_pixels>(d, x, channel);
    for (; x + 4 <= last; x += 4) inner_pixels<K, S, 4>(d, x, channel);
    for (; x < last; ++x) inner_pixels<K, S, 1>(d, x, channel);
  }
}

void depthwise(const DepthwiseRow& d) {
  const ChannelRow& r = d.row;
  const bool plain = r.dilation == 1 && r.stride <= 2;
  const size_t kernel = plain ? r.kernel_w * 2 + r.stride : 0;
  switch (kernel) {
    case 3 * 2 + 1: return depthwise_of<3, 1>(d);
    case 3 * 2 + 2: return depthwise_of<3, 2>(d);
    case 5 * 2 + 1: return depthwise_of<5, 1>(d);
    case 5 * 2 + 2: return depthwise_of<5, 2>(d);
    case 7 * 2 + 1: return depthwise_of<7, 1>(d);
    default: return each_pixel(r, WeightedOp{d}, 0, r.out_width, 0, r.channels);
  }
}

void largest(const ChannelRow& r) { each_pixel(r, LargestOp(), 0, r.out_width, 0, r.channels); }
void sum(const ChannelRow& r) { each_pixel(r, SumOp(), 0, r.out_width, 0, r.channels); }

const ChannelLoops& channel_table() {
  static constexpr ChannelLoops table = {depthwise, largest, sum};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(channel_table);
const ChannelLoops& channel_loops() { return HWY_DYNAMIC_DISPATCH(channel_table)(); }

}  // namespace unmoor::cpu
#endif
