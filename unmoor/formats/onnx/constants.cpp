#include "unmoor/formats/onnx/constants.h"

#include "unmoor/base/error.h"

namespace unmoor::onnx {
namespace {

template <class T>
const T& held(const std::string& name, const Attribute& attribute) {
  const T* const value = std::get_if<T>(&attribute);
  if (value == nullptr) fail(ErrorKind::InvalidModel, "attribute '", name, "' has the wrong type");
  return *value;
}

template <class T>
Tensor line(const std::vector<T>& values) {
  return Tensor::from<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

}  // namespace

Tensor constant_value(const Attributes& attributes) {
  if (attributes.size() != 1) fail(ErrorKind::InvalidModel, "a Constant needs one attribute, not ", attributes.size());
  const auto& [name, value] = *attributes.begin();
  if (name == "value" || name == "sparse_value") return held<Tensor>(name, value);
  if (name == "value_float") return Tensor::scalar(held<float>(name, value));
  if (name == "value_int") return Tensor::scalar(held<int64_t>(name, value));
  if (name == "value_string") return Tensor::of_strings(Shape(), {held<std::string>(name, value)});
  if (name == "value_floats") return line(held<std::vector<float>>(name, value));
  if (name == "value_ints") return line(held<std::vector<int64_t>>(name, value));
  if (name == "value_strings") {
    const auto& texts = held<std::vector<std::string>>(name, value);
    return Tensor::of_strings({static_cast<int64_t>(texts.size())}, texts);
  }
  fail(ErrorKind::InvalidModel, "attribute '", name, "' of a Constant is not known");
}

}  // namespace unmoor::onnx
