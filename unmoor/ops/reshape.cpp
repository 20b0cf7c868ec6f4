#include <algorithm>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/random.h"

namespace unmoor {
namespace {

// What a Reshape's target says: sizes, -1 for the one to be found, and which input axes it copies.
struct Target {
  Shape shape;
  std::optional<size_t> open;  // The axis of the -1.
  std::vector<bool> copied;    // By input axis.
  std::vector<bool> copies;    // By output axis.
};

Target read_target(const OpCall& call, const Shape& from, const std::vector<int64_t>& sizes) {
  const bool allow_zero = call.integer("allowzero", 0) != 0;
  Target target;
  target.copied.resize(from.rank());
  target.copies.resize(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && !allow_zero) {
      if (!from.has_rank()) {
        target.shape.push_back(Shape::unknown);
        continue;
      }
      if (i >= from.rank())
        fail(ErrorKind::InvalidModel, title(call), ": size 0 at ", i, " copies an axis that shape ", from, " lacks");
      target.shape.push_back(from, i);
      target.copied[i] = target.copies[i] = true;
    } else if (sizes[i] == -1) {
      if (target.open) fail(ErrorKind::InvalidModel, title(call), ": two sizes are -1");
      target.open = i;
      target.shape.push_back(Shape::unknown);
    } else if (sizes[i] < -1) {
      fail(ErrorKind::InvalidModel, title(call), ": size ", sizes[i], " makes no sense");
    } else {
      target.shape.push_back(sizes[i]);
    }
  }
  if (allow_zero && target.open && std::ranges::count(sizes, 0) > 0) {
    fail(ErrorKind::InvalidModel, title(call), ": with allowzero, sizes cannot have both 0 and -1");
  }
  return target;
}

// Axes that are copied cancel out, so a dimension can be found although others are unknown.
void find_open(const OpCall& call, const Shape& from, Target& target) {
  Shape left;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (!target.copied[axis]) left.push_back(from, axis);
  }
  Shape others;
  for (size_t axis = 0; axis < target.shape.rank(); ++axis) {
    if (!target.copies[axis] && axis != target.open) others.push_back(target.shape, axis);
  }
  if (!others.is_known()) return;
  const int64_t divisor = others.elements();
  Shape unknowns;
  Shape knowns;
  for (size_t axis = 0; axis < left.rank(); ++axis) (left[axis] < 0 ? unknowns : knowns).push_back(left, axis);
  const int64_t product = knowns.elements();
  if (unknowns.rank() == 0) {
    if (divisor == 0 || product % divisor != 0) {
      fail(ErrorKind::InvalidModel, title(call), ": shape ", from, " does not divide into ", target.shape);
    }
    target.shape.set(*target.open, product / divisor);
  } else if (unknowns.rank() == 1 && divisor == product && divisor != 0 && !unknowns.symbol(0).empty()) {
    target.shape.set_symbol(*target.open, unknowns.symbol(0));
  }
}

std::vector<Type> infer_reshape(const OpCall& call) {
  const TensorType& data = call.input(0);
  const auto sizes = constant_integers(call, 1);
  if (!sizes) {
    const auto rank = length_of(call, 1);
    return {TensorType{data.dtype, rank ? unknown_shape(*rank) : Shape::of_unknown_rank()}};
  }
  Target target = read_target(call, data.shape, *sizes);
  if (target.open && data.shape.has_rank()) find_open(call, data.shape, target);
  if (data.shape.is_known() && target.shape.is_known() && data.shape.elements() != target.shape.elements()) {
    fail(ErrorKind::InvalidModel, title(call), ": shape ", data.shape, " has not as many elements as ", target.shape);
  }
  return {TensorType{data.dtype, std::move(target.shape)}};
}

std::vector<Type> infer_flatten(const OpCall& call) {
  const TensorType& data = call.input(0);
  if (!data.shape.has_rank()) return {TensorType{data.dtype, unknown_shape(2)}};
  const auto rank = static_cast<int64_t>(data.shape.rank());
  int64_t axis = call.integer("axis", 1);
  if (axis < -rank || axis > rank)
    fail(ErrorKind::InvalidModel, title(call), ": axis ", axis, " is outside of shape ", data.shape);
  if (axis < 0) axis += rank;
  Shape shape;
  push_product(shape, data.shape, 0, static_cast<size_t>(axis));
  push_product(shape, data.shape, static_cast<size_t>(axis), data.shape.rank());
  return {TensorType{data.dtype, std::move(shape)}};
}

