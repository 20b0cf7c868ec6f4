#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/pad.h"

namespace unmoor {
namespace {

constexpr int64_t longest_axis = int64_t{1} << 62;

// Copies `part` into `whole`, its rows starting at `offset` along the axis.
void copy_into(const Tensor& part, Tensor& whole, size_t axis, int64_t offset) {
  const auto to = split_at(whole.shape(), axis);
  const auto from = split_at(part.shape(), axis);
  const ElementCopy copy(part, whole);
  const auto block = static_cast<int64_t>(from.length * from.inner);
  const auto stride = static_cast<int64_t>(to.length * to.inner);
  for (size_t outer = 0; outer < from.outer; ++outer) {
    const auto row = static_cast<int64_t>(outer);
    for (int64_t i = 0; i < block; ++i) copy(row * block + i, row * stride + offset * static_cast<int64_t>(to.inner) + i);
  }
}

std::vector<Type> infer_concat(const OpCall& call) {
  const TensorType& first = call.input(0);
  Shape shape = first.shape;
  for (size_t i = 1; i < call.input_count() && !shape.has_rank(); ++i) shape = call.input(i).shape;
  if (!shape.has_rank()) return {TensorType{first.dtype, shape}};
  const size_t axis = axis_of(call, call.integer("axis", 0), shape.rank());
  int64_t sum = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const TensorType& part = call.input(i);
    if (part.dtype != first.dtype)
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", part.dtype, ", not ", first.dtype);
    if (!part.shape.has_rank()) {
      sum = Shape::unknown;
      continue;
    }
    require_rank(call, i, shape.rank());
    for (size_t k = 0; k < shape.rank(); ++k) {
      if (k == axis) continue;
      const int64_t dim = same_dim(call, shape[k], part.shape[k], cat("the size of axis ", k));
      if (shape[k] < 0 && dim >= 0) shape.set(k, dim);
    }
    if (sum >= 0 && part.shape[axis] > longest_axis - sum) {
      fail(ErrorKind::InvalidModel, title(call), ": axis ", axis, " would have more than ", longest_axis, " elements");
    }
    sum = sum < 0 || part.shape[axis] < 0 ? Shape::unknown : sum + part.shape[axis];
  }
  if (call.input_count() > 1 || sum >= 0) shape.set(axis, sum);
  return {TensorType{first.dtype, std::move(shape)}};
}

void run_concat(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = allocate_inferred(call, in, out, infer_concat);
  const size_t axis = axis_of(call, call.integer("axis", 0), result.shape().rank());
  int64_t offset = 0;
  for (const Data& part : in) {
    copy_into(part.tensor(), result, axis, offset);
    offset += part.tensor().shape()[axis];
  }
}

// The sizes of a Split's parts; each unknown where they are.
std::vector<int64_t> split_sizes(const OpCall& call, int64_t dim) {
  const size_t count = call.node.outputs.size();
  if (call.has(1)) {
    const auto sizes = constant_integers(call, 1);
    if (!sizes) return std::vector<int64_t>(count, Shape::unknown);
    if (sizes->size() != count) fail(ErrorKind::InvalidModel, title(call), ": ", sizes->size(), " sizes for ", count, " outputs");
    int64_t sum = 0;
    for (const int64_t size : *sizes) {
      if (size < 0 || size > (int64_t{1} << 48))
        fail(ErrorKind::InvalidModel, title(call), ": a part of size ", size, " makes no sense");
      sum += size;
    }
    same_dim(call, dim, sum, "the size of the axis to split");
    return *sizes;
  }
  const int64_t wanted = call.integer("num_outputs", static_cast<int64_t>(count));
  if (wanted != static_cast<int64_t>(count))
    fail(ErrorKind::InvalidModel, title(call), ": num_outputs is ", wanted, " but there are ", count, " outputs");
  if (dim < 0 || count == 0) return std::vector<int64_t>(count, Shape::unknown);
  const int64_t chunk = (dim + wanted - 1) / wanted;
  std::vector<int64_t> sizes(count, chunk);
  sizes.back() = dim - chunk * (wanted - 1);
  if (sizes.back() < 0)
    fail(ErrorKind::InvalidModel, title(call), ": an axis of ", dim, " cannot be split into ", count, " parts");
  return sizes;
}

std::vector<Type> infer_split(const OpCall& call) {
  const TensorType& data = call.input(0);
  if (!data.shape.has_rank()) return std::vector<Type>(call.node.outputs.size(), data);
  const size_t axis = axis_of(call, call.integer("axis", 0), data.shape.rank());
  std::vector<Type> types;
  for (const int64_t size : split_sizes(call, data.shape[axis])) {
    TensorType type = data;
    type.shape.set(axis, size);
    types.emplace_back(std::move(type));
  }
  return types;
}

void run_split(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const size_t axis = axis_of(call, call.integer("axis", 0), data.shape().rank());
  const auto whole = split_at(data.shape(), axis);
  const auto types = infer_split(with_data(call, in));
  size_t offset = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto& type = std::get<TensorType>(types[i]);
    const auto length = static_cast<size_t>(type.shape[axis]);
    if (call.wants_output(i)) {
      Tensor& part = out.allocate(i, type);
      const ElementCopy copy(data, part);
      int64_t to = 0;
      for (size_t outer = 0; outer < whole.outer; ++outer) {
        const size_t from = (outer * whole.length + offset) * whole.inner;
        for (size_t k = 0; k < length * whole.inner; ++k) copy(static_cast<int64_t>(from + k), to++);
      }
    }
    offset += length;
  }
}

