#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/random.h"

namespace unmoor {
namespace {

Tensor fill_value(const OpCall& call) {
  const Tensor* value = call.tensor("value");
  if (value == nullptr) return Tensor::scalar(0.0F);
  if (value->elements() != 1) fail(ErrorKind::InvalidModel, title(call), ": its value is ", value->type(), ", not one element");
  return *value;
}

std::vector<Type> infer_constant_of_shape(const OpCall& call) {
  const DType dtype = fill_value(call).dtype();
  const auto sizes = constant_integers(call, 0);
  if (sizes) {
    const Shape shape(*sizes);
    if (!shape.is_known()) fail(ErrorKind::InvalidModel, title(call), ": shape ", shape, " has a negative dimension");
    return {TensorType{dtype, shape}};
  }
  const auto rank = length_of(call, 0);
  return {TensorType{dtype, rank ? unknown_shape(*rank) : Shape::of_unknown_rank()}};
}

void run_constant_of_shape(const OpCall& call, std::span<const Data> in, Outputs& out) {
  fill(allocate_inferred(call, in, out, infer_constant_of_shape), fill_value(call));
}

void expand_constant_of_shape(GraphBuilder& b) {
  b.output(0, b.add("Expand", {b.constant(fill_value(b.call()).reshaped(Shape())), b.input(0)}));
}

// How many steps fit before the limit.
int64_t range_length(const OpCall& call, const Tensor& start, const Tensor& limit, const Tensor& delta) {
  if (start.elements() != 1 || limit.elements() != 1 || delta.elements() != 1) {
    fail(ErrorKind::InvalidModel, title(call), ": start, limit and delta must be scalars");
  }
  if (is_float(start.dtype())) {
    const double steps = std::ceil((doubles(limit)[0] - doubles(start)[0]) / doubles(delta)[0]);
    if (!(steps < 0x1p60)) fail(ErrorKind::InvalidArgument, title(call), ": there are ", steps, " steps of ", doubles(delta)[0]);
    return steps < 0 ? 0 : static_cast<int64_t>(steps);
  }
  const int64_t from = integers(start)[0];
  const int64_t to = integers(limit)[0];
  const int64_t step = integers(delta)[0];
  if (step == 0) fail(ErrorKind::InvalidArgument, title(call), ": delta is 0");
  if (step > 0 ? to <= from : to >= from) return 0;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from)
                                     : static_cast<uint64_t>(from) - static_cast<uint64_t>(to);
  const uint64_t width = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t steps = (distance - 1) / width + 1;
  if (steps >> 60 != 0) fail(ErrorKind::InvalidArgument, title(call), ": there are ", steps, " steps of ", step);
  return static_cast<int64_t>(steps);
}

std::vector<Type> infer_range(const OpCall& call) {
  require_same_dtype(call);
  const bool known = call.constant(0) != nullptr && call.constant(1) != nullptr && call.constant(2) != nullptr;
  const int64_t length = known ? range_length(call, *call.constant(0), *call.constant(1), *call.constant(2)) : Shape::unknown;
  return {TensorType{call.input(0).dtype, Shape{length}}};
}

void run_range(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = allocate_inferred(call, in, out, infer_range);
  with_lane(result.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T start = read_as<T>(in[0].tensor())[0];
    const T delta = read_as<T>(in[2].tensor())[0];
    std::vector<T> values(result.elements());
    // Integers wrap around unsigned: i·delta alone may pass their limit where the sum does not.
    using U = std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<T>(static_cast<U>(start) + static_cast<U>(i) * static_cast<U>(delta));
    }
    write_as(result, values);
  });
}

std::vector<Type> infer_eye_like(const OpCall& call) {
  require_rank(call, 0, 2);
  TensorType type = call.input(0);
  if (!type.shape.has_rank()) type.shape = unknown_shape(2);
  type.dtype = dtype_attribute(call, "dtype").value_or(type.dtype);
  return {std::move(type)};
}

