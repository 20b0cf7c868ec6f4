#pragma once

#include <cstdint>
#include <vector>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// Scalar conversions between a number and the stored bits of small floating types. Rounding is to nearest, ties to even; of
// float8e8m0, which holds powers of two only, the sign is dropped and ties go up.
float from_f16(uint16_t bits);
uint16_t to_f16(double value);
float from_bf16(uint16_t bits);
uint16_t to_bf16(double value);
float from_f8(DType dtype, uint8_t bits);
// saturate: what does not fit becomes the largest finite value, else the type's infinity or NaN (ONNX Cast's attribute).
uint8_t to_f8(DType dtype, double value, bool saturate);
float from_f4(uint8_t bits);
uint8_t to_f4(double value);

// Elements of any numeric type (bool as 0 and 1) as doubles; int64 beyond 2^53 is rounded: use integers() where that matters.
// Fails with InvalidArgument on strings and complex numbers.
std::vector<double> doubles(const Tensor& tensor);
// Elements of an integer or bool tensor, exactly (uint64 wraps). Floating tensors are truncated toward zero, NaN is 0, what int64
// cannot hold is its nearest end. Fails as doubles() does.
std::vector<int64_t> integers(const Tensor& tensor);
// Stores values rounded once to the tensor's dtype. Integer types take the value truncated toward zero, NaN as 0, at int64's ends
// (uint64's for uint64) where it is beyond them, then modulo their width. Small floats saturate, float16 and bfloat16 go to
// infinity. Fails with Internal if the sizes differ, with InvalidArgument on a tensor of strings or complex numbers.
void store(Tensor& tensor, std::span<const double> values);
void store(Tensor& tensor, std::span<const int64_t> values);
// One value of `values` rounded once to `dtype` and back.
double rounded(DType dtype, double value);

}  // namespace unmoor
