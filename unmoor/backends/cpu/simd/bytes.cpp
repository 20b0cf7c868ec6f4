#include "unmoor/backends/cpu/simd/bytes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/bytes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

constexpr size_t byte_columns = 2 * lanes;
constexpr size_t byte_rows = 6;  // Twelve sums, two vectors of B, one of A and one product fill 16 registers.

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <size_t R>
void byte_tile(const ByteProduct& p, const int16_t* a, const int8_t* b, size_t pairs, int32_t* c, size_t c_stride,
               bool accumulate) {
  for (size_t i = 0; i < R; ++i) {
    for (size_t j = 0; j < byte_columns; ++j) {
      int32_t sum = accumulate ? c[i * c_stride + j] : 0;
      for (size_t q = 0; q < pairs; ++q) {
        const int8_t* const both = b + (q * byte_columns + j) * 2;
        sum += a[i * p.a_stride + 2 * q] * both[0] + a[i * p.a_stride + 2 * q + 1] * both[1];
      }
      c[i * c_stride + j] = sum;
    }
  }
}

#else

using D16 = hn::Repartition<int16_t, D>;
using D8 = hn::Rebind<int8_t, D16>;

// sum + a[even] b[even] + a[odd] b[odd], each in int32.
HWY_INLINE VI add_pairs(hn::Vec<D16> a, hn::Vec<D16> b, VI sum) {
#if HWY_ARCH_X86
  VI unused = sum;
  return hn::ReorderWidenMulAccumulate(DI(), a, b, sum, unused);
#else
  const auto wide_a = hn::BitCast(DI(), a);
  const auto wide_b = hn::BitCast(DI(), b);
  const auto low = [](VI x) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(x)); };
  const VI odd = hn::Mul(hn::ShiftRight<16>(wide_a), hn::ShiftRight<16>(wide_b));
  return hn::Add(hn::Add(sum, odd), hn::Mul(low(wide_a), low(wide_b)));
#endif
}

HWY_INLINE hn::Vec<D16> both_of(const int16_t* from) {
  int32_t both;
  std::memcpy(&both, from, sizeof both);
  return hn::BitCast(D16(), hn::Set(DI(), both));
}

template <size_t R>
void byte_tile(const ByteProduct& p, const int16_t* a, const int8_t* b, size_t pairs, int32_t* c, size_t c_stride,
               bool accumulate) {
  VI sums[R][2];
  HWY_UNROLL(8)
  for (size_t i = 0; i < R; ++i) {
    sums[i][0] = accumulate ? hn::LoadU(DI(), c + i * c_stride) : hn::Zero(DI());
    sums[i][1] = accumulate ? hn::LoadU(DI(), c + i * c_stride + lanes) : hn::Zero(DI());
  }
  for (size_t q = 0; q < pairs; ++q) {
    const auto first = hn::PromoteTo(D16(), hn::LoadU(D8(), b));
    const auto second = hn::PromoteTo(D16(), hn::LoadU(D8(), b + 2 * lanes));
    b += 2 * byte_columns;
    HWY_UNROLL(8)
    for (size_t i = 0; i < R; ++i) {
      const auto x = both_of(a + i * p.a_stride);
      sums[i][0] = add_pairs(x, first, sums[i][0]);
      sums[i][1] = add_pairs(x, second, sums[i][1]);
    }
    a += 2;
  }
  HWY_UNROLL(8)
  for (size_t i = 0; i < R; ++i) {
    hn::StoreU(sums[i][0], DI(), c + i * c_stride);
    hn::StoreU(sums[i][1], DI(), c + i * c_stride + lanes);
  }
}

#endif

using ByteTile = void (*)(const ByteProduct&, const int16_t*, const int8_t*, size_t, int32_t*, size_t, bool);
constexpr ByteTile byte_tiles[] = {byte_tile<1>, byte_tile<2>, byte_tile<3>, byte_tile<4>, byte_tile<5>, byte_tile<6>};