// One Slice for each part. Outputs that nobody wants have no type, so the sizes come from the inputs.
void expand_split(GraphBuilder& b) {
  const OpCall& call = b.call();
  const Shape& shape = call.input(0).shape;
  if (!shape.has_rank()) fail(ErrorKind::Unsupported, title(call), ": the rank of its input is not known yet");
  const size_t axis = axis_of(call, call.integer("axis", 0), shape.rank());
  const std::vector<int64_t> sizes = split_sizes(call, shape[axis]);
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) fail(ErrorKind::Unsupported, title(call), ": the size of part ", i, " is not known yet");
    if (call.wants_output(i)) {
      b.output(i, b.add("Slice", {b.input(0), b.ints({offset}), b.ints({offset + sizes[i]}), b.ints({static_cast<int64_t>(axis)})}));
    }
    offset += sizes[i];
  }
}

std::vector<Type> infer_tile(const OpCall& call) {
  const TensorType& data = call.input(0);
  const auto repeats = constant_integers(call, 1);
  if (!data.shape.has_rank()) return {data};
  Shape shape = data.shape;
  if (repeats && repeats->size() != shape.rank())
    fail(ErrorKind::InvalidModel, title(call), ": ", repeats->size(), " repeats for shape ", shape);
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    const int64_t count = repeats ? (*repeats)[axis] : Shape::unknown;
    if (repeats && count < 0) fail(ErrorKind::InvalidModel, title(call), ": ", count, " repeats make no sense");
    if (count == 1) continue;
    if (count < 0 || shape[axis] < 0) {
      shape.set(axis, count == 0 ? 0 : Shape::unknown);
    } else {
      shape.set(axis, Shape{shape[axis], count}.elements());
    }
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

void run_tile(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_tile);
  const auto strides = data.shape().strides();
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    int64_t from = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) from += index[axis] % data.shape()[axis] * strides[axis];
    copy(from, i);
  });
}

std::vector<Type> infer_expand(const OpCall& call) {
  const TensorType& data = call.input(0);
  const auto sizes = constant_integers(call, 1);
  if (sizes) {
    const Shape shape(*sizes);
    if (!shape.is_known()) fail(ErrorKind::InvalidModel, title(call), ": shape ", shape, " has a negative dimension");
    return {TensorType{data.dtype, broadcast(data.shape, shape)}};
  }
  const auto rank = length_of(call, 1);
  return {TensorType{data.dtype, rank ? broadcast(data.shape, unknown_shape(*rank)) : Shape::of_unknown_rank()}};
}

void run_expand(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_expand);
  const auto strides = broadcast_strides(data.shape(), result.shape());
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) { copy(place_of(index, strides), i); });
}

Op concat() {
  Op op = moving_op("Concat", "The inputs one after another along an axis.");
  op.inputs = {variadic("inputs", every_type())};
  op.infer = infer_concat;
  op.reference = run_concat;
  op.cases = {"T[2,3] T[2,1] axis=1,-1",      "T[2,3] T[4,3] T[1,3] axis=0", "T[2,3] axis=0",
              "T[0,4] T[2,4] axis=0",         "T[2,3,4] T[2,3,4] axis=-2",   "T[0] T[0] axis=0",
              "bool[2] bool[3] axis=0",       "string[2] string[1] axis=0",  "i4[3] i4[2] axis=0",
              "T[1,16,4,4] T[1,8,4,4] axis=1"};
  return op;
}

Op split() {
  Op op = moving_op("Split", "Parts of the input along an axis, of given or equal sizes.");
  op.inputs.push_back(optional("split", {DType::I64}));
  op.outputs = {variadic("outputs", every_type())};
  op.attributes = {{"axis", int64_t{0}}};
  op.infer = infer_split;
  op.reference = run_split;
  op.expand = expand_split;
  op.cases = {"T[6,4] outputs=3 num_outputs=3",
              "T[7,4] outputs=3 num_outputs=3",
              "T[2,6] i64[2]{2,4} axis=1,-1 outputs=2",
              "T[4] i64[3]{0,4,0} outputs=3",
              "T[2,3] outputs=1",
              "T[0,4] i64[2]{0,0} outputs=2",
              "T[6,4] outputs=2 axis=1",
              "string[3] i64[2]{1,2} outputs=2"};
  return op;
}

Op tile() {
  Op op = moving_op("Tile", "The input repeated along each axis.");
  op.inputs.push_back(required("repeats", {DType::I64}));
  op.infer = infer_tile;
  op.reference = run_tile;
  op.cases = {"T[2,3] i64[2]{2,2}", "T[2,3] i64[2]{1,3}",     "T[2,3] i64[2]{0,1}", "T[] i64[0]{}",
              "T[0,4] i64[2]{2,2}", "T[1,3,1] i64[3]{2,1,4}", "bool[3] i64[1]{2}",  "string[2] i64[1]{2}"};
  return op;
}

Op expand() {
  Op op = moving_op("Expand", "The input broadcast together with a shape.");
  op.inputs.push_back(required("shape", {DType::I64}));
  op.infer = infer_expand;
  op.reference = run_expand;
  op.cases = {"T[3,1] i64[3]{2,1,6}",    "T[3,1] i64[2]{3,4}", "T[3,4] i64[2]{1,1}", "T[] i64[2]{2,3}",
              "T[2,3] i64[0]{}",         "T[1,4] i64[2]{0,1}", "T[0,1] i64[2]{1,4}", "bool[1] i64[1]{5}",
              "string[1,2] i64[2]{3,1}", "i4[1,3] i64[2]{3,1}"};
  return op;
}

}  // namespace

void add_concat_ops(OpSet& ops) {
  ops.add(concat());
  ops.add(split());
  ops.add(tile());
  ops.add(expand());
  add_pad_op(ops);
}

}  // namespace unmoor
