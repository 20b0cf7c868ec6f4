#include "unmoor/backends/cpu/simd/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/attention.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// Scale and bias; returns the greatest score. A NaN counts as nothing here: it makes the sum NaN later.
template <bool has_bias>
float finish_scores(const ScoreRow& row) {
  const V scale = set(row.scale);
  const V lowest = set(-std::numeric_limits<float>::infinity());
  const bool one_bias = has_bias && row.bias_step == 0;
  const V bias = one_bias ? set(*row.bias) : hn::Zero(D());
  V top[2] = {lowest, lowest};
  const auto score = [&](size_t j, size_t n) HWY_ATTR {
    V value = hn::Mul(load_n(row.scores + j, n), scale);
    if constexpr (has_bias) value = hn::Add(value, one_bias ? bias : load_n(row.bias + j, n));
    store_n(value, row.scores + j, n);
    return value;
  };
  size_t j = 0;
  for (; j + 2 * lanes <= row.keys; j += 2 * lanes) {
    top[0] = at_least(top[0], score(j, lanes));
    top[1] = at_least(top[1], score(j + lanes, lanes));
  }
  float result = max_of(at_least(top[0], top[1]));
  for (; j < row.keys; j += lanes) {
    const size_t n = std::min(lanes, row.keys - j);
    score(j, n);
    for (size_t i = j; i < j + n; ++i) result = std::max(result, row.scores[i]);
  }
  return result;
}

float hide(const ScoreRow& row) {
  float top = -std::numeric_limits<float>::infinity();
  for (size_t j = 0; j < row.keys; ++j) {
    float& score = row.scores[j];
    score = row.shown[j * row.shown_step] != 0 ? score : row.hidden_score;
    top = score > top ? score : top;
  }
  return top;
}

// The greatest product of a row that has neither bias nor keys that are not shown.
float top_product(const ScoreRow& row) {
  const V lowest = set(-std::numeric_limits<float>::infinity());
  V top[2] = {lowest, lowest};
  size_t j = 0;
  for (; j + 2 * lanes <= row.keys; j += 2 * lanes) {
    top[0] = at_least(top[0], load(row.scores + j));
    top[1] = at_least(top[1], load(row.scores + j + lanes));
  }
  float result = max_of(at_least(top[0], top[1]));
  for (; j < row.keys; ++j) result = std::max(result, row.scores[j]);
  return result;
}

// 2^x for x up to about 0; 0 below -126. The fraction's power by a polynomial fitted for its relative error, 9e-8 on [-0.5, 0.5].
HWY_INLINE V exp2_weight(V x) {
  const M tiny = hn::Lt(x, set(-126.0F));
  x = at_least(x, set(-126.0F));
  const V rounder = set(12582912.0F);  // 1.5·2^23: a sum with it is rounded to whole numbers, which its low bits hold.
  const V whole = hn::Add(x, rounder);
  const V r = hn::Sub(x, hn::Sub(whole, rounder));
  static constexpr float c[] = {0.693147F, 0.24022242F, 0.055507336F, 0.009671513F, 0.0013264727F};
  const V value = hn::MulAdd(polynomial(r, c), r, set(1.0F));
  const VI power = hn::Add(hn::ShiftLeft<23>(hn::BitCast(DI(), whole)), hn::Set(DI(), 0x3f800000));
  return hn::IfThenElse(tiny, hn::Zero(D()), hn::Mul(value, hn::BitCast(D(), power)));  // NaN stays.
}

// Products or scores become weights exp(factor * score - shift); returns their sum.
float weights_of(const ScoreRow& row, float factor, float shift) {
  const V times = set(factor);
  const V by = set(shift);
  const auto weight = [&](V score) HWY_ATTR {
    return exp2_weight(hn::Mul(hn::MulSub(score, times, by), set(1.44269504F)));
  };
  V sums[2] = {hn::Zero(D()), hn::Zero(D())};
  float rest = 0;
  size_t j = 0;
  for (; j + 2 * lanes <= row.keys; j += 2 * lanes) {
    HWY_UNROLL(2)
    for (size_t u = 0; u < 2; ++u) {
      const V e = weight(load(row.scores + j + u * lanes));
      store(e, row.scores + j + u * lanes);
      sums[u] = hn::Add(sums[u], e);
    }
  }
  for (; j < row.keys; j += lanes) {
    const size_t n = std::min(lanes, row.keys - j);
    store_n(weight(load_n(row.scores + j, n)), row.scores + j, n);
    for (size_t i = j; i < j + n; ++i) rest += row.scores[i];
  }
  return rest + sum_of(hn::Add(sums[0], sums[1]));
}

float weigh(const ScoreRow& row, RunningSoftmax& running) {
  const float lowest = -std::numeric_limits<float>::infinity();
  // Where nothing but the scale stands between products and scores, they need not be stored.
  const bool plain = row.bias == nullptr && row.shown == nullptr && row.scale > 0;
  float top = lowest;
  if (plain) {
    top = top_product(row) * row.scale;
  } else {
    top = row.bias != nullptr ? finish_scores<true>(row) : finish_scores<false>(row);
    if (row.shown != nullptr) top = hide(row);
  }
  top = std::max(top, running.top);
  // Where every score is -infinity, weights are zeros and so is their sum.
  const float sum = weights_of(row, plain ? row.scale : 1.0F, top == lowest ? 0.0F : top);
  const bool starts = running.top == lowest;
  const float factor = starts || running.top == top ? 1.0F : std::exp(running.top - top);
  running.sum = running.sum * factor + sum;
  running.top = top;
  return factor;
}

struct Times {
  V by;
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, by); }
};
void scale(float* y, size_t n, float factor) { map(y, y, n, Times{set(factor)}); }

const AttentionLoops& attention_table() {
  static constexpr AttentionLoops table = {weigh, scale};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(attention_table);
const AttentionLoops& attention_loops() { return HWY_DYNAMIC_DISPATCH(attention_table)(); }

}  // namespace unmoor::cpu
#endif
