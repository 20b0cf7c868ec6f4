#pragma once

#include "unmoor/ops/numeric.h"
#include "unmoor/ops/product.h"

namespace unmoor {

// Which operands have their last two dimensions swapped. Vectors are not.
struct Swapped {
  bool a = false;
  bool b = false;
};
// The attributes transA and transB.
Swapped transposes(const OpCall& call);

// The shape of a product as NumPy's matmul: a vector on the left is a row, on the right a column, and leading dimensions
// broadcast. Fails with InvalidModel, naming the call.
Shape product_shape(const OpCall& call, const Shape& a, const Shape& b, Swapped swapped = {});
// Twice the multiply-adds; 0 where shapes are unknown.
double product_flop(const OpCall& call, const Shape& a, const Shape& b, Swapped swapped = {});

// The elements of that product.
template <class T>
std::vector<T> multiply(const std::vector<T>& a, const Shape& a_shape, const std::vector<T>& b, const Shape& b_shape, Swapped swapped = {});
// The same added to c, which has that product's elements.
template <class T>
void add_matrices(const T* a, Shape a_shape, const T* b, Shape b_shape, Swapped swapped, std::span<T> c);

// Swaps the last two dimensions.
Shape swapped_shape(const Shape& shape);
template <class T>
std::vector<T> swap_last(const T* values, const Shape& shape) {
  const auto rows = static_cast<size_t>(shape[shape.rank() - 2]);
  const auto columns = static_cast<size_t>(shape[shape.rank() - 1]);
  const auto size = static_cast<size_t>(shape.elements());
  std::vector<T> result;
  result.reserve(size);
  for (size_t at = 0; at < size; at += rows * columns) {
    const std::vector<T> matrix = transposed(values + at, rows, columns);
    result.insert(result.end(), matrix.begin(), matrix.end());
  }
  return result;
}

// All but the last two dimensions.
Shape batch_shape(const Shape& shape);

template <class T>
std::vector<T> multiply(const std::vector<T>& a, const Shape& a_shape, const std::vector<T>& b, const Shape& b_shape, Swapped swapped) {
  const auto flipped = [](const Shape& shape, bool swap) { return swap ? swapped_shape(shape) : shape; };
  const Shape left = flipped(a_shape, swapped.a);
  const Shape right = flipped(b_shape, swapped.b);
  const auto rows = [](const Shape& shape) { return shape.rank() == 1 ? int64_t{1} : shape[shape.rank() - 2]; };
  const int64_t columns = right.rank() == 1 ? 1 : right[right.rank() - 1];
  const int64_t matrices = broadcast(batch_shape(left), batch_shape(right)).elements();
  std::vector<T> c(static_cast<size_t>(matrices * rows(left) * columns));
  add_matrices(a.data(), a_shape, b.data(), b_shape, swapped, std::span<T>(c));
  return c;
}

template <class T>
void add_matrices(const T* a, Shape a_shape, const T* b, Shape b_shape, Swapped swapped, std::span<T> c) {
  std::vector<T> a_swapped, b_swapped;
  if (swapped.a && a_shape.rank() >= 2) {
    a_swapped = swap_last(a, a_shape);
    a = a_swapped.data();
    a_shape = swapped_shape(a_shape);
  }
  if (swapped.b && b_shape.rank() >= 2) {
    b_swapped = swap_last(b, b_shape);
    b = b_swapped.data();
    b_shape = swapped_shape(b_shape);
  }
  if (a_shape.rank() == 1) a_shape = Shape{1, a_shape[0]};
  if (b_shape.rank() == 1) b_shape = Shape{b_shape[0], 1};
  if (b_shape.rank() == 2 && a_shape.rank() > 2) {  // Matrices that meet one and the same are one of all their rows.
    a_shape = Shape{a_shape.elements(0, a_shape.rank() - 1), a_shape[a_shape.rank() - 1]};
  }
  const auto m = static_cast<size_t>(a_shape[a_shape.rank() - 2]);
  const auto k = static_cast<size_t>(a_shape[a_shape.rank() - 1]);
  const auto n = static_cast<size_t>(b_shape[b_shape.rank() - 1]);
  const Shape a_batch = batch_shape(a_shape);
  const Shape b_batch = batch_shape(b_shape);
  const Shape batch = broadcast(a_batch, b_batch);
  if (c.empty() || k == 0) return;
  walk<2>(batch, {broadcast_strides(a_batch, batch), broadcast_strides(b_batch, batch)},
          [&](size_t i, const std::array<int64_t, 2>& at) {
            add_product(a + static_cast<size_t>(at[0]) * m * k, b + static_cast<size_t>(at[1]) * k * n, c.data() + i * m * n, m, n, k);
          });
}

}  // namespace unmoor