void run_eye_like(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = allocate_inferred(call, in, out, infer_eye_like);
  const int64_t k = call.integer("k", 0);
  std::vector<int64_t> values(result.elements());
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    values[static_cast<size_t>(i)] = index[1] - index[0] == k ? 1 : 0;
  });
  store(result, std::span<const int64_t>(values));
}

std::vector<Type> infer_one_hot(const OpCall& call) {
  const Shape& indices = call.input(0).shape;
  int64_t depth = Shape::unknown;
  if (const auto given = constant_integers(call, 1)) {
    if (given->size() != 1 || (*given)[0] < 0)
      fail(ErrorKind::InvalidModel, title(call), ": depth must be one number that is not negative");
    depth = (*given)[0];
  }
  if (!indices.has_rank()) return {TensorType{call.input(2).dtype, Shape::of_unknown_rank()}};
  const size_t axis = axis_of(call, call.integer("axis", -1), indices.rank() + 1);
  Shape shape;
  for (size_t i = 0; i <= indices.rank(); ++i) {
    if (i == axis) shape.push_back(depth);
    if (i < indices.rank()) shape.push_back(indices, i);
  }
  return {TensorType{call.input(2).dtype, std::move(shape)}};
}

void run_one_hot(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& values = in[2].tensor();
  if (values.elements() != 2)
    fail(ErrorKind::InvalidArgument, title(call), ": values is ", values.type(), ", not the two of off and on");
  const auto indices = integers(in[0].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_one_hot);
  fill(result, values, 0);
  const auto split = split_at(result.shape(), axis_of(call, call.integer("axis", -1), result.shape().rank()));
  const auto depth = static_cast<int64_t>(split.length);
  const ElementCopy copy(values, result);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < -depth || indices[i] >= depth) continue;
    const size_t hot = static_cast<size_t>(indices[i] < 0 ? indices[i] + depth : indices[i]);
    copy(1, static_cast<int64_t>((i / split.inner * split.length + hot) * split.inner + i % split.inner));
  }
}

void check_trilu(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  if (shape.has_rank() && shape.rank() < 2) fail(ErrorKind::InvalidModel, title(call), ": shape ", shape, " is no matrix");
}

std::vector<Type> infer_trilu(const OpCall& call) {
  check_trilu(call);
  return {call.input(0)};
}

int64_t diagonal_of(const OpCall& call, std::span<const Data> in) {
  const auto values = integers_at(in, 1);
  if (tensor_at(in, 1) == nullptr) return 0;
  if (values.size() != 1) fail(ErrorKind::InvalidArgument, title(call), ": k has ", values.size(), " elements, not one");
  return values[0];
}

void run_trilu(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const int64_t k = diagonal_of(call, in);
  const bool upper = call.integer("upper", 1) != 0;
  Tensor& result = out.allocate(0, data.type());
  const ElementCopy copy(data, result);
  const size_t rank = data.shape().rank();
  for_each_index(data.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const int64_t diagonal = index[rank - 1] - index[rank - 2];
    if (upper ? diagonal >= k : diagonal <= k) copy(i, i);
  });
}

// Where(column - row >= k, input, 0).
void expand_trilu(GraphBuilder& b) {
  const OpCall& call = b.call();
  const TensorType& type = call.input(0);
  if (!type.shape.is_known()) fail(ErrorKind::Unsupported, title(call), ": its shape ", type.shape, " is not known yet");
  if (type.shape.elements() == 0) return b.output(0, b.add("Identity", {b.input(0)}));
  const int64_t rows = type.shape[type.shape.rank() - 2];
  const int64_t columns = type.shape[type.shape.rank() - 1];
  std::vector<int64_t> diagonals;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) diagonals.push_back(column - row);
  }
  const ValueId diagonal = b.constant(Tensor::from<int64_t>(Shape{rows, columns}, diagonals));
  const ValueId k = call.has(1) ? b.add("Reshape", {b.input(1), b.ints({})}) : b.scalar(0, DType::I64);
  const ValueId keep = b.add(call.integer("upper", 1) != 0 ? "GreaterOrEqual" : "LessOrEqual", {diagonal, k});
  b.output(0, b.add("Where", {keep, b.input(0), b.scalar(0, type.dtype)}));
}

