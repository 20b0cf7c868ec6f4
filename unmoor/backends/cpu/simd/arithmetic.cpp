#include "unmoor/backends/cpu/simd/arithmetic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/arithmetic.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

struct AddOp {
  HWY_INLINE V operator()(V a, V b) const { return hn::Add(a, b); }
};
struct SubtractOp {
  HWY_INLINE V operator()(V a, V b) const { return hn::Sub(a, b); }
};
struct MultiplyOp {
  HWY_INLINE V operator()(V a, V b) const { return hn::Mul(a, b); }
};
struct DivideOp {
  HWY_INLINE V operator()(V a, V b) const { return hn::Div(a, b); }
};
// A NaN on either side is the result.
struct MinOp {
  HWY_INLINE V operator()(V a, V b) const { return hn::IfThenElse(hn::IsNaN(a), a, at_most(b, a)); }
};
struct MaxOp {
  HWY_INLINE V operator()(V a, V b) const { return hn::IfThenElse(hn::IsNaN(a), a, at_least(b, a)); }
};
struct PReluOp {
  HWY_INLINE V operator()(V x, V slope) const { return hn::IfThenElse(hn::Lt(x, hn::Zero(D())), hn::Mul(x, slope), x); }
};

template <class Op>
void binary(const BinaryRow& row) {
  const Op op;
  const V a0 = set(row.n == 0 ? 0.0F : row.a[0]);
  const V b0 = set(row.n == 0 ? 0.0F : row.b[0]);
  size_t i = 0;
  if (row.a_moves && row.b_moves) {
    for (; i + lanes <= row.n; i += lanes) store(op(load(row.a + i), load(row.b + i)), row.y + i);
  } else if (row.a_moves) {
    for (; i + lanes <= row.n; i += lanes) store(op(load(row.a + i), b0), row.y + i);
  } else if (row.b_moves) {
    for (; i + lanes <= row.n; i += lanes) store(op(a0, load(row.b + i)), row.y + i);
  } else {
    for (; i + lanes <= row.n; i += lanes) store(op(a0, b0), row.y + i);
  }
  if (i < row.n) {
    const size_t rest = row.n - i;
    const V a = row.a_moves ? load_n(row.a + i, rest) : a0;
    const V b = row.b_moves ? load_n(row.b + i, rest) : b0;
    store_n(op(a, b), row.y + i, rest);
  }
}

const ArithmeticLoops& arithmetic_table() {
  static constexpr ArithmeticLoops table = {binary<AddOp>, binary<SubtractOp>, binary<MultiplyOp>, binary<DivideOp>,
                                            binary<MinOp>, binary<MaxOp>,      binary<PReluOp>};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(arithmetic_table);
const ArithmeticLoops& arithmetic_loops() { return HWY_DYNAMIC_DISPATCH(arithmetic_table)(); }

}  // namespace unmoor::cpu
#endif
