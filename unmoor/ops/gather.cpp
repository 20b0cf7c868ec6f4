#include <algorithm>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

std::vector<Type> infer_gather(const OpCall& call) {
  const TensorType& data = call.input(0);
  const Shape& indices = call.input(1).shape;
  if (!data.shape.has_rank() || !indices.has_rank()) return {TensorType{data.dtype, Shape::of_unknown_rank()}};
  const size_t axis = axis_of(call, call.integer("axis", 0), data.shape.rank());
  Shape shape;
  for (size_t i = 0; i < axis; ++i) shape.push_back(data.shape, i);
  for (size_t i = 0; i < indices.rank(); ++i) shape.push_back(indices, i);
  for (size_t i = axis + 1; i < data.shape.rank(); ++i) shape.push_back(data.shape, i);
  return {TensorType{data.dtype, std::move(shape)}};
}

void run_gather(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const auto split = split_at(data.shape(), axis_of(call, call.integer("axis", 0), data.shape().rank()));
  auto indices = integers(in[1].tensor());
  for (int64_t& index : indices) index = wrapped_index(call, index, static_cast<int64_t>(split.length));
  Tensor& result = allocate_inferred(call, in, out, infer_gather);
  const ElementCopy copy(data, result);
  int64_t to = 0;
  for (size_t outer = 0; outer < split.outer; ++outer) {
    for (const int64_t index : indices) {
      const size_t from = (outer * split.length + static_cast<size_t>(index)) * split.inner;
      for (size_t inner = 0; inner < split.inner; ++inner) copy(static_cast<int64_t>(from + inner), to++);
    }
  }
}

std::vector<Type> infer_gather_elements(const OpCall& call) {
  const TensorType& data = call.input(0);
  const Shape& indices = call.input(1).shape;
  if (data.shape.has_rank() && indices.has_rank()) {
    if (data.shape.rank() != indices.rank()) {
      fail(ErrorKind::InvalidModel, title(call), ": data ", data.shape, " and indices ", indices, " do not have the same rank");
    }
    const size_t axis = axis_of(call, call.integer("axis", 0), data.shape.rank());
    for (size_t i = 0; i < indices.rank(); ++i) {
      if (i != axis && data.shape[i] >= 0 && indices[i] > data.shape[i]) {
        fail(ErrorKind::InvalidModel, title(call), ": indices ", indices, " reach beyond data ", data.shape, " on axis ", i);
      }
    }
  }
  return {TensorType{data.dtype, indices}};
}

void run_gather_elements(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const auto indices = integers(in[1].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_gather_elements);
  const auto strides = data.shape().strides();
  const size_t axis = axis_of(call, call.integer("axis", 0), data.shape().rank());
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const int64_t chosen = wrapped_index(call, indices[static_cast<size_t>(i)], data.shape()[axis]);
    copy(place_of(index, strides) + (chosen - index[axis]) * strides[axis], i);
  });
}

std::vector<Type> infer_gather_nd(const OpCall& call) {
  const TensorType& data = call.input(0);
  const Shape& indices = call.input(1).shape;
  const int64_t batch = call.integer("batch_dims", 0);
  if (!data.shape.has_rank() || !indices.has_rank()) return {TensorType{data.dtype, Shape::of_unknown_rank()}};
  const auto rank = static_cast<int64_t>(data.shape.rank());
  if (indices.rank() == 0 || batch < 0 || batch >= static_cast<int64_t>(indices.rank()) || batch >= rank) {
    fail(ErrorKind::InvalidModel, title(call), ": batch_dims ", batch, " does not go with data ", data.shape, " and indices ",
         indices);
  }
  const int64_t depth = indices[indices.rank() - 1];
  if (depth < 0) return {TensorType{data.dtype, Shape::of_unknown_rank()}};
  if (batch + depth > rank)
    fail(ErrorKind::InvalidModel, title(call), ": ", depth, " indices and ", batch, " batch axes are too many for ", data.shape);
  Shape shape;
  for (size_t i = 0; i + 1 < indices.rank(); ++i) {
    if (i < static_cast<size_t>(batch)) same_dim(call, data.shape[i], indices[i], "a batch dimension");
    shape.push_back(indices, i);
  }
  for (auto i = static_cast<size_t>(batch + depth); i < data.shape.rank(); ++i) shape.push_back(data.shape, i);
  return {TensorType{data.dtype, std::move(shape)}};
}

