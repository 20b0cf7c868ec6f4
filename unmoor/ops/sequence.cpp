#include <algorithm>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/optional.h"
#include "unmoor/ops/type_union.h"

namespace unmoor {
namespace {

std::vector<Type> infer_construct(const OpCall& call) {
  Type element = call.input(0);
  for (size_t i = 1; i < call.input_count(); ++i) element = either_type(call, element, call.input(i));
  return {sequence_of(std::move(element))};
}

void run_construct(const OpCall&, std::span<const Data> in, Outputs& out) {
  Sequence sequence;
  for (const Data& item : in) sequence.items.push_back(owned(item));
  out.set(0, std::move(sequence));
}

std::vector<Type> infer_empty(const OpCall& call) {
  return {sequence_of(TensorType{dtype_attribute(call, "dtype").value_or(DType::F32), Shape::of_unknown_rank()})};
}

void run_empty(const OpCall&, std::span<const Data>, Outputs& out) { out.set(0, Sequence{}); }

// The place that input `i` gives, of `size` ones; `otherwise` if it is absent.
size_t position(const OpCall& call, std::span<const Data> in, size_t i, size_t size, int64_t otherwise) {
  const auto given = integers_at(in, i);
  if (tensor_at(in, i) != nullptr && given.size() != 1)
    fail(ErrorKind::InvalidArgument, title(call), ": the position has ", given.size(), " elements, not one");
  return static_cast<size_t>(wrapped_index(call, given.empty() ? otherwise : given[0], static_cast<int64_t>(size)));
}

std::vector<Type> infer_insert(const OpCall& call) {
  const Type* element = element_of(call, 0);
  return {sequence_of(element == nullptr ? Type(call.input(1)) : either_type(call, *element, call.input(1)))};
}

void run_insert(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Sequence sequence = in[0].sequence();
  const size_t size = sequence.items.size();
  const auto given = integers_at(in, 2);
  size_t place = size;
  if (!given.empty() && given[0] != static_cast<int64_t>(size)) place = position(call, in, 2, size, 0);
  sequence.items.insert(sequence.items.begin() + static_cast<std::ptrdiff_t>(place), owned(in[1]));
  out.set(0, std::move(sequence));
}

std::vector<Type> infer_erase(const OpCall& call) {
  element_of(call, 0);
  return {*call.inputs[0]};
}

void run_erase(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Sequence sequence = in[0].sequence();
  sequence.items.erase(sequence.items.begin() + static_cast<std::ptrdiff_t>(position(call, in, 1, sequence.items.size(), -1)));
  out.set(0, std::move(sequence));
}

std::vector<Type> infer_at(const OpCall& call) {
  const Type* element = element_of(call, 0);
  return {element == nullptr ? Type(TensorType{DType::F32, Shape::of_unknown_rank()}) : *element};
}

void run_at(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto& items = in[0].sequence().items;
  out.set(0, owned(items[position(call, in, 1, items.size(), 0)]));
}

std::vector<Type> infer_length(const OpCall& call) {
  element_of(call, 0);
  return {TensorType{DType::I64, Shape()}};
}

void run_length(const OpCall&, std::span<const Data> in, Outputs& out) {
  const auto length = static_cast<int64_t>(in[0].sequence().items.size());
  store(out.allocate(0, {DType::I64, Shape()}), std::span<const int64_t>(&length, 1));
}

constexpr int64_t most_parts = int64_t{1} << 24;  // An axis of 2^40 costs nothing where another is 0; its parts would.

bool keeps_axis(const OpCall& call) { return call.has(1) || call.integer("keepdims", 1) != 0; }

// The sizes of the parts: chunks of one size, or those listed.
std::vector<int64_t> part_sizes(const OpCall& call, int64_t dim) {
  std::vector<int64_t> sizes;
  const Tensor* given = call.constant(1);
  if (given != nullptr && given->shape().rank() > 0) {
    sizes = integers(*given);
    int64_t left = dim;
    for (const int64_t size : sizes) {
      if (size < 0 || size > left)
        fail(ErrorKind::InvalidArgument, title(call), ": a part of ", size, " where ", left, " of ", dim, " are left");
      left -= size;
    }
    if (left != 0) fail(ErrorKind::InvalidArgument, title(call), ": the parts leave ", left, " of ", dim);
    return sizes;
  }
  const int64_t chunk = given == nullptr ? 1 : integers(*given)[0];
  if (chunk < 1) fail(ErrorKind::InvalidArgument, title(call), ": parts of size ", chunk, " make no sense");
  if (dim / chunk > most_parts) fail(ErrorKind::InvalidArgument, title(call), ": there would be ", dim / chunk, " parts");
  for (int64_t left = dim; left > 0; left -= std::min(left, chunk)) sizes.push_back(std::min(left, chunk));
  return sizes;
}

std::vector<Type> infer_split_to(const OpCall& call) {
  const TensorType& data = call.input(0);
  if (!data.shape.has_rank()) return {sequence_of(data)};
  const size_t axis = axis_of(call, call.integer("axis", 0), data.shape.rank());
  Shape shape;
  for (size_t i = 0; i < data.shape.rank(); ++i) {
    if (i != axis) {
      shape.push_back(data.shape, i);
    } else if (keeps_axis(call)) {
      shape.push_back(call.has(1) ? Shape::unknown : 1);
    }
  }
  return {sequence_of(TensorType{data.dtype, std::move(shape)})};
}

void run_split_to(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const size_t axis = axis_of(call, call.integer("axis", 0), data.shape().rank());
  const auto split = split_at(data.shape(), axis);
  Sequence sequence;
  size_t offset = 0;
  for (const int64_t size : part_sizes(with_data(call, in), data.shape()[axis])) {
    Shape shape = data.shape();
    shape.set(axis, size);
    Tensor part(TensorType{data.dtype(), shape});
    const ElementCopy copy(data, part);
    const size_t block = static_cast<size_t>(size) * split.inner;
    for (size_t i = 0; i < split.outer * block; ++i) {
      copy(static_cast<int64_t>((i / block * split.length + offset) * split.inner + i % block), static_cast<int64_t>(i));
    }
    offset += static_cast<size_t>(size);
    if (!keeps_axis(call)) {
      std::vector<int64_t> dims = shape.dims();
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
      part = part.reshaped(Shape(std::move(dims)));
    }
    sequence.items.emplace_back(std::move(part));
  }
  out.set(0, std::move(sequence));
}

std::vector<Type> infer_concat_from(const OpCall& call) {
  const Type* element = element_of(call, 0);
  const auto* tensor = element == nullptr ? nullptr : std::get_if<TensorType>(element);
  if (tensor == nullptr || !tensor->shape.has_rank())
    return {TensorType{tensor == nullptr ? DType::F32 : tensor->dtype, Shape::of_unknown_rank()}};
  const bool adds_axis = call.integer("new_axis", 0) != 0;
  const size_t axis = axis_of(call, call.integer("axis", 0), tensor->shape.rank() + (adds_axis ? 1 : 0));
  Shape shape;
  for (size_t i = 0; i < tensor->shape.rank() + (adds_axis ? 1 : 0); ++i) {
    const size_t from = adds_axis && i > axis ? i - 1 : i;
    if (i == axis) {
      shape.push_back(Shape::unknown);
    } else {
      shape.push_back(tensor->shape, from);
    }
  }
  return {TensorType{tensor->dtype, std::move(shape)}};
}

void run_concat_from(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto& items = in[0].sequence().items;
  if (items.empty()) fail(ErrorKind::InvalidArgument, title(call), ": an empty sequence cannot be joined");
  std::vector<Tensor> parts;
  const bool adds_axis = call.integer("new_axis", 0) != 0;
  size_t axis = 0;
  for (const Data& item : items) {
    std::vector<int64_t> dims = item.tensor().shape().dims();
    axis = axis_of(call, call.integer("axis", 0), dims.size() + (adds_axis ? 1 : 0));
    if (adds_axis) dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    parts.push_back(item.tensor().reshaped(Shape(std::move(dims))));
  }
  Shape shape = parts[0].shape();
  int64_t length = 0;
  for (const Tensor& part : parts) {
    Shape expected = shape;
    if (part.shape().rank() == shape.rank()) expected.set(axis, part.shape()[axis]);
    if (part.shape() != expected)
      fail(ErrorKind::InvalidArgument, title(call), ": shapes ", shape, " and ", part.shape(), " cannot be joined on axis ",
           axis);
    length += part.shape()[axis];
  }
  shape.set(axis, length);
  Tensor& result = out.allocate(0, {parts[0].dtype(), shape});
  const auto whole = split_at(shape, axis);
  size_t offset = 0;
  for (const Tensor& part : parts) {
    const size_t block = static_cast<size_t>(part.shape()[axis]) * whole.inner;
    const ElementCopy copy(part, result);
    for (size_t i = 0; i < whole.outer * block; ++i) {
      copy(static_cast<int64_t>(i), static_cast<int64_t>((i / block * whole.length + offset) * whole.inner + i % block));
    }
    offset += static_cast<size_t>(part.shape()[axis]);
  }
}

Op sequence_op(std::string name, std::string summary, std::vector<Port> inputs, std::vector<DType> output) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = std::move(inputs);
  op.outputs = {required("output", std::move(output))};
  op.rounding = Rounding::MoveBits;
  op.category = Category::Sequence;
  return op;
}

void add(OpSet& ops, Op op, Infer infer, void (*reference)(const OpCall&, std::span<const Data>, Outputs&),
         std::vector<std::string> cases = {}) {
  op.infer = infer;
  op.reference = reference;
  op.cases = std::move(cases);
  ops.add(std::move(op));
}

}  // namespace

