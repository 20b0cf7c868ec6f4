#include "unmoor/ops/real.h"

#include <algorithm>

namespace unmoor {

RealInput::RealInput(const Tensor& tensor) {
  if (tensor.dtype() == DType::F64) {
    numbers_ = tensor.span<double>();
  } else {
    copy_ = doubles(tensor);
    numbers_ = copy_;
  }
}

RealOutput::RealOutput(Tensor& tensor) : tensor_(tensor) {
  if (tensor.dtype() == DType::F64) {
    numbers_ = tensor.writable_span<double>();
  } else {
    beside_.resize(tensor.elements());
    numbers_ = beside_;
  }
}

void RealOutput::store() {
  if (tensor_.dtype() != DType::F64) unmoor::store(tensor_, std::span<const double>(numbers_));
}

RowPair::RowPair(const Shape& a, const Shape& b, const Shape& shape) {
  const std::array<std::vector<int64_t>, 2> strides{broadcast_strides(a, shape), broadcast_strides(b, shape)};
  size_t axis = shape.rank();
  // Axes join a row as long as each operand goes on as it did; those of length 1 always.
  for (; axis > 0; --axis) {
    const int64_t size = shape[axis - 1];
    if (size == 1) continue;
    bool fits = true;
    for (size_t k = 0; k < 2; ++k) {
      const int64_t stride = strides[k][axis - 1];
      const int64_t expected = length == 1 ? stride : steps[k] * static_cast<int64_t>(length);
      fits = fits && stride == expected && (length > 1 || stride <= 1);
    }
    if (!fits) break;
    if (length == 1) steps = {strides[0][axis - 1], strides[1][axis - 1]};
    length *= static_cast<size_t>(size);
  }
  if (shape.elements() == 0) return;
  Shape outer;
  std::array<std::vector<int64_t>, 2> outer_strides;
  for (size_t i = 0; i < axis; ++i) {
    outer.push_back(shape[i]);
    for (size_t k = 0; k < 2; ++k) outer_strides[k].push_back(strides[k][i]);
  }
  starts.reserve(static_cast<size_t>(outer.elements()));
  walk<2>(outer, outer_strides, [&](size_t, const std::array<int64_t, 2>& at) { starts.push_back(at); });
}

}  // namespace unmoor