void run_gather_nd(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const Shape& shape = in[1].tensor().shape();
  const auto indices = integers(in[1].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_gather_nd);
  const auto batch = static_cast<size_t>(call.integer("batch_dims", 0));
  const auto depth = static_cast<size_t>(shape[shape.rank() - 1]);
  const auto strides = data.shape().strides();
  const int64_t slice = data.shape().elements(batch + depth, data.shape().rank());
  const int64_t batch_elements = data.shape().elements(batch, data.shape().rank());
  const int64_t rows = shape.elements(0, shape.rank() - 1);
  const int64_t rows_per_batch = shape.elements(batch, shape.rank() - 1);
  const ElementCopy copy(data, result);
  for (int64_t row = 0; row < rows && (depth > 0 || slice > 0); ++row) {  // Rows without either are no data and may be 2^40.
    int64_t from = row / rows_per_batch * batch_elements;
    for (size_t k = 0; k < depth; ++k) {
      from += wrapped_index(call, indices[static_cast<size_t>(row) * depth + k], data.shape()[batch + k]) * strides[batch + k];
    }
    for (int64_t i = 0; i < slice; ++i) copy(from + i, row * slice + i);
  }
}

struct Cut {
  int64_t start = 0;
  int64_t step = 1;
  int64_t length = 0;
};