void add_sequence_ops(OpSet& ops) {
  const Port list = required("input_sequence", {});
  const Port place = optional("position", index_types());
  add(ops, sequence_op("SequenceConstruct", "A sequence of the inputs.", {variadic("inputs", tensor_types())}, {}),
      infer_construct, run_construct, {"T[2] T[3]", "T[2,3] T[2,4] T[2,3]", "T[0]"});
  add(ops, sequence_op("SequenceEmpty", "A sequence of nothing.", {}, {}), infer_empty, run_empty, {"dtype=f32,i64"});
  add(ops,
      sequence_op("SequenceInsert", "The sequence with a tensor put before a position, or at its end.",
                  {list, required("tensor", tensor_types()), place}, {}),
      infer_insert, run_insert);
  add(ops, sequence_op("SequenceErase", "The sequence without the tensor at a position, or the last one.", {list, place}, {}),
      infer_erase, run_erase);
  add(ops,
      sequence_op("SequenceAt", "The tensor at a position of a sequence.", {list, required("position", index_types())},
                  tensor_types()),
      infer_at, run_at);
  add(ops, sequence_op("SequenceLength", "How many tensors a sequence holds.", {list}, {DType::I64}), infer_length, run_length);
  add(ops,
      sequence_op("SplitToSequence", "Parts of a tensor along an axis, as a sequence.",
                  {required("input", tensor_types()), optional("split", index_types())}, {}),
      infer_split_to, run_split_to,
      {"T[3,4]", "T[3,4] keepdims=0 axis=1", "T[5,2] i64[]{2}", "T[5,2] i64[2]{1,4}", "T[2,5] i64[3]{0,2,3} axis=-1",
       "T[0,2] i64[]{2}", "string[3] i64[]{2}"});
  add(ops, sequence_op("ConcatFromSequence", "The tensors of a sequence joined along an axis.", {list}, tensor_types()),
      infer_concat_from, run_concat_from);
  add_optional_ops(ops);
}

}  // namespace unmoor
