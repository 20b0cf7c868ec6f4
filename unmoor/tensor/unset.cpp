#include "unmoor/tensor/unset.h"

#include <algorithm>
#include <cstring>

#include "unmoor/tensor/convert.h"

namespace unmoor {

Tensor float64_tensor(const Tensor& tensor) {
  if (tensor.dtype() == DType::F64) return tensor;
  Tensor result = unset_tensor({DType::F64, tensor.shape()});
  const auto to = result.writable_span<double>();
  if (tensor.dtype() != DType::F32) {
    const std::vector<double> values = doubles(tensor);
    std::copy(values.begin(), values.end(), to.begin());
    return result;
  }
  widen(tensor, 0, to);
  return result;
}

void widen(const Tensor& tensor, size_t begin, std::span<double> to) {
  const std::byte* const from = tensor.bytes().data() + begin * sizeof(float);
  for (size_t i = 0; i < to.size(); ++i) {
    float value = 0;
    std::memcpy(&value, from + i * sizeof(float), sizeof(float));
    to[i] = static_cast<double>(value);
  }
}

}  // namespace unmoor