Op constant_of_shape() {
  Op op;
  op.name = "ConstantOfShape";
  op.summary = "A tensor of the given shape, filled with one value.";
  op.inputs = {required("input", {DType::I64})};
  op.outputs = {required("output", every_type())};
  op.infer = infer_constant_of_shape;
  op.reference = run_constant_of_shape;
  op.expand = expand_constant_of_shape;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {"i64[2]{2,3}", "i64[2]{2,3} value=f16[1]{1.5},i64[1]{-7},bool[1]{1}", "i64[0]{} value=f32[1]{2}",
              "i64[2]{0,4} value=i32[1]{1}"};
  return op;
}

Op range() {
  Op op;
  op.name = "Range";
  op.summary = "Numbers from start, by steps of delta, up to but without the limit.";
  op.inputs = {required("start", number_types()), required("limit", number_types()), required("delta", number_types())};
  op.outputs = {required("output", number_types())};
  op.infer = infer_range;
  op.reference = run_range;
  op.category = Category::DynamicOutput;
  op.cases = {"T[]{1} T[]{10} T[]{2}",        "T[]{10} T[]{1} T[]{3}",      "f32[]{0} f32[]{1} f32[]{0.1}",
              "i64[]{5} i64[]{-7} i64[]{-3}", "i32[]{3} i32[]{3} i32[]{1}", "f64[]{1} f64[]{0} f64[]{-0.25}",
              "i64[]{-8000000000000000000} i64[]{9000000000000000000} i64[]{6000000000000000000}"};
  return op;
}

Op eye_like() {
  Op op;
  op.name = "EyeLike";
  op.summary = "A matrix of zeros with ones on diagonal `k`.";
  op.inputs = {required("input", plain_types())};
  op.outputs = {required("output", plain_types())};
  op.attributes = {{"k", int64_t{0}}};
  op.infer = infer_eye_like;
  op.reference = run_eye_like;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {"T[3,4] k=0,1,-2,9", "T[4,3] dtype=f32,i64,bool", "T[0,4]"};
  return op;
}

Op one_hot() {
  Op op;
  op.name = "OneHot";
  op.summary = "The on-value where the new axis meets the index, the off-value elsewhere; indices outside give none.";
  op.inputs = {required("indices", number_types()), required("depth", number_types()), required("values", tensor_types())};
  op.outputs = {required("output", tensor_types())};
  op.attributes = {{"axis", int64_t{-1}}};
  op.infer = infer_one_hot;
  op.reference = run_one_hot;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {"i64[2,3]~signed_index:5 i64[]{5} f32[2]{0,1} axis=-1,0,1", "i32[4]{0,7,-7,2} i64[1]{4} i64[2]{3,8}",
              "f32[3]{1,2,-1} f32[]{3} bool[2]{0,1}", "i64[]{1} i64[]{3} f16[2]{-1,2}", "i64[0,2] i64[]{3} f32[2]{0,1}"};
  return op;
}

Op trilu() {
  Op op;
  op.name = "Trilu";
  op.summary = "The upper or lower triangle of each matrix, from diagonal `k`; zeros elsewhere.";
  op.inputs = {required("input", plain_types()), optional("k", {DType::I64})};
  op.outputs = {required("output", plain_types())};
  op.attributes = {{"upper", int64_t{1}}};
  op.infer = infer_trilu;
  op.reference = run_trilu;
  op.expand = expand_trilu;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {
      "T[4,5] upper=0,1", "T[2,4,3] i64[]{1} upper=0,1", "T[4,5] i64[1]{-2} upper=0,1", "T[3,3] i64[]{9} upper=0,1", "T[0,4]",
      "bool[3,3]", "T[3,4] i64[1,1,1]{-1}", "T[0,1099511627776,65536]"};
  return op;
}

}  // namespace

void add_create_ops(OpSet& ops) {
  ops.add(constant_of_shape());
  ops.add(range());
  ops.add(eye_like());
  ops.add(one_hot());
  ops.add(trilu());
  add_random_ops(ops);
}

}  // namespace unmoor
