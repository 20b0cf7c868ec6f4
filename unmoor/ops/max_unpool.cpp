#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/vision.h"
#include "unmoor/ops/window.h"

namespace unmoor {
namespace {

// The shape that kernel, strides and pads give for a pooled one: what the places in the second input count in.
Shape unpooled_shape(const OpCall& call, const Shape& x) {
  const std::vector<int64_t> kernel = call.integers("kernel_shape");
  if (x.rank() != kernel.size() + 2) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", x, " does not have the ", kernel.size(),
         " spatial axes of kernel_shape");
  }
  per_axis(call, "kernel_shape", kernel.size(), 1, 1);
  const auto strides = per_axis(call, "strides", kernel.size(), 1, 1);
  const auto pads = per_axis(call, "pads", 2 * kernel.size(), 0, 0);
  Shape shape;
  shape.push_back(x, 0);
  shape.push_back(x, 1);
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    const int64_t dim = x[axis + 2];
    if (dim > (int64_t{1} << 31)) fail(ErrorKind::InvalidModel, title(call), ": an axis of ", dim, " elements is too long");
    const int64_t grown = (dim - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + kernel.size()];
    if (dim >= 0 && grown < 0)
      fail(ErrorKind::InvalidModel, title(call), ": spatial axis ", axis, " would have ", grown, " elements");
    shape.push_back(dim < 0 ? Shape::unknown : grown);
  }
  return shape;
}

std::vector<Type> infer_unpool(const OpCall& call) {
  const TensorType& x = call.input(0);
  if (call.integers("kernel_shape").empty()) fail(ErrorKind::InvalidModel, title(call), ": kernel_shape is missing");
  if (!x.shape.has_rank()) return {TensorType{x.dtype, Shape::of_unknown_rank()}};
  Shape shape = unpooled_shape(call, x.shape);
  require_rank(call, 1, x.shape.rank());
  for (size_t axis = 0; call.input(1).shape.has_rank() && axis < x.shape.rank(); ++axis) {
    same_dim(call, x.shape[axis], call.input(1).shape[axis], "a size of the pooled tensor");
  }
  if (!call.has(2)) return {TensorType{x.dtype, std::move(shape)}};
  const auto count = length_of(call, 2);
  if (count && *count != shape.rank()) {
    fail(ErrorKind::InvalidModel, title(call), ": output_shape has ", *count, " numbers, not ", shape.rank());
  }
  const auto sizes = constant_integers(call, 2);
  if (!sizes) return {TensorType{x.dtype, unknown_shape(shape.rank())}};
  const Shape wanted(*sizes);
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (wanted[axis] < 0 || wanted[axis] < shape[axis]) {
      fail(ErrorKind::InvalidModel, title(call), ": output_shape ", wanted, " is smaller than ", shape,
           ", which kernel_shape, strides and pads give");
    }
  }
  return {TensorType{x.dtype, wanted}};
}

// ONNX's node test of output_shape counts the places in the shape without it, and puts that in the corner of the larger one.
void run_unpool(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const auto places = integers(in[1].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_unpool);
  const Shape shape = unpooled_shape(call, x.shape());
  const int64_t limit = shape.elements();
  const auto from_strides = shape.strides();
  const auto to_strides = result.shape().strides();
  const ElementCopy copy(x, result);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || places[i] >= limit) {
      fail(ErrorKind::InvalidArgument, title(call), ": place ", places[i], " lies outside of ", shape);
    }
    int64_t to = 0;
    for (size_t axis = 0; axis < shape.rank(); ++axis) to += places[i] / from_strides[axis] % shape[axis] * to_strides[axis];
    copy(static_cast<int64_t>(i), to);
  }
}

}  // namespace

void add_max_unpool(OpSet& ops) {
  Op op;
  op.name = "MaxUnpool";
  op.summary = "Puts what MaxPool chose back in its places, among zeros.";
  op.inputs = {required("X", float_types()), required("I", {DType::I64}), optional("output_shape", {DType::I64})};
  op.outputs = {required("output", float_types())};
  op.attributes = {
      {"kernel_shape", std::vector<int64_t>()}, {"pads", std::vector<int64_t>()}, {"strides", std::vector<int64_t>()}};
  op.infer = infer_unpool;
  op.reference = run_unpool;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Pooling;
  op.cases = {"T[1,1,2,2] i64[1,1,2,2]{5,7,13,15} kernel_shape=[2,2] strides=[2,2]",
              "T[1,1,2,2] i64[1,1,2,2]{5,7,13,15} i64[4]{1,1,5,5} kernel_shape=[2,2] strides=[2,2]",
              "T[2,3,2,2] i64[2,3,2,2]~index:96 kernel_shape=[2,2] strides=[2,2]",
              "T[1,1,2,2] i64[1,1,2,2]{0,1,2,3} kernel_shape=[2,2] strides=[2,2] pads=[1,1,1,1]",
              "T[1,2,3] i64[1,2,3]{0,3,5,6,9,11} kernel_shape=[2] strides=[2]",
              "T[1,1,2,2] i64[1,1,2,2]{0,2,6,8} kernel_shape=[2,2]",
              "T[1,1,1,2,2] i64[1,1,1,2,2]{0,3,12,31} kernel_shape=[2,2,2] strides=[2,2,2]",
              "T[1,1,2,2] i64[1,1,2,2]{3,3,3,0} kernel_shape=[3,3] strides=[1,2] pads=[0,1,0,0]",
              "T[0,2,2,2] i64[0,2,2,2] kernel_shape=[2,2] strides=[2,2]",
              "T[1,1,2,2] i64[1,1,2,2]{5,7,13,15} i64[4]{2,2,4,4} kernel_shape=[2,2] strides=[2,2]"};
  ops.add(std::move(op));
}

}  // namespace unmoor
