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

float weigh(const ScoreRow& row, RunningSoftmax& running) {
  float top = row.bias != nullptr ? finish_scores<true>(row) : finish_scores<false>(row);
  if (row.shown != nullptr) top = hide(row);
  top = std::max(top, running.top);
  // Where every score is -infinity, weights are zeros and so is their sum.
  const float shift = top == -std::numeric_limits<float>::infinity() ? 0.0F : top;
  const V by = set(shift);
  V sums[2] = {hn::Zero(D()), hn::Zero(D())};
  float rest = 0;
  size_t j = 0;
  for (; j + 2 * lanes <= row.keys; j += 2 * lanes) {
    HWY_UNROLL(2)
    for (size_t u = 0; u < 2; ++u) {
      const V e = exp_negative(hn::Sub(load(row.scores + j + u * lanes), by));
      store(e, row.scores + j + u * lanes);
      sums[u] = hn::Add(sums[u], e);
    }
  }
  for (; j < row.keys; j += lanes) {
    const size_t n = std::min(lanes, row.keys - j);
    store_n(exp_negative(hn::Sub(load_n(row.scores + j, n), by)), row.scores + j, n);
    for (size_t i = j; i < j + n; ++i) rest += row.scores[i];
  }
  const bool starts = running.top == -std::numeric_limits<float>::infinity();
  const float factor = starts || running.top == top ? 1.0F : std::exp(running.top - top);
  running.sum = running.sum * factor + rest + sum_of(hn::Add(sums[0], sums[1]));
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
