#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "unmoor/ops/op.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {

// What the operator families share: lists of dtypes, ready shape rules, elements as numbers, and walking over broadcast operands.

const std::vector<DType>& float_types();    // float32, float16, bfloat16, float64.
const std::vector<DType>& integer_types();  // 8 to 64 bits, signed and not.
const std::vector<DType>& number_types();   // Both.
const std::vector<DType>& plain_types();    // Numbers and bool.
const std::vector<DType>& tensor_types();   // Those, strings and complex numbers.
const std::vector<DType>& index_types();    // int32 and int64.

Port required(std::string port_name, std::vector<DType> dtypes);
Port optional(std::string port_name, std::vector<DType> dtypes);
Port variadic(std::string port_name, std::vector<DType> dtypes);

// Shape rules.
std::vector<Type> like_first(const OpCall& call);            // One output of the first input's type.
std::vector<Type> like_first_broadcast(const OpCall& call);  // The first input's dtype; all inputs broadcast together.
// One output of this dtype whose shape is that of all inputs broadcast together.
std::vector<Type> broadcast_to_dtype(const OpCall& call, DType dtype);
// A shape of this rank with every dimension unknown.
Shape unknown_shape(size_t rank);
// The dimension that two must share: the known one. Fails with InvalidModel, naming the call and what it is, where they differ.
int64_t same_dim(const OpCall& call, int64_t a, int64_t b, std::string_view what);
// Integers of input `i` where it is a known constant.
std::optional<std::vector<int64_t>> constant_integers(const OpCall& call, size_t i);
// Fails with InvalidModel unless all given inputs from `first` on have input `first`'s dtype.
void require_same_dtype(const OpCall& call, size_t first = 0);
// Fails with InvalidModel if input i, as far as known, does not broadcast to `shape` without changing it.
void require_broadcast_to(const OpCall& call, size_t i, const Shape& shape);
// The place of an axis, negative ones counted from the end. Fails with InvalidModel, naming the call.
size_t axis_of(const OpCall& call, const Shape& shape, int64_t axis);
// Fails with InvalidModel unless the input's rank is unknown or this one.
void require_rank(const OpCall& call, size_t i, size_t rank);
// "Conv 'conv_3'", for errors.
std::string title(const OpCall& call);

// Costs. `elements` is 0 where the shape is unknown.
double elements_or_zero(const Shape& shape);
double bytes_moved(const OpCall& call);  // Of all tensor inputs and outputs.
std::function<Cost(const OpCall&)> cost_per_output(double flop);
std::function<Cost(const OpCall&)> cost_per_input(double flop);

// An input's tensor, or null where it is absent.
const Tensor* tensor_at(std::span<const Data> in, size_t i);
// Its elements, or nothing where it is absent.
std::vector<double> doubles_at(std::span<const Data> in, size_t i);
std::vector<int64_t> integers_at(std::span<const Data> in, size_t i);
// Stores as output `i`, of the type inferred, in its dtype.
void put(const OpCall& call, Outputs& out, size_t i, std::span<const double> values);
void put(const OpCall& call, Outputs& out, size_t i, std::span<const int64_t> values);

// Elements as double, int64_t or uint64_t: what arithmetic on the dtype is exact in. with_lane(dtype, f) calls f with a zero of
// that type.
template <class T>
std::vector<T> read_as(const Tensor& tensor) {
  if constexpr (std::is_same_v<T, double>) {
    return doubles(tensor);
  } else {
    const std::vector<int64_t> values = integers(tensor);
    return std::vector<T>(values.begin(), values.end());
  }
}
template <class T>
void write_as(Tensor& tensor, const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    const std::vector<int64_t> same_bits(values.begin(), values.end());
    store(tensor, std::span<const int64_t>(same_bits));
  } else {
    store(tensor, std::span<const T>(values));
  }
}
template <class Work>
auto with_lane(DType dtype, Work&& work) {
  if (is_float(dtype)) return work(double{});
  if (is_integer(dtype) && !is_signed(dtype)) return work(uint64_t{});
  return work(int64_t{});
}

// Element steps of an operand of shape `from` under an index of shape `to`, which it broadcasts to: 0 along repeated axes.
std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to);

// Calls visit(i, places) for element i of `shape`, in order; places[k] is operand k's element under its strides.
template <size_t N, class Visit>
void walk(const Shape& shape, const std::array<std::vector<int64_t>, N>& strides, Visit&& visit) {
  const int64_t count = shape.elements();
  if (count == 0) return;
  std::array<int64_t, N> places{};
  if (shape.rank() == 0) {
    visit(size_t{0}, places);
    return;
  }
  const size_t last = shape.rank() - 1;
  std::vector<int64_t> index(shape.rank());
  size_t i = 0;
  while (true) {
    std::array<int64_t, N> row = places;
    for (int64_t inner = 0; inner < shape[last]; ++inner, ++i) {
      visit(i, row);
      for (size_t k = 0; k < N; ++k) row[k] += strides[k][last];
    }
    size_t axis = last;
    while (true) {
      if (axis == 0) return;
      --axis;
      for (size_t k = 0; k < N; ++k) places[k] += strides[k][axis];
      if (++index[axis] < shape[axis]) break;
      for (size_t k = 0; k < N; ++k) places[k] -= strides[k][axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// A shape split at an axis: elements before it, along it and after it. `outer` is 0 where the shape has no elements at all, so that a walk
// over [2^40,3,0] ends at once.
struct Split {
  size_t outer = 1;
  size_t length = 1;
  size_t inner = 1;
};
Split split_at(const Shape& shape, size_t axis);

}  // namespace unmoor