// Parts of k outermost, so that a panel's part stays in L1 for all rows.
void byte_multiply(const ByteProduct& p, size_t begin, size_t end, int32_t* c, size_t c_stride) {
  constexpr size_t most = 384;  // Pairs in a part.
  const size_t parts = std::max<size_t>((p.pairs + most - 1) / most, 1);
  for (size_t part = 0; part < parts; ++part) {
    const size_t first = p.pairs * part / parts;
    const size_t pairs = p.pairs * (part + 1) / parts - first;
    for (size_t panel = begin; panel < end; ++panel) {
      const int8_t* const b = p.b + (panel * p.pairs + first) * 2 * byte_columns;
      int32_t* const to = c + (panel - begin) * byte_columns;
      for (size_t row = 0; row < p.rows;) {
        const size_t rest = p.rows - row;
        const size_t rows = rest == byte_rows + 1 || rest == byte_rows + 2 ? 4 : std::min(rest, byte_rows);
        byte_tiles[rows - 1](p, p.a + row * p.a_stride + 2 * first, b, pairs, to + row * c_stride, c_stride, part != 0);
        row += rows;
      }
    }
  }
}

void interleave(const uint8_t* even, const uint8_t* odd, uint8_t flip, uint8_t* to) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  for (size_t j = 0; j < byte_columns; ++j) {
    to[2 * j] = even[j] ^ flip;
    to[2 * j + 1] = odd[j] ^ flip;
  }
#else
  const hn::CappedTag<uint8_t, byte_columns> d;
  const auto turned = hn::Set(d, flip);
  for (size_t j = 0; j < byte_columns; j += hn::Lanes(d)) {
    hn::StoreInterleaved2(hn::Xor(hn::LoadU(d, even + j), turned), hn::Xor(hn::LoadU(d, odd + j), turned), d, to + 2 * j);
  }
#endif
}

HWY_INLINE VI load_whole(const int32_t* from, size_t n) {
  if (n >= lanes) return hn::LoadU(DI(), from);
  HWY_ALIGN int32_t part[lanes] = {};
  std::copy_n(from, n, part);
  return hn::Load(DI(), part);
}

template <bool has_zeros>
void scaled_row(const int32_t* sums, size_t n, const ByteScaling& s, float* to) {
  const V scale = set(s.scale);
  const VI row_sum = hn::Set(DI(), s.row_sum);
  const auto one = [&](size_t j, size_t count) HWY_ATTR {
    VI sum = load_whole(sums + j, count);
    if constexpr (has_zeros) sum = hn::Sub(sum, hn::Mul(row_sum, load_whole(s.zeros + j, count)));
    const V factor = hn::Mul(load_n(s.scales + j, count), scale);
    const V base = s.base == nullptr ? hn::Zero(D()) : load_n(s.base + j, count);
    store_n(hn::MulAdd(hn::ConvertTo(D(), sum), factor, base), to + j, count);
  };
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) one(j, lanes);
  if (j < n) one(j, n - j);
}

void scaled(const int32_t* sums, size_t n, const ByteScaling& scaling, float* to) {
  (scaling.zeros == nullptr ? scaled_row<false> : scaled_row<true>)(sums, n, scaling, to);
}

void range(const float* x, size_t n, float& low, float& high) {
  V least = set(low);
  V most = set(high);
  const auto widen = [&](V value) HWY_ATTR {
    least = hn::IfThenElse(hn::Lt(value, least), value, least);
    most = hn::IfThenElse(hn::Lt(most, value), value, most);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) widen(load(x + i));
  low = hn::GetLane(hn::MinOfLanes(D(), least));
  high = max_of(most);
  for (; i < n; ++i) {
    if (x[i] < low) low = x[i];
    if (high < x[i]) high = x[i];
  }
}

// x / scale, limited to [low, high] and rounded.
struct Quotient {
  V scale, low, high;
  HWY_INLINE VI operator()(V x) const {
    x = hn::Div(x, scale);
    x = hn::IfThenElse(hn::Eq(x, x), x, hn::Zero(D()));
    return hn::NearestInt(at_most(at_least(x, low), high));
  }
};

template <class T>
HWY_INLINE void quantize_to(const float* x, size_t n, const Quotient& quotient, int zero, T* to) {
  const hn::Rebind<T, D> narrow;
  const VI plus = hn::Set(DI(), zero);
  const auto one = [&](V value) HWY_ATTR { return hn::DemoteTo(narrow, hn::Add(quotient(value), plus)); };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(one(load(x + i)), narrow, to + i);
  if (i == n) return;
  HWY_ALIGN T rest[lanes];
  hn::StoreU(one(load_n(x + i, n - i)), narrow, rest);
  std::copy_n(rest, n - i, to + i);
}

