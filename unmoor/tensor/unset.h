#pragma once

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// A tensor as its constructor makes it, but with bytes that are not set: for results that are written whole. Not of strings. Fails
// as the constructor does.
Tensor unset_tensor(TensorType type);

// The elements of a tensor of real numbers as float64, in one pass; a float64 tensor is given back as it is. Fails as doubles() does.
Tensor float64_tensor(const Tensor& tensor);
// Elements [begin, begin + to.size()) of a float32 tensor, at any alignment, as float64.
void widen(const Tensor& tensor, size_t begin, std::span<double> to);

}  // namespace unmoor