// The elements of one axis that a slice takes, as NumPy does.
Cut cut_of(int64_t dim, int64_t start, int64_t end, int64_t step) {
  step = std::clamp(step, -dim - 1, dim + 1);  // Longer steps do the same.
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<int64_t>(start, -1, dim - 1);
  end = std::clamp<int64_t>(end, -1, dim - 1);
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

struct Slices {
  std::vector<size_t> axes;
  std::vector<int64_t> starts, ends, steps;
};

// What is known of a Slice's inputs; nothing where the axes are not.
std::optional<std::vector<size_t>> slice_axes(const OpCall& call, size_t rank) {
  if (call.has(3)) {
    const auto axes = constant_integers(call, 3);
    if (!axes) return std::nullopt;
    return axes_of(call, *axes, rank);
  }
  const auto count = length_of(call, 1);
  if (!count) return std::nullopt;
  std::vector<size_t> axes;
  for (size_t i = 0; i < *count; ++i) axes.push_back(axis_of(call, static_cast<int64_t>(i), rank));
  return axes;
}

std::optional<Slices> known_slices(const OpCall& call, const std::vector<size_t>& axes) {
  const auto starts = constant_integers(call, 1);
  const auto ends = constant_integers(call, 2);
  const auto steps = call.has(4) ? constant_integers(call, 4) : std::vector<int64_t>(axes.size(), 1);
  if (!starts || !ends || !steps) return std::nullopt;
  if (starts->size() != axes.size() || ends->size() != axes.size() || steps->size() != axes.size()) {
    fail(ErrorKind::InvalidModel, title(call), ": ", starts->size(), " starts, ", ends->size(), " ends and ", steps->size(),
         " steps for ", axes.size(), " axes");
  }
  if (std::ranges::count(*steps, 0) > 0) fail(ErrorKind::InvalidModel, title(call), ": a step is 0");
  return Slices{axes, *starts, *ends, *steps};
}

std::vector<Type> infer_slice(const OpCall& call) {
  const TensorType& data = call.input(0);
  if (!data.shape.has_rank()) return {data};
  const auto axes = slice_axes(call, data.shape.rank());
  if (!axes) return {TensorType{data.dtype, unknown_shape(data.shape.rank())}};
  const auto slices = known_slices(call, *axes);
  Shape shape = data.shape;
  for (size_t i = 0; i < axes->size(); ++i) {
    const size_t axis = (*axes)[i];
    const int64_t dim = data.shape[axis];
    if (!slices) {
      shape.set(axis, Shape::unknown);
    } else if (dim >= 0) {
      shape.set(axis, cut_of(dim, slices->starts[i], slices->ends[i], slices->steps[i]).length);
    } else if (slices->starts[i] != 0 || slices->steps[i] != 1 || slices->ends[i] < std::numeric_limits<int32_t>::max()) {
      shape.set(axis, Shape::unknown);
    }
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

void run_slice(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const OpCall known = with_data(call, in);
  Tensor& result = allocate_inferred(call, in, out, infer_slice);
  const auto strides = data.shape().strides();
  const auto slices = known_slices(known, *slice_axes(known, data.shape().rank())).value();
  auto moved = strides;
  int64_t first = 0;
  for (size_t i = 0; i < slices.axes.size(); ++i) {
    const size_t axis = slices.axes[i];
    const Cut cut = cut_of(data.shape()[axis], slices.starts[i], slices.ends[i], slices.steps[i]);
    moved[axis] = strides[axis] * cut.step;
    first += strides[axis] * cut.start;
  }
  const ElementCopy copy(data, result);
  for_each_index(result.shape(), [&](int64_t i, const std::vector<int64_t>& index) { copy(first + place_of(index, moved), i); });
}

Op gather() {
  Op op = moving_op("Gather", "Slices of the data along an axis, chosen by indices.", "data");
  op.inputs.push_back(required("indices", index_types()));
  op.attributes = {{"axis", int64_t{0}}};
  op.infer = infer_gather;
  op.reference = run_gather;
  op.cases = {"T[5,4] i64[3]{0,4,-1}",
              "T[5,4] i64[2,3]~signed_index:4 axis=1,-1",
              "T[5,4] i64[]{2}",
              "T[5,4,3] i32[2]~index:4 axis=1",
              "T[0,4] i64[3]{0,3,1} axis=1",
              "T[5,4] i64[0]{}",
              "T[5] i64[]{-5}",
              "bool[5] i64[3]~index:5",
              "string[5,2] i64[3]{4,4,0}",
              "i4[3,3] i64[2]{2,0}",
              "T[17,8] i64[4,3]~index:17"};
  return op;
}

Op gather_elements() {
  Op op = moving_op("GatherElements", "Single elements, each chosen along an axis by an index at its place.", "data");
  op.inputs.push_back(required("indices", index_types()));
  op.attributes = {{"axis", int64_t{0}}};
  op.infer = infer_gather_elements;
  op.reference = run_gather_elements;
  op.cases = {"T[3,4] i64[3,4]~signed_index:3 axis=0,-2",
              "T[3,4] i32[2,5]~index:4 axis=1",
              "T[3,2,4] i64[2,2,3]~index:3",
              "T[3,4] i64[0,4]",
              "string[3] i64[4]{0,2,-1,1}",
              "i4[3,3] i64[2,3]~index:3"};
  return op;
}

Op gather_nd() {
  Op op = moving_op("GatherND", "Slices of the data, each chosen by a tuple of indices.", "data");
  op.inputs.push_back(required("indices", {DType::I64}));
  op.attributes = {{"batch_dims", int64_t{0}}};
  op.infer = infer_gather_nd;
  op.reference = run_gather_nd;
  op.cases = {"T[3,4] i64[2,2]{0,1,-1,3}",
              "T[3,4] i64[2,1]{1,-3}",
              "T[2,3,4] i64[2,2,1]~signed_index:3 batch_dims=1",
              "T[2,3,4] i64[2,3,1]~index:4 batch_dims=2",
              "T[2,3,4] i64[4,2]~index:2",
              "T[2,3] i64[2,0]{}",
              "T[2,3] i64[0,1]",
              "T[4] i64[1]{2}",
              "string[2,2] i64[2,2]{0,1,1,0}",
              "T[2,0,4] i64[2,1,1]{0,0} batch_dims=0"};
  return op;
}

Op slice() {
  Op op = moving_op("Slice", "Every step-th element between start and end, along each given axis.", "data");
  op.inputs = {required("data", every_type()), required("starts", index_types()), required("ends", index_types()),
               optional("axes", index_types()), optional("steps", index_types())};
  op.infer = infer_slice;
  op.reference = run_slice;
  op.cases = {
      "T[6,5] i64[2]{1,0} i64[2]{4,3}",
      "T[6,5] i64[1]{1} i64[1]{-1} i64[1]{1}",
      "T[6,5] i64[1]{-3} i64[1]{1000} i64[1]{-1}",
      "T[6,5] i64[2]{5,-1} i64[2]{-1000,-1000} i64[2]{0,1} i64[2]{-2,-1}",
      "T[6,5] i64[1]{-1} i64[1]{-9223372036854775808} i64[1]{0} i64[1]{-1}",
      "T[6,5] i64[1]{0} i64[1]{9223372036854775807} i64[1]{1} i64[1]{9223372036854775807}",
      "T[6,5] i64[1]{4} i64[1]{2}",
      "T[6,5] i64[1]{100} i64[1]{200}",
      "T[0,5] i64[1]{-1} i64[1]{-100} i64[1]{0} i64[1]{-1}",
      "T[6,5] i32[1]{1} i32[1]{6} i32[1]{0} i32[1]{3}",
      "T[4,4,4] i64[2]{0,1} i64[2]{2,3} i64[2]{2,-3}",
      "string[4] i64[1]{1} i64[1]{3}",
      "i4[3,5] i64[2]{0,1} i64[2]{3,4}",
      "bool[6] i64[1]{5} i64[1]{0} - i64[1]{-2}",
  };
  return op;
}

}  // namespace

void add_gather_ops(OpSet& ops) {
  ops.add(gather());
  ops.add(gather_elements());
  ops.add(gather_nd());
  ops.add(slice());
}

}  // namespace unmoor
