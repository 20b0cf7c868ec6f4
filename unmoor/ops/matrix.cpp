#include "unmoor/ops/matrix.h"

#include "unmoor/base/error.h"

namespace unmoor {

Swapped transposes(const OpCall& call) { return {call.integer("transA", 0) != 0, call.integer("transB", 0) != 0}; }

Shape swapped_shape(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() < 2) return shape;
  Shape result = batch_shape(shape);
  result.push_back(shape, shape.rank() - 1);
  result.push_back(shape, shape.rank() - 2);
  return result;
}

Shape batch_shape(const Shape& shape) {
  Shape result;
  for (size_t axis = 0; axis + 2 < shape.rank(); ++axis) result.push_back(shape, axis);
  return result;
}

Shape product_shape(const OpCall& call, const Shape& a, const Shape& b, Swapped swapped) {
  if (!a.has_rank() || !b.has_rank()) return Shape::of_unknown_rank();
  if (a.rank() == 0 || b.rank() == 0) {
    fail(ErrorKind::InvalidModel, title(call), ": a product of ", a, " and ", b, " is not defined, as one has no dimension");
  }
  const Shape left = swapped.a ? swapped_shape(a) : a;
  const Shape right = swapped.b ? swapped_shape(b) : b;
  const size_t inner = right.rank() == 1 ? 0 : right.rank() - 2;
  const int64_t k = left[left.rank() - 1];
  if (k >= 0 && right[inner] >= 0 && k != right[inner]) {
    fail(ErrorKind::InvalidModel, title(call), ": a product of ", left, " and ", right, " would need ", k, " = ", right[inner]);
  }
  Shape result = broadcast(batch_shape(left), batch_shape(right));
  if (left.rank() > 1) result.push_back(left, left.rank() - 2);
  if (right.rank() > 1) result.push_back(right, right.rank() - 1);
  return result;
}

double product_flop(const OpCall& call, const Shape& a, const Shape& b, Swapped swapped) {
  if (!a.is_known() || !b.is_known()) return 0;
  const Shape left = swapped.a ? swapped_shape(a) : a;
  return 2 * elements_or_zero(product_shape(call, a, b, swapped)) * static_cast<double>(left[left.rank() - 1]);
}

}  // namespace unmoor
