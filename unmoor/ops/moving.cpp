#include "unmoor/ops/moving.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {

const std::vector<DType>& every_type() {
  static const std::vector<DType> list = [] {
    std::vector<DType> all = tensor_types();
    for (const DType dtype : {DType::I4, DType::U4, DType::I2, DType::U2, DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2,
                              DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1}) {
      all.push_back(dtype);
    }
    return all;
  }();
  return list;
}

Op moving_op(std::string name, std::string summary, std::string input) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required(std::move(input), every_type())};
  op.outputs = {required("output", every_type())};
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  return op;
}

ElementCopy::ElementCopy(const Tensor& from, Tensor& to) : bits_(bits_of(from.dtype())), size_(bits_ / 8) {
  if (from.dtype() != to.dtype())
    fail(ErrorKind::InvalidArgument, "elements of ", from.dtype(), " cannot be moved to ", to.dtype());
  if (from.dtype() == DType::String) {
    strings_from_ = &from.strings();
    strings_to_ = &to.writable_strings();
  } else {
    from_ = from.bytes().data();
    to_ = to.writable_bytes().data();
  }
}

void ElementCopy::copy_other(size_t from, size_t to) const {
  if (strings_to_ != nullptr) {
    (*strings_to_)[to] = (*strings_from_)[from];
    return;
  }
  const size_t per_byte = 8 / bits_;
  const auto mask = (1U << bits_) - 1;
  const auto value = (std::to_integer<unsigned>(from_[from / per_byte]) >> (from % per_byte * bits_)) & mask;
  const auto shift = to % per_byte * bits_;
  std::byte& target = to_[to / per_byte];
  target = static_cast<std::byte>((std::to_integer<unsigned>(target) & ~(mask << shift)) | (value << shift));
}

void fill(Tensor& to, const Tensor& from, int64_t from_index) {
  const ElementCopy copy(from, to);
  const auto count = static_cast<int64_t>(to.elements());
  for (int64_t i = 0; i < count; ++i) copy(from_index, i);
}

void copy_all(const Tensor& from, Tensor& to) {
  if (from.dtype() == DType::String) {
    to.writable_strings() = from.strings();
  } else {
    std::ranges::copy(from.bytes(), to.writable_bytes().begin());
  }
}

Data owned(const Data& data) { return data.is_tensor() ? Data(data.tensor().clone()) : data; }

int64_t place_of(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t place = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) place += index[axis] * strides[axis];
  return place;
}

OpCall with_data(const OpCall& call, std::span<const Data> in) {
  OpCall result{call.node, call.inputs, call.outputs, call.constants};
  result.constants.resize(result.inputs.size());
  for (size_t i = 0; i < std::min(in.size(), result.inputs.size()); ++i) {
    if (!result.inputs[i] || !in[i].is_tensor()) continue;
    result.inputs[i] = in[i].tensor().type();
    result.constants[i] = &in[i].tensor();
  }
  return result;
}

Tensor& allocate_inferred(const OpCall& call, std::span<const Data> in, Outputs& out, Infer infer, size_t i) {
  return out.allocate(i, std::get<TensorType>(infer(with_data(call, in)).at(i)));
}

int64_t wrapped_index(const OpCall& call, int64_t index, int64_t size) {
  if (index < -size || index >= size) {
    fail(ErrorKind::InvalidArgument, title(call), ": index ", index, " is outside of [", -size, ",", size, ")");
  }
  return index < 0 ? index + size : index;
}

size_t axis_of(const OpCall& call, int64_t axis, size_t rank) {
  const auto size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size)
    fail(ErrorKind::InvalidModel, title(call), ": axis ", axis, " is outside of [", -size, ",", size, ")");
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

std::vector<size_t> axes_of(const OpCall& call, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<size_t> result;
  for (const int64_t axis : axes) {
    result.push_back(axis_of(call, axis, rank));
    if (std::count(result.begin(), result.end(), result.back()) > 1) {
      fail(ErrorKind::InvalidModel, title(call), ": axis ", axis, " is given twice");
    }
  }
  return result;
}

void push_product(Shape& to, const Shape& shape, size_t from, size_t end) {
  size_t unknown_count = 0;
  size_t unknown_axis = 0;
  for (size_t axis = from; axis < end; ++axis) {
    if (shape[axis] >= 0) continue;
    ++unknown_count;
    unknown_axis = axis;
  }
  Shape known;
  for (size_t axis = from; axis < end; ++axis) {
    if (shape[axis] >= 0) known.push_back(shape[axis]);
  }
  const int64_t product = known.elements();
  if (unknown_count == 0 || product == 0) {
    to.push_back(product);
  } else if (unknown_count == 1 && product == 1) {
    to.push_back(shape, unknown_axis);
  } else {
    to.push_back(Shape::unknown);
  }
}

std::optional<size_t> length_of(const OpCall& call, size_t i) {
  const Shape& shape = call.input(i).shape;
  if (!shape.has_rank()) return std::nullopt;
  if (shape.rank() > 1)
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", shape, "; one dimension was expected");
  if (shape.rank() == 0) return 1;
  if (shape[0] < 0) return std::nullopt;
  return static_cast<size_t>(shape[0]);
}

}  // namespace unmoor