std::vector<Type> infer_squeeze(const OpCall& call) {
  const TensorType& data = call.input(0);
  const Shape& from = data.shape;
  std::vector<bool> dropped(from.rank());
  if (call.has(1)) {
    const auto axes = constant_integers(call, 1);
    if (!from.has_rank() || !axes) {
      const auto count = length_of(call, 1);
      if (!from.has_rank() || !count || *count > from.rank()) return {TensorType{data.dtype, Shape::of_unknown_rank()}};
      return {TensorType{data.dtype, unknown_shape(from.rank() - *count)}};
    }
    for (const size_t axis : axes_of(call, *axes, from.rank())) {
      if (from[axis] > 1 || from[axis] == 0)
        fail(ErrorKind::InvalidModel, title(call), ": axis ", axis, " of shape ", from, " is not 1");
      dropped[axis] = true;
    }
  } else {
    if (!from.is_known()) return {TensorType{data.dtype, Shape::of_unknown_rank()}};
    for (size_t axis = 0; axis < from.rank(); ++axis) dropped[axis] = from[axis] == 1;
  }
  Shape shape;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (!dropped[axis]) shape.push_back(from, axis);
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

std::vector<Type> infer_unsqueeze(const OpCall& call) {
  const TensorType& data = call.input(0);
  const auto count = length_of(call, 1);
  if (!data.shape.has_rank() || !count) return {TensorType{data.dtype, Shape::of_unknown_rank()}};
  const size_t rank = data.shape.rank() + *count;
  const auto axes = constant_integers(call, 1);
  if (!axes) return {TensorType{data.dtype, unknown_shape(rank)}};
  std::vector<bool> added(rank);
  for (const size_t axis : axes_of(call, *axes, rank)) added[axis] = true;
  Shape shape;
  size_t from = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (added[axis]) {
      shape.push_back(1);
    } else {
      shape.push_back(data.shape, from++);
    }
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

template <Infer infer>
void run_reshaping(const OpCall& call, std::span<const Data> in, Outputs& out) {
  copy_all(in[0].tensor(), allocate_inferred(call, in, out, infer));
}

// All of these are a Reshape to the shape that is known once the operator is planned.
void expand_to_reshape(GraphBuilder& b) {
  const Shape& shape = b.call().output(0).shape;
  if (!shape.is_known()) fail(ErrorKind::Unsupported, title(b.call()), ": its output's shape ", shape, " is not known yet");
  b.output(0, b.add("Reshape", {b.input(0), b.ints(shape.dims())}, {{"allowzero", int64_t{1}}}));
}

std::vector<size_t> permutation_of(const OpCall& call, size_t rank) {
  std::vector<int64_t> permutation = call.integers("perm");
  if (permutation.empty() && !call.has_attribute("perm")) {
    for (size_t axis = rank; axis-- > 0;) permutation.push_back(static_cast<int64_t>(axis));
  }
  if (permutation.size() != rank) {
    fail(ErrorKind::InvalidModel, title(call), ": 'perm' has ", permutation.size(), " axes for a tensor of rank ", rank);
  }
  return axes_of(call, permutation, rank);
}

std::vector<Type> infer_transpose(const OpCall& call) {
  const TensorType& data = call.input(0);
  if (!data.shape.has_rank()) {
    const auto permutation = call.integers("perm");
    return {TensorType{data.dtype, permutation.empty() ? Shape::of_unknown_rank() : unknown_shape(permutation.size())}};
  }
  Shape shape;
  for (const size_t axis : permutation_of(call, data.shape.rank())) shape.push_back(data.shape, axis);
  return {TensorType{data.dtype, std::move(shape)}};
}

void run_transpose(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_transpose);
  const auto strides = data.shape().strides();
  std::vector<int64_t> moved;
  for (const size_t axis : permutation_of(call, data.shape().rank())) moved.push_back(strides[axis]);
  const ElementCopy copy(data, result);
  walk<1>(result.shape(), {moved}, [&](size_t i, const std::array<int64_t, 1>& from) { copy(from[0], static_cast<int64_t>(i)); });
}

std::vector<Type> infer_identity(const OpCall& call) {
  if (!call.has(0)) fail(ErrorKind::InvalidModel, title(call), ": its input is absent");
  return {*call.inputs[0]};
}

void run_identity(const OpCall&, std::span<const Data> in, Outputs& out) {
  if (!in[0].is_tensor()) return out.set(0, in[0]);
  copy_all(in[0].tensor(), out.allocate(0, in[0].tensor().type()));
}

// The axes [first, last) that a Shape node wants.
std::pair<int64_t, int64_t> shape_range(const OpCall& call, size_t input_rank) {
  const auto rank = static_cast<int64_t>(input_rank);
  const auto clamped = [rank](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t first = clamped(call.integer("start", 0));
  return {first, std::max(first, clamped(call.integer("end", rank)))};
}

std::vector<Type> infer_shape(const OpCall& call) {
  const Shape& from = call.input(0).shape;
  if (!from.has_rank()) return {TensorType{DType::I64, unknown_shape(1)}};
  const auto [first, last] = shape_range(call, from.rank());
  return {TensorType{DType::I64, Shape{last - first}}};
}

void run_shape(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape& from = in[0].tensor().shape();
  const auto [first, last] = shape_range(call, from.rank());
  const std::vector<int64_t> dims(from.dims().begin() + first, from.dims().begin() + last);
  store(out.allocate(0, {DType::I64, Shape{last - first}}), std::span<const int64_t>(dims));
}

std::vector<Type> infer_size(const OpCall&) { return {TensorType{DType::I64, Shape()}}; }

void run_size(const OpCall&, std::span<const Data> in, Outputs& out) {
  const int64_t count = in[0].tensor().shape().elements();
  store(out.allocate(0, {DType::I64, Shape()}), std::span<const int64_t>(&count, 1));
}

std::vector<Type> infer_dropout(const OpCall& call) { return {call.input(0), TensorType{DType::Bool, call.input(0).shape}}; }

// Inference passes everything. Training drops with probability `ratio` by a generator that the attribute `seed` starts.
void run_dropout(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const auto ratios = doubles_at(in, 1);
  const auto training = integers_at(in, 2);
  const double ratio = ratios.empty() ? 0.5 : ratios[0];
  const bool trains = !training.empty() && training[0] != 0;  // Without it the ratio does not matter; 1 is exported too.
  if (trains && !(ratio >= 0 && ratio < 1))
    fail(ErrorKind::InvalidArgument, title(call), ": ratio ", ratio, " is outside of [0,1)");
  const bool drops = trains && ratio > 0;
  std::vector<int64_t> kept(data.elements(), 1);
  if (drops) {
    const CounterRandom random(call.integer("seed", 0));
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = random.unit(i) >= ratio ? 1 : 0;
  }
  if (call.wants_output(1)) store(out.allocate(1, {DType::Bool, data.shape()}), std::span<const int64_t>(kept));
  Tensor& result = out.allocate(0, data.type());
  if (!drops) return copy_all(data, result);
  auto values = doubles(data);
  for (size_t i = 0; i < values.size(); ++i) values[i] = kept[i] != 0 ? values[i] / (1 - ratio) : 0;
  store(result, std::span<const double>(values));
}

Op reshape() {
  Op op = moving_op("Reshape", "The same elements under another shape; 0 copies a dimension, -1 finds one.", "data");
  op.inputs.push_back(required("shape", {DType::I64}));
  op.attributes = {{"allowzero", int64_t{0}}};
  op.infer = infer_reshape;
  op.reference = run_reshaping<infer_reshape>;
  op.cases = {"T[2,3,4] i64[2]{6,4}",
              "T[2,3,4] i64[3]{0,-1,2}",
              "T[2,3,4] i64[1]{-1}",
              "T[0,4] i64[2]{0,-1}",
              "T[2,0,3] i64[3]{3,0,2} allowzero=1",
              "T[1] i64[0]{}",
              "T[] i64[2]{1,1}",
              "bool[2,3] i64[2]{3,2}",
              "string[4] i64[2]{2,2}",
              "i4[3,5] i64[1]{15}",
              "T[2,3,4,5] i64[3]{0,0,-1}"};
  return op;
}

Op flatten() {
  Op op = moving_op("Flatten", "The axes before `axis` become one, the others another.", "data");
  op.attributes = {{"axis", int64_t{1}}};
  op.infer = infer_flatten;
  op.reference = run_reshaping<infer_flatten>;
  op.expand = expand_to_reshape;
  op.cases = {"T[2,3,4] axis=0,1,2,3,-1,-3", "T[]  axis=0", "T[0,4] axis=1", "T[2,3,4]"};
  return op;
}

Op squeeze() {
  Op op = moving_op("Squeeze", "Drops axes of size 1.", "data");
  op.inputs.push_back(optional("axes", {DType::I64}));
  op.infer = infer_squeeze;
  op.reference = run_reshaping<infer_squeeze>;
  op.expand = expand_to_reshape;
  op.cases = {"T[1,3,1,4] i64[2]{0,2}", "T[1,3,1,4] i64[1]{-2}", "T[1,3,1,4]",
              "T[1] i64[1]{0}",         "T[1,0] i64[1]{0}",      "T[2,3] i64[0]{}"};
  return op;
}

Op unsqueeze() {
  Op op = moving_op("Unsqueeze", "Adds axes of size 1.", "data");
  op.inputs.push_back(required("axes", {DType::I64}));
  op.infer = infer_unsqueeze;
  op.reference = run_reshaping<infer_unsqueeze>;
  op.expand = expand_to_reshape;
  op.cases = {"T[3,4] i64[2]{0,3}", "T[3,4] i64[2]{-1,1}", "T[] i64[1]{0}", "T[0] i64[1]{-1}", "T[3,4] i64[3]{4,0,2}"};
  return op;
}

Op transpose() {
  Op op = moving_op("Transpose", "Reorders the axes; without `perm` it reverses them.", "data");
  op.infer = infer_transpose;
  op.reference = run_transpose;
  op.cases = {"T[2,3,4]",
              "T[2,3,4] perm=[0,2,1],[1,0,2],[2,0,1],[0,1,2]",
              "T[1,3,8,8] perm=[0,2,3,1]",
              "T[]",
              "T[0,4]",
              "T[5]",
              "T[2,3,4,5] perm=[0,2,1,3]",
              "T[2,1,3,2,2] perm=[4,1,0,3,2]",
              "bool[2,3]",
              "string[2,3]",
              "i4[3,5]",
              "c64[2,3]"};
  return op;
}

Op identity() {
  Op op = moving_op("Identity", "Its input.", "data");
  op.inputs = {required("input", {})};
  op.outputs = {required("output", {})};
  op.infer = infer_identity;
  op.reference = run_identity;
  op.cases = {"T[2,3]", "T[]", "T[0,4]", "bool[3]", "string[3]", "i4[3]"};
  return op;
}

Op shape() {
  Op op = moving_op("Shape", "The dimensions of a tensor, from axis `start` to `end`.", "data");
  op.outputs = {required("shape", {DType::I64})};
  op.attributes = {{"start", int64_t{0}}};
  op.infer = infer_shape;
  op.reference = run_shape;
  op.cases = {"T[2,3,4]", "T[2,3,4] start=1,-1,-9,5", "T[2,3,4] start=0 end=-1,2,9", "T[2,3,4] start=2 end=1", "T[]", "T[0,4]"};
  return op;
}

Op size() {
  Op op = moving_op("Size", "The number of elements.", "data");
  op.outputs = {required("size", {DType::I64})};
  op.infer = infer_size;
  op.reference = run_size;
  op.cases = {"T[2,3,4]", "T[]", "T[0,4]"};
  return op;
}

Op dropout() {
  Op op = moving_op("Dropout", "Its input when inferring, and a mask of what was kept.", "data");
  const std::vector<DType>& types = float_types();
  op.inputs = {required("data", types), optional("ratio", types), optional("training_mode", {DType::Bool})};
  op.outputs = {required("output", types), optional("mask", {DType::Bool})};
  op.attributes = {{"seed", int64_t{0}}};
  op.infer = infer_dropout;
  op.reference = run_dropout;
  op.cases = {"T[2,3]", "T[2,3] T[]{0.25}", "T[2,3] - bool[]{0} outputs=2", "T[2,3] T[]{0} bool[]{1} outputs=2", "T[0,4]",
              "T[2,3] T[]{1}", "T[64] T[]{0.5} bool[]{1}"};
  return op;
}

}  // namespace

void add_reshape_ops(OpSet& ops) {
  ops.add(reshape());
  ops.add(flatten());
  ops.add(squeeze());
  ops.add(unsqueeze());
  ops.add(transpose());
  ops.add(identity());
  ops.add(shape());
  ops.add(size());
  ops.add(dropout());
}

}  // namespace unmoor
