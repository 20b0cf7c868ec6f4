#include "unmoor/backends/cpu/simd/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

struct SumOp {
  HWY_INLINE V operator()(V y, V x) const { return hn::Add(y, x); }
  static float last(float a, float b) { return a + b; }
};
struct MaxOp {
  HWY_INLINE V operator()(V y, V x) const { return hn::IfThenElse(hn::IsNaN(y), y, at_least(x, y)); }
  static float last(float a, float b) { return std::isnan(a) || a > b ? a : b; }
};
struct MinOp {
  HWY_INLINE V operator()(V y, V x) const { return hn::IfThenElse(hn::IsNaN(y), y, at_most(x, y)); }
  static float last(float a, float b) { return std::isnan(a) || a < b ? a : b; }
};
struct ProdOp {
  HWY_INLINE V operator()(V y, V x) const { return hn::Mul(y, x); }
  static float last(float a, float b) { return a * b; }
};
struct SquareOp {
  HWY_INLINE V operator()(V y, V x) const { return hn::MulAdd(x, x, y); }
  static float last(float a, float b) { return a + b; }
};
struct AbsOp {
  HWY_INLINE V operator()(V y, V x) const { return hn::Add(y, hn::Abs(x)); }
  static float last(float a, float b) { return a + b; }
};
struct ExpOp {
  HWY_INLINE V operator()(V y, V x) const { return hn::Add(y, exp(x)); }
  static float last(float a, float b) { return a + b; }
};

// Four sums side by side hide the latency and keep long sums exact; lanes are combined at the end, in order.
template <class Op>
float reduce(const float* x, size_t n, float start) {
  const Op op;
  const float neutral = start;
  V part[4] = {set(neutral), set(neutral), set(neutral), set(neutral)};
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < 4; ++v) part[v] = op(part[v], load(x + i + v * lanes));
  }
  for (; i + lanes <= n; i += lanes) part[0] = op(part[0], load(x + i));
  HWY_ALIGN float values[4 * lanes];
  for (size_t v = 0; v < 4; ++v) hn::Store(part[v], D(), values + v * lanes);
  float result = neutral;
  for (const float value : values) result = Op::last(result, value);
  for (; i < n; ++i) {
    result = Op::last(result, hn::GetLane(op(set(neutral), set(x[i]))));
  }
  return result;
}

template <class Op>
void merge(const float* x, float* y, size_t n) {
  const Op op;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(op(load(y + i), load(x + i)), y + i);
  if (i < n) store_n(op(load_n(y + i, n - i), load_n(x + i, n - i)), y + i, n - i);
}

float row_sum(const float* x, size_t n) { return reduce<SumOp>(x, n, 0); }

float squares(const float* x, size_t n, float centre) {
  const V c = set(centre);
  V part[4] = {set(0), set(0), set(0), set(0)};
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < 4; ++v) {
      const V d = hn::Sub(load(x + i + v * lanes), c);
      part[v] = hn::MulAdd(d, d, part[v]);
    }
  }
  float rest = 0;
  for (; i + lanes <= n; i += lanes) {
    const V d = hn::Sub(load(x + i), c);
    part[0] = hn::MulAdd(d, d, part[0]);
  }
  for (; i < n; ++i) rest += (x[i] - centre) * (x[i] - centre);
  return rest + sum_of(hn::Add(hn::Add(part[0], part[1]), hn::Add(part[2], part[3])));
}

struct Shift {
  V by;
  HWY_INLINE V operator()(V x) const { return hn::Sub(x, by); }
};
struct Scale {
  V by;
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, by); }
};
struct Affine {
  V factor;
  V offset;
  HWY_INLINE V operator()(V x) const { return hn::MulAdd(x, factor, offset); }
};

// Writes exp(x - shift) and returns the sum, without writing where y is null.
float exponentials(const float* x, float* y, size_t n, float shift) {
  const V by = set(shift);
  V sum = set(0);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V e = exp_negative(hn::Sub(load(x + i), by));
    sum = hn::Add(sum, e);
    if (y != nullptr) store(e, y + i);
  }
  float rest = 0;
  if (i < n) {
    const V e = exp_negative(hn::Sub(load_n(x + i, n - i), by));
    HWY_ALIGN float values[lanes];
    hn::Store(e, D(), values);
    for (size_t j = 0; j < n - i; ++j) rest += values[j];
    if (y != nullptr) store_n(e, y + i, n - i);
  }
  return rest + sum_of(sum);
}

