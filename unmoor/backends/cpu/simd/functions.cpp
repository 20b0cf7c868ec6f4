#include "unmoor/backends/cpu/simd/functions.h"

#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/functions.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/contrib/math/math-inl.h"
#include "unmoor/backends/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// Wraps f(x, a, b) as a loop.
template <V (*f)(V, V, V)>
void loop(const float* x, float* y, size_t n, float a, float b) {
  const V va = set(a);
  const V vb = set(b);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(f(load(x + i), va, vb), y + i);
  if (i < n) store_n(f(load_n(x + i, n - i), va, vb), y + i, n - i);
}

HWY_INLINE V identity_f(V x, V, V) { return x; }
HWY_INLINE V clamp_f(V x, V a, V b) { return at_most(at_least(x, a), b); }
HWY_INLINE V sigmoid_f(V x, V, V) { return sigmoid(x); }
HWY_INLINE V tanh_f(V x, V, V) { return tanh(x); }
HWY_INLINE V exp_f(V x, V, V) { return exp(x); }
HWY_INLINE V sqrt_f(V x, V, V) { return hn::Sqrt(x); }
HWY_INLINE V reciprocal_f(V x, V, V) { return hn::Div(set(1.0F), x); }
HWY_INLINE V neg_f(V x, V, V) { return hn::Neg(x); }
HWY_INLINE V abs_f(V x, V, V) { return hn::Abs(x); }
#if HWY_TARGET == HWY_SSSE3  // Whose own do not keep the sign of zero: it is that of x.
HWY_INLINE V floor_f(V x, V, V) { return hn::CopySign(hn::Floor(x), x); }
HWY_INLINE V ceil_f(V x, V, V) { return hn::CopySign(hn::Ceil(x), x); }
HWY_INLINE V round_f(V x, V, V) { return hn::CopySign(hn::Round(x), x); }
#elif HWY_TARGET == HWY_SCALAR  // Whose own do not keep it either, nor round halves to even.
HWY_INLINE V floor_f(V x, V, V) { return set(std::floor(hn::GetLane(x))); }
HWY_INLINE V ceil_f(V x, V, V) { return set(std::ceil(hn::GetLane(x))); }
HWY_INLINE V round_f(V x, V, V) { return set(std::nearbyint(hn::GetLane(x))); }
#else
HWY_INLINE V floor_f(V x, V, V) { return hn::Floor(x); }
HWY_INLINE V ceil_f(V x, V, V) { return hn::Ceil(x); }
HWY_INLINE V round_f(V x, V, V) { return hn::Round(x); }
#endif
HWY_INLINE V erf_f(V x, V, V) { return erf(x); }
HWY_INLINE V gelu_f(V x, V, V) { return gelu(x); }
HWY_INLINE V gelu_tanh_f(V x, V, V) { return gelu_tanh(x); }
HWY_INLINE V swish_f(V x, V a, V) { return hn::Div(x, hn::Add(set(1.0F), exp(hn::Neg(hn::Mul(a, x))))); }
HWY_INLINE V softsign_f(V x, V, V) { return hn::Div(x, hn::Add(set(1.0F), hn::Abs(x))); }

HWY_INLINE V sign_f(V x, V, V) {
  const V zero = hn::Zero(D());
  const V one = hn::IfThenElse(hn::Lt(x, zero), set(-1.0F), set(1.0F));
  return hn::IfThenElse(hn::Eq(x, zero), zero, hn::IfThenElse(hn::IsNaN(x), x, one));
}

// The logarithm of any float: zero gives -inf, negatives NaN, infinity and NaN themselves.
HWY_INLINE V log_f(V x, V, V) {
  const V infinity = hn::Inf(D());
  const V zero = hn::Zero(D());
  V y = hn::Log(D(), x);
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::NaN(D()), y);
}

HWY_INLINE V hard_sigmoid_f(V x, V a, V b) { return at_most(at_least(hn::MulAdd(x, a, b), hn::Zero(D())), set(1.0F)); }
HWY_INLINE V hard_swish_f(V x, V, V) { return hn::Mul(x, hard_sigmoid_f(x, set(1.0F / 6.0F), set(0.5F))); }
HWY_INLINE V leaky_relu_f(V x, V a, V) { return hn::IfThenElse(hn::Lt(x, hn::Zero(D())), hn::Mul(x, a), x); }
HWY_INLINE V thresholded_relu_f(V x, V a, V) { return hn::IfThenElse(hn::Gt(x, a), x, hn::Zero(D())); }

// exp x - 1: a short series near zero, where the difference would lose digits.
HWY_INLINE V expm1(V x) {
  static constexpr float c[] = {0.5F, 1.0F / 6, 1.0F / 24, 1.0F / 120, 1.0F / 720, 1.0F / 5040};
  const V series = hn::MulAdd(hn::Mul(polynomial(x, c), x), x, x);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), set(0.4F)), series, hn::Sub(exp(x), set(1.0F)));
}
HWY_INLINE V elu_f(V x, V a, V) { return hn::IfThenElse(hn::Lt(x, hn::Zero(D())), hn::Mul(a, expm1(x)), x); }
// With a negative a, x / a is positive for negative x.
HWY_INLINE V celu_f(V x, V a, V) { return hn::IfThenElse(hn::Lt(x, hn::Zero(D())), hn::Mul(a, expm1(hn::Div(x, a))), x); }
// b (gamma) times elu with alpha a.
HWY_INLINE V selu_f(V x, V a, V b) { return hn::Mul(b, elu_f(x, a, b)); }

// ln(1 + exp x) = max(x, 0) + ln(1 + exp -|x|).
HWY_INLINE V softplus_f(V x, V, V) {
  const V tail = hn::Log1p(D(), exp(hn::Neg(hn::Abs(x))));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(hn::Max(x, hn::Zero(D())), tail));
}
HWY_INLINE V mish_f(V x, V a, V b) { return hn::Mul(x, tanh(softplus_f(x, a, b))); }

using FunctionTable = std::array<UnaryLoop, function_count>;
const FunctionTable& function_table() {
  static constexpr FunctionTable table = {
      loop<identity_f>, loop<clamp_f>, loop<sigmoid_f>, loop<tanh_f>, loop<exp_f>, loop<log_f>, loop<sqrt_f>, loop<reciprocal_f>,
      loop<neg_f>, loop<abs_f>, loop<floor_f>, loop<ceil_f>, loop<round_f>, loop<erf_f>, loop<sign_f>,
      loop<gelu_f>, loop<gelu_tanh_f>, loop<swish_f>, loop<hard_swish_f>, loop<hard_sigmoid_f>, loop<leaky_relu_f>, loop<elu_f>, loop<celu_f>,
      loop<selu_f>, loop<softplus_f>, loop<softsign_f>, loop<mish_f>, loop<thresholded_relu_f>};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(function_table);
UnaryLoop unary_loop(Function function) { return HWY_DYNAMIC_DISPATCH(function_table)()[static_cast<size_t>(function)]; }

}  // namespace unmoor::cpu
#endif
