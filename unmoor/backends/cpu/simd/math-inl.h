// Functions of float32 vectors, to a few units in the last place. Included once a target.
#if defined(UNMOOR_CPU_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef UNMOOR_CPU_SIMD_MATH_INL_H
#undef UNMOOR_CPU_SIMD_MATH_INL_H
#else
#define UNMOOR_CPU_SIMD_MATH_INL_H
#endif

#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// c[0] + c[1] x + … by Horner's rule.
template <size_t N>
HWY_INLINE V polynomial(V x, const float (&c)[N]) {
  V sum = set(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) {
    sum = hn::MulAdd(sum, x, set(c[i]));
  }
  return sum;
}

// 2^n for whole n in [-126, 127].
HWY_INLINE V power_of_two(VI n) { return hn::BitCast(D(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(DI(), 127)))); }

// exp x = 2^n exp r, |r| <= ln(2)/2. The factor comes in two halves, so that overflow and denormals come out right.
HWY_INLINE V exp(V x) {
  x = at_most(at_least(x, set(-105.0F)), set(89.0F));
  const V scaled = hn::Mul(x, set(1.44269504F));
  const VI n = hn::NearestInt(scaled);
  const V whole = hn::ConvertTo(D(), n);
  V r = hn::NegMulAdd(whole, set(0.693359375F), x);
  r = hn::NegMulAdd(whole, set(-2.12194440e-4F), r);
  static constexpr float c[] = {0.49999994F, 0.1666652F, 0.041668396F, 0.0083687967F, 0.0013814431F};
  const V tail = hn::Mul(polynomial(r, c), hn::Mul(r, r));
  const V value = hn::Add(hn::Add(tail, r), set(1.0F));
  const VI half = hn::ShiftRight<1>(n);
  return hn::Mul(hn::Mul(value, power_of_two(half)), power_of_two(hn::Sub(n, half)));
}

// As exp for x <= 0, but results below 1e-37 are zero: one factor.
HWY_INLINE V exp_negative(V x) {
  const M tiny = hn::Lt(x, set(-87.0F));
  x = at_least(x, set(-87.0F));
  const VI n = hn::NearestInt(hn::Mul(x, set(1.44269504F)));
  const V whole = hn::ConvertTo(D(), n);
  V r = hn::NegMulAdd(whole, set(0.693359375F), x);
  r = hn::NegMulAdd(whole, set(-2.12194440e-4F), r);
  static constexpr float c[] = {0.49999994F, 0.1666652F, 0.041668396F, 0.0083687967F, 0.0013814431F};
  const V value = hn::Add(hn::MulAdd(polynomial(r, c), hn::Mul(r, r), r), set(1.0F));
  return hn::IfThenElse(tiny, hn::Zero(D()), hn::Mul(value, power_of_two(n)));
}

HWY_INLINE V sigmoid(V x) { return hn::Div(set(1.0F), hn::Add(set(1.0F), exp(hn::Neg(x)))); }

// Near zero a polynomial, elsewhere 1 - 2 / (exp 2|x| + 1).
HWY_INLINE V tanh(V x) {
  const V size = hn::Abs(x);
  const V square = hn::Mul(x, x);
  static constexpr float c[] = {-0.33333284F, 0.13331491F, -0.053743497F, 0.020650579F, -0.005717037F};
  const V small = hn::MulAdd(hn::Mul(polynomial(square, c), square), x, x);
  const V large = hn::Sub(set(1.0F), hn::Div(set(2.0F), hn::Add(exp(hn::Add(size, size)), set(1.0F))));
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, set(0.625F)), small, large), x);  // The sign also of zero.
}

// x P(x²) / Q(x²), fitted by least squares on [-3.925, 3.925]; beyond, erf is 1 in float32.
HWY_INLINE V erf(V x) {
  x = at_most(at_least(x, set(-3.925F)), set(3.925F));
  const V t = hn::Mul(x, x);
  static constexpr float p[] = {1.1283792F, 0.19245814F, 0.055581246F, 0.004194363F, 0.00040569168F, 6.5867362e-6F};
  static constexpr float q[] = {1.0F, 0.5038950F, 0.11722203F, 0.016212659F, 0.0014074347F, 7.1097646e-5F, 2.4889405e-7F};
  const V value = hn::Div(hn::Mul(x, polynomial(t, p)), polynomial(t, q));
  return at_most(at_least(value, set(-1.0F)), set(1.0F));
}

HWY_INLINE V gelu(V x) { return hn::Mul(hn::Mul(x, set(0.5F)), hn::Add(set(1.0F), erf(hn::Mul(x, set(0.70710678F))))); }

// 0.5 x (1 + tanh u) = x sigmoid(2u), u = √(2/π) (x + 0.044715 x³).
HWY_INLINE V gelu_tanh(V x) {
  const V inner = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), set(0.044715F), x);
  return hn::Div(x, hn::Add(set(1.0F), exp(hn::Mul(inner, set(-1.5957691F)))));
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
