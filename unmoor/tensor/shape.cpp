#include "unmoor/tensor/shape.h"

#include <algorithm>

#include "unmoor/base/error.h"

namespace unmoor {

Shape Shape::of_unknown_rank() {
  Shape shape;
  shape.has_rank_ = false;
  return shape;
}

bool Shape::is_known() const {
  return has_rank_ && std::ranges::none_of(dims_, [](int64_t dim) { return dim < 0; });
}

const std::string& Shape::symbol(size_t axis) const {
  static const std::string none;
  return axis < symbols_.size() ? symbols_[axis] : none;
}

void Shape::fail_without(size_t axis) const {
  fail(ErrorKind::InvalidArgument, "axis ", axis, " was asked for of shape ", *this, ", which has rank ", rank());
}

void Shape::set(size_t axis, int64_t dim) {
  if (axis >= dims_.size()) fail_without(axis);
  dims_[axis] = dim;
  if (axis < symbols_.size()) symbols_[axis].clear();
}

void Shape::set_symbol(size_t axis, std::string symbol) {
  if (axis >= dims_.size()) fail_without(axis);
  dims_[axis] = unknown;
  symbols_.resize(dims_.size());
  symbols_[axis] = std::move(symbol);
}

void Shape::push_back(const Shape& other, size_t axis) {
  dims_.push_back(other[axis]);
  if (!other.symbol(axis).empty()) set_symbol(dims_.size() - 1, other.symbol(axis));
}

int64_t Shape::elements() const {
  if (!has_rank_) fail(ErrorKind::Internal, "the element count of a shape without a rank was asked for");
  return elements(0, dims_.size());
}

int64_t Shape::elements(size_t from, size_t to) const {
  constexpr int64_t limit = int64_t{1} << 58;
  int64_t product = 1;
  bool empty = false;
  for (size_t axis = from; axis < to; ++axis) {
    const int64_t dim = (*this)[axis];
    if (dim < 0) fail(ErrorKind::Internal, "the element count of the unknown shape ", *this, " was asked for");
    if (dim == 0) {
      empty = true;
    } else if (product > limit / dim) {
      fail(ErrorKind::InvalidArgument, "shape ", *this, " has more than 2^58 elements");
    } else {
      product *= dim;
    }
  }
  return empty ? 0 : product;
}

size_t Shape::axis(int64_t axis) const {
  const auto size = static_cast<int64_t>(rank());
  if (axis < -size || axis >= size) fail(ErrorKind::InvalidArgument, "axis ", axis, " is outside of shape ", *this);
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

std::vector<int64_t> Shape::strides() const {
  std::vector<int64_t> result(dims_.size());
  int64_t step = 1;
  for (size_t axis = dims_.size(); axis-- > 0;) {
    result[axis] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(dims_[axis], 1), &step)) {
      fail(ErrorKind::InvalidArgument, "the strides of shape ", *this, " pass 2^63");
    }
  }
  return result;
}

std::string to_text(const Shape& shape) {
  if (!shape.has_rank()) return "[?...]";
  std::string text = "[";
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ',';
    if (shape[axis] >= 0) {
      text += std::to_string(shape[axis]);
    } else {
      text += shape.symbol(axis).empty() ? "?" : shape.symbol(axis);
    }
  }
  return text + "]";
}

std::string to_text(const TensorType& type) { return cat(name(type.dtype), type.shape); }

bool is_known(const Type& type) {
  const auto* tensor = std::get_if<TensorType>(&type);
  return tensor != nullptr && tensor->is_known();
}

std::string to_text(const Type& type) {
  const auto inside = [](const std::shared_ptr<const Type>& element) { return element ? to_text(*element) : std::string("?"); };
  if (const auto* tensor = std::get_if<TensorType>(&type)) return to_text(*tensor);
  if (const auto* sequence = std::get_if<SequenceType>(&type)) return cat("sequence(", inside(sequence->element), ")");
  if (const auto* optional = std::get_if<OptionalType>(&type)) return cat("optional(", inside(optional->element), ")");
  const auto& map = std::get<MapType>(type);
  return cat("map(", name(map.key), ",", inside(map.value), ")");
}

Shape broadcast(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::of_unknown_rank();
  const size_t rank = std::max(a.rank(), b.rank());
  Shape result;
  for (size_t i = 0; i < rank; ++i) {
    const bool in_a = i + a.rank() >= rank;
    const bool in_b = i + b.rank() >= rank;
    const size_t at_a = i + a.rank() - rank;
    const size_t at_b = i + b.rank() - rank;
    const int64_t dim_a = in_a ? a[at_a] : 1;
    const int64_t dim_b = in_b ? b[at_b] : 1;
    if (!in_b || dim_b == 1) {
      if (in_a) {
        result.push_back(a, at_a);
      } else {
        result.push_back(dim_b);
      }
    } else if (!in_a || dim_a == 1 || dim_a < 0) {
      if (dim_a < 0 && dim_b < 0 && a.symbol(at_a) != b.symbol(at_b)) {
        result.push_back(Shape::unknown);
      } else {
        result.push_back(b, at_b);
      }
    } else if (dim_b < 0 || dim_a == dim_b) {
      result.push_back(dim_a);
    } else {
      fail(ErrorKind::InvalidArgument, "shapes ", a, " and ", b, " do not broadcast together");
    }
  }
  return result;
}

}  // namespace unmoor