void softmax(const float* x, float* y, size_t n) {
  const float top = reduce<MaxOp>(x, n, -std::numeric_limits<float>::infinity());
  const float sum = exponentials(x, y, n, top);
  map(y, y, n, Scale{set(1.0F / sum)});
}

void log_softmax(const float* x, float* y, size_t n) {
  const float top = reduce<MaxOp>(x, n, -std::numeric_limits<float>::infinity());
  const float sum = exponentials(x, nullptr, n, top);
  const float log_sum = std::log(sum);
  const V first = set(top);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(hn::Sub(hn::Sub(load(x + i), first), set(log_sum)), y + i);
  for (; i < n; ++i) y[i] = x[i] - top - log_sum;
}

void softmax_columns(const float* x, float* y, size_t length, size_t step, size_t columns, bool logarithm, float* scratch) {
  float* const top = scratch;
  float* const sum = scratch + columns;
  std::fill(top, top + columns, -std::numeric_limits<float>::infinity());
  std::fill(sum, sum + columns, 0.0F);
  for (size_t i = 0; i < length; ++i) merge<MaxOp>(x + i * step, top, columns);
  for (size_t i = 0; i < length; ++i) {
    for (size_t j = 0; j < columns; j += lanes) {
      const size_t n = std::min(lanes, columns - j);
      const V shifted = hn::Sub(load_n(x + i * step + j, n), load_n(top + j, n));
      const V e = exp_negative(shifted);
      store_n(hn::Add(load_n(sum + j, n), e), sum + j, n);
      store_n(logarithm ? shifted : e, y + i * step + j, n);
    }
  }
  for (size_t j = 0; j < columns; ++j) sum[j] = logarithm ? std::log(sum[j]) : 1.0F / sum[j];
  for (size_t i = 0; i < length; ++i) {
    float* const row = y + i * step;
    for (size_t j = 0; j < columns; j += lanes) {
      const size_t n = std::min(lanes, columns - j);
      const V s = load_n(sum + j, n);
      const V value = load_n(row + j, n);
      store_n(logarithm ? hn::Sub(value, s) : hn::Mul(value, s), row + j, n);
    }
  }
}

void normalize(const float* x, float* y, size_t n, const float* scale, const float* shift, float epsilon, bool centred, float* statistics) {
  const auto count = static_cast<float>(n);
  const float mean = centred ? row_sum(x, n) / count : 0.0F;
  const float inverse = 1.0F / std::sqrt(squares(x, n, mean) / count + epsilon);
  statistics[0] = mean;
  statistics[1] = inverse;
  const V m = set(mean);
  const V f = set(inverse);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t left = std::min(lanes, n - i);
    V v = hn::Mul(hn::Sub(load_n(x + i, left), m), f);
    if (scale != nullptr) v = hn::Mul(v, load_n(scale + i, left));
    if (shift != nullptr) v = hn::Add(v, load_n(shift + i, left));
    store_n(v, y + i, left);
  }
}

void affine(const float* x, float* y, size_t n, float factor, float offset) { map(x, y, n, Affine{set(factor), set(offset)}); }

const RowLoops& row_table() {
  static constexpr RowLoops table = {
      softmax, log_softmax, softmax_columns, normalize, affine, row_sum, squares,
      {reduce<SumOp>, reduce<MaxOp>, reduce<MinOp>, reduce<ProdOp>, reduce<SquareOp>, reduce<AbsOp>, reduce<ExpOp>},
      {merge<SumOp>, merge<MaxOp>, merge<MinOp>, merge<ProdOp>, merge<SquareOp>, merge<AbsOp>, merge<ExpOp>}};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(row_table);
const RowLoops& row_loops() { return HWY_DYNAMIC_DISPATCH(row_table)(); }

}  // namespace unmoor::cpu
#endif
