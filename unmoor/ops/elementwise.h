#pragma once

#include <cmath>

#include "unmoor/ops/nan.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/real.h"

namespace unmoor {

// Parts of the elementwise family.
void add_unary_ops(OpSet& ops);       // Functions of one number: Sqrt, Exp, Floor, Neg.
void add_arithmetic_ops(OpSet& ops);  // Add, Pow, Mod, Max, Sum.
void add_comparison_ops(OpSet& ops);  // Equal, And, IsNaN, Where, bit operators.

// Output 0 = function(a, b) over two broadcast inputs of one dtype. `function` takes two of double, int64_t or uint64_t and
// returns that or bool.
template <class Function>
void binary_reference(const OpCall& call, std::span<const Data> in, Outputs& out, Function&& function) {
  Tensor& result = out.allocate(0, call.output(0));
  const Shape& shape = result.shape();
  with_lane(call.input(0).dtype, [&](auto lane) {
    using T = decltype(lane);
    if constexpr (std::is_same_v<T, double> && std::is_same_v<decltype(function(lane, lane)), double>) {
      combine_reals(in[0].tensor(), in[1].tensor(), result, function);
      return;
    }
    const std::vector<T> a = read_as<T>(in[0].tensor());
    const std::vector<T> b = read_as<T>(in[1].tensor());
    using R = std::conditional_t<std::is_same_v<decltype(function(lane, lane)), bool>, int64_t, T>;
    std::vector<R> values(result.elements());
    walk<2>(shape, {broadcast_strides(in[0].tensor().shape(), shape), broadcast_strides(in[1].tensor().shape(), shape)},
            [&](size_t i, const std::array<int64_t, 2>& at) {
              values[i] = static_cast<R>(function(a[static_cast<size_t>(at[0])], b[static_cast<size_t>(at[1])]));
            });
    write_as<R>(result, values);
  });
}

// The greater or lesser of two; NaN if either is, as NumPy's maximum and minimum.
template <class T>
T extreme(T a, T b, bool maximum) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return (maximum ? a < b : b < a) ? b : a;
}

// Infers as like_first_broadcast after checking that the dtypes agree.
std::vector<Type> infer_binary(const OpCall& call);

}  // namespace unmoor
