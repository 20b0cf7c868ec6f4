#include "unmoor/ops/det.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

std::vector<Type> infer_det(const OpCall& call) {
  const TensorType& x = call.input(0);
  if (!x.shape.has_rank()) return {TensorType{x.dtype, Shape::of_unknown_rank()}};
  const size_t rank = x.shape.rank();
  if (rank < 2) fail(ErrorKind::InvalidModel, title(call), ": shape ", x.shape, " is of no matrices");
  same_dim(call, x.shape[rank - 2], x.shape[rank - 1], "the side of the square matrices");
  Shape shape;
  for (size_t axis = 0; axis + 2 < rank; ++axis) shape.push_back(x.shape, axis);
  return {TensorType{x.dtype, std::move(shape)}};
}

// By elimination with the greatest pivot of each column; `a` is overwritten. A matrix of no rows has the determinant 1.
double determinant(std::span<double> a, size_t side) {
  double product = 1;
  for (size_t k = 0; k < side; ++k) {
    size_t pivot = k;
    for (size_t row = k + 1; row < side; ++row) {
      if (std::fabs(a[row * side + k]) > std::fabs(a[pivot * side + k])) pivot = row;
    }
    if (pivot != k) {
      std::swap_ranges(&a[k * side], &a[k * side] + side, &a[pivot * side]);
      product = -product;
    }
    const double first = a[k * side + k];
    product *= first;
    if (first == 0) return product;
    for (size_t row = k + 1; row < side; ++row) {
      const double factor = a[row * side + k] / first;
      for (size_t column = k + 1; column < side; ++column) a[row * side + column] -= factor * a[k * side + column];
    }
  }
  return product;
}

void run_det(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape& shape = in[0].tensor().shape();
  auto values = doubles(in[0].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_det);
  const auto side = static_cast<size_t>(shape[shape.rank() - 1]);
  std::vector<double> y(result.elements());
  for (size_t i = 0; i < y.size(); ++i) y[i] = determinant(std::span(values).subspan(i * side * side, side * side), side);
  store(result, std::span<const double>(y));
}

}  // namespace

void add_det(OpSet& ops) {
  Op op;
  op.name = "Det";
  op.summary = "The determinant of each square matrix.";
  op.inputs = {required("X", float_types())};
  op.outputs = {required("Y", float_types())};
  op.infer = infer_det;
  op.reference = run_det;
  op.cost = [](const OpCall& call) {
    const Shape& shape = call.input(0).shape;
    const double side = shape.is_known() && shape.rank() >= 2 ? static_cast<double>(shape[shape.rank() - 1]) : 0;
    return Cost{elements_or_zero(shape) * side * 2 / 3, bytes_moved(call)};
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Matrix;
  op.cases = {"T[2,2]~small",
              "T[5,5]~small",
              "T[3,2,2]~small",
              "T[2,3,4,4]~small",
              "T[1,1]~small",
              "T[3,0,0]",
              "T[0,3,3]",
              "T[2,2]{0,1,1,0}",
              "T[3,3]{1,2,3,2,4,6,7,8,9}",
              "T[3,3]{0,0,1,0,1,0,1,0,0}",
              "f32[2,2]{nan,1,1,1}",
              "T[17,17]~unit"};
  ops.add(std::move(op));
}

}  // namespace unmoor
