#include "unmoor/ops/type_union.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

Shape either_shape(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape::of_unknown_rank();
  Shape shape;
  for (size_t axis = 0; axis < a.rank(); ++axis) {
    if (a[axis] == b[axis] && a.symbol(axis) == b.symbol(axis)) {
      shape.push_back(a, axis);
    } else {
      shape.push_back(Shape::unknown);
    }
  }
  return shape;
}

// What a value has whose type nobody inferred yet.
bool is_placeholder(const TensorType& type) { return type.dtype == DType::F32 && !type.shape.has_rank(); }

std::shared_ptr<const Type> either_element(const OpCall& call, const std::shared_ptr<const Type>& a,
                                           const std::shared_ptr<const Type>& b) {
  if (!a) return b;
  if (!b) return a;
  return std::make_shared<const Type>(either_type(call, *a, *b));
}

}  // namespace

Type either_type(const OpCall& call, const Type& a, const Type& b) {
  const auto* tensor_a = std::get_if<TensorType>(&a);
  const auto* tensor_b = std::get_if<TensorType>(&b);
  if (tensor_a != nullptr && is_placeholder(*tensor_a) && tensor_b != nullptr)
    return TensorType{tensor_b->dtype, Shape::of_unknown_rank()};
  if (tensor_b != nullptr && is_placeholder(*tensor_b) && tensor_a != nullptr)
    return TensorType{tensor_a->dtype, Shape::of_unknown_rank()};
  if (tensor_a != nullptr && tensor_b != nullptr && tensor_a->dtype == tensor_b->dtype) {
    return TensorType{tensor_a->dtype, either_shape(tensor_a->shape, tensor_b->shape)};
  }
  if (const auto* sequence_a = std::get_if<SequenceType>(&a)) {
    if (const auto* sequence_b = std::get_if<SequenceType>(&b))
      return SequenceType{either_element(call, sequence_a->element, sequence_b->element)};
  }
  if (const auto* optional_a = std::get_if<OptionalType>(&a)) {
    if (const auto* optional_b = std::get_if<OptionalType>(&b))
      return OptionalType{either_element(call, optional_a->element, optional_b->element)};
  }
  if (std::holds_alternative<MapType>(a) && std::holds_alternative<MapType>(b)) return a;
  fail(ErrorKind::InvalidModel, title(call), ": a value cannot be both ", a, " and ", b);
}

SequenceType sequence_of(Type element) { return {std::make_shared<const Type>(std::move(element))}; }
OptionalType optional_of(Type element) { return {std::make_shared<const Type>(std::move(element))}; }

const Type* element_of(const OpCall& call, size_t input) {
  const Type* type = call.has(input) ? &*call.inputs[input] : nullptr;
  if (type != nullptr) {
    if (const auto* sequence = std::get_if<SequenceType>(type)) return sequence->element.get();
    if (const auto* optional = std::get_if<OptionalType>(type)) return optional->element.get();
  }
  fail(ErrorKind::InvalidModel, title(call), ": input ", input, " is ", type == nullptr ? std::string("absent") : to_text(*type),
       ", not a sequence or optional");
}

}  // namespace unmoor
