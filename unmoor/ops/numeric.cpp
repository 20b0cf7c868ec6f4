#include "unmoor/ops/numeric.h"

#include <algorithm>

#include "unmoor/base/error.h"

namespace unmoor {

const std::vector<DType>& float_types() {
  static const std::vector<DType> list{DType::F32, DType::F16, DType::BF16, DType::F64};
  return list;
}

const std::vector<DType>& integer_types() {
  static const std::vector<DType> list{DType::I32, DType::I64, DType::I8,  DType::U8,
                                       DType::I16, DType::U16, DType::U32, DType::U64};
  return list;
}

namespace {

std::vector<DType> joined(std::vector<DType> list, const std::vector<DType>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace

const std::vector<DType>& number_types() {
  static const std::vector<DType> list = joined(float_types(), integer_types());
  return list;
}

const std::vector<DType>& plain_types() {
  static const std::vector<DType> list = joined(number_types(), {DType::Bool});
  return list;
}

const std::vector<DType>& tensor_types() {
  static const std::vector<DType> list = joined(plain_types(), {DType::String, DType::C64, DType::C128});
  return list;
}

const std::vector<DType>& index_types() {
  static const std::vector<DType> list{DType::I64, DType::I32};
  return list;
}

Port required(std::string port_name, std::vector<DType> dtypes) {
  return {std::move(port_name), std::move(dtypes), Arity::Required};
}
Port optional(std::string port_name, std::vector<DType> dtypes) {
  return {std::move(port_name), std::move(dtypes), Arity::Optional};
}
Port variadic(std::string port_name, std::vector<DType> dtypes) {
  return {std::move(port_name), std::move(dtypes), Arity::Variadic};
}

std::string title(const OpCall& call) {
  return call.node.name.empty() ? call.node.op : cat(call.node.op, " '", call.node.name, "'");
}

std::vector<Type> like_first(const OpCall& call) { return {call.input(0)}; }

std::vector<Type> like_first_broadcast(const OpCall& call) { return broadcast_to_dtype(call, call.input(0).dtype); }

std::vector<Type> broadcast_to_dtype(const OpCall& call, DType dtype) {
  Shape shape = call.input(0).shape;
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (call.has(i)) shape = broadcast(shape, call.input(i).shape);
  }
  return {TensorType{dtype, std::move(shape)}};
}

void require_same_dtype(const OpCall& call, size_t first) {
  const DType wanted = call.input(first).dtype;
  for (size_t i = first + 1; i < call.input_count(); ++i) {
    if (call.has(i) && call.input(i).dtype != wanted) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", wanted, " as input ",
           first);
    }
  }
}

void require_broadcast_to(const OpCall& call, size_t i, const Shape& shape) {
  const Shape& from = call.input(i).shape;
  if (!from.has_rank() || !shape.has_rank()) return;
  bool fits = from.rank() <= shape.rank();
  for (size_t axis = 0; fits && axis < from.rank(); ++axis) {
    const int64_t wanted = shape[axis + shape.rank() - from.rank()];
    fits = from[axis] == 1 || from[axis] < 0 || wanted < 0 || from[axis] == wanted;
  }
  if (!fits) fail(ErrorKind::InvalidModel, title(call), ": input ", i, " of shape ", from, " does not broadcast to ", shape);
}

size_t axis_of(const OpCall& call, const Shape& shape, int64_t axis) {
  const auto rank = static_cast<int64_t>(shape.rank());
  if (axis < -rank || axis >= rank) fail(ErrorKind::InvalidModel, title(call), ": axis ", axis, " is outside of shape ", shape);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

Shape unknown_shape(size_t rank) { return Shape(std::vector<int64_t>(rank, Shape::unknown)); }

int64_t same_dim(const OpCall& call, int64_t a, int64_t b, std::string_view what) {
  if (a < 0) return b;
  if (b >= 0 && a != b) fail(ErrorKind::InvalidModel, title(call), ": ", what, " is ", a, " in one place and ", b, " in another");
  return a;
}

std::optional<std::vector<int64_t>> constant_integers(const OpCall& call, size_t i) {
  const Tensor* tensor = call.constant(i);
  if (tensor == nullptr) return std::nullopt;
  return integers(*tensor);
}

void require_rank(const OpCall& call, size_t i, size_t rank) {
  const Shape& shape = call.input(i).shape;
  if (shape.has_rank() && shape.rank() != rank) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", shape, "; rank ", rank, " was expected");
  }
}

double elements_or_zero(const Shape& shape) { return shape.is_known() ? static_cast<double>(shape.elements()) : 0; }

double bytes_moved(const OpCall& call) {
  double bytes = 0;
  const auto add = [&bytes](const Type& type) {
    const auto* tensor = std::get_if<TensorType>(&type);
    if (tensor != nullptr && tensor->is_known()) bytes += static_cast<double>(tensor->bytes());
  };
  for (const auto& input : call.inputs) {
    if (input) add(*input);
  }
  for (const auto& output : call.outputs) add(output);
  return bytes;
}

std::function<Cost(const OpCall&)> cost_per_output(double flop) {
  return [flop](const OpCall& call) { return Cost{flop * elements_or_zero(call.output(0).shape), bytes_moved(call)}; };
}

std::function<Cost(const OpCall&)> cost_per_input(double flop) {
  return [flop](const OpCall& call) { return Cost{flop * elements_or_zero(call.input(0).shape), bytes_moved(call)}; };
}

const Tensor* tensor_at(std::span<const Data> in, size_t i) { return i < in.size() && in[i] ? &in[i].tensor() : nullptr; }

std::vector<double> doubles_at(std::span<const Data> in, size_t i) {
  const Tensor* tensor = tensor_at(in, i);
  return tensor == nullptr ? std::vector<double>() : doubles(*tensor);
}

std::vector<int64_t> integers_at(std::span<const Data> in, size_t i) {
  const Tensor* tensor = tensor_at(in, i);
  return tensor == nullptr ? std::vector<int64_t>() : integers(*tensor);
}

void put(const OpCall& call, Outputs& out, size_t i, std::span<const double> values) {
  store(out.allocate(i, call.output(i)), values);
}

void put(const OpCall& call, Outputs& out, size_t i, std::span<const int64_t> values) {
  store(out.allocate(i, call.output(i)), values);
}

std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to) {
  const std::vector<int64_t> dense = from.strides();
  std::vector<int64_t> result(to.rank(), 0);
  const size_t missing = to.rank() - from.rank();
  for (size_t axis = 0; axis < from.rank(); ++axis) result[axis + missing] = from[axis] == 1 ? 0 : dense[axis];
  return result;
}

Split split_at(const Shape& shape, size_t axis) {
  const auto part = [&shape](size_t from, size_t to) { return static_cast<size_t>(shape.elements(from, to)); };
  Split split{part(0, axis), part(axis, axis + 1), part(axis + 1, shape.rank())};
  if (split.length == 0 || split.inner == 0) split.outer = 0;
  return split;
}

}  // namespace unmoor