HWY_INLINE Quotient quotient_of(float scale, int low, int high) {
  return {set(scale), set(static_cast<float>(low)), set(static_cast<float>(high))};
}

void quantize(const float* x, size_t n, float scale, int low, int high, int16_t* to) {
  quantize_to(x, n, quotient_of(scale, low, high), 0, to);
}

void quantize_bytes(const float* x, size_t n, float scale, int zero, uint8_t* to) {
  quantize_to(x, n, quotient_of(scale, -zero, 255 - zero), zero, to);
}

void quantize_doubles(const double* x, size_t n, double scale, double low, double high, double zero, int32_t* to) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, hn::ScalableTag<double>> narrow;
  const size_t step = hn::Lanes(d);
  const auto one = [&](const double* from) HWY_ATTR {
    auto value = hn::Div(hn::LoadU(d, from), hn::Set(d, scale));
    value = hn::IfThenElse(hn::Eq(value, value), value, hn::Zero(d));
    value = hn::Min(hn::Max(value, hn::Set(d, low)), hn::Set(d, high));
    return hn::DemoteTo(narrow, hn::Add(hn::Round(value), hn::Set(d, zero)));
  };
  size_t i = 0;
  for (; i + step <= n; i += step) hn::StoreU(one(x + i), narrow, to + i);
  if (i == n) return;
  double in[HWY_LANES(double)] = {};
  int32_t out[HWY_LANES(double)];
  std::copy_n(x + i, n - i, in);
  hn::StoreU(one(in), narrow, out);
  std::copy_n(out, n - i, to + i);
}

// Up to 64 numbers as bytes; bits is 2 or 4.
HWY_INLINE void spread_bits(const uint8_t* packed, size_t n, size_t bits, uint8_t* to) {
  if (bits == 4) {
    for (size_t i = 0; i < n / 2; ++i) {
      to[2 * i] = packed[i] & 15U;
      to[2 * i + 1] = static_cast<uint8_t>(packed[i] >> 4U);
    }
    return;
  }
  for (size_t i = 0; i < n / 4; ++i) {
    for (size_t part = 0; part < 4; ++part) to[4 * i + part] = static_cast<uint8_t>(packed[i] >> (2 * part)) & 3U;
  }
}

void unpack(const uint8_t* packed, size_t n, size_t bits, float zero, float scale, float* to) {
  constexpr size_t most = 64;
  const hn::Rebind<uint8_t, D> narrow;
  const V less = set(zero);
  const V by = set(scale);
  uint8_t bytes[most];
  for (size_t i = 0; i < n; i += most) {
    const size_t count = std::min(most, n - i);
    const uint8_t* from = packed + i * bits / 8;
    if (bits != 8) {
      spread_bits(from, count, bits, bytes);
      from = bytes;
    }
    for (size_t j = 0; j < count; j += lanes) {
      const V number = hn::ConvertTo(D(), hn::PromoteTo(DI(), hn::LoadU(narrow, from + j)));
      store(hn::Mul(hn::Sub(number, less), by), to + i + j);
    }
  }
}

void lstm(const float* gates, size_t n, float* c, float* h) {
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = std::min(lanes, n - i);
    const V in = sigmoid(load_n(gates + i, count));
    const V out = sigmoid(load_n(gates + n + i, count));
    const V forget = sigmoid(load_n(gates + 2 * n + i, count));
    const V candidate = tanh(load_n(gates + 3 * n + i, count));
    const V cell = hn::MulAdd(forget, load_n(c + i, count), hn::Mul(in, candidate));
    store_n(cell, c + i, count);
    store_n(hn::Mul(out, tanh(cell)), h + i, count);
  }
}

const ByteLoops& byte_table() {
  static constexpr ByteLoops table = {byte_columns, byte_multiply,  interleave,       scaled, range,
                                      quantize,     quantize_bytes, quantize_doubles, unpack, lstm};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(byte_table);
const ByteLoops& byte_loops() { return HWY_DYNAMIC_DISPATCH(byte_table)(); }

}  // namespace unmoor::cpu
#endif
