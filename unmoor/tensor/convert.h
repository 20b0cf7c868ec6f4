#pragma once

#include <cstdint>
#include <vector>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// Scalar conversions between a number and the stored bits of small floating types. Rounding is to nearest, ties to even.
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
std::vector<double> doubles(const Tensor& tensor);
// Elements of an integer or bool tensor, exactly (uint64 wraps). Floating tensors are truncated toward zero.
std::vector<int64_t> integers(const Tensor& tensor);
// Stores values rounded once to the tensor's dtype. Integer types take the value modulo their width after truncation toward
// zero; out-of-range and NaN saturate as noted in Cast. Sizes must agree.
void store(Tensor& tensor, std::span<const double> values);
void store(Tensor& tensor, std::span<const int64_t> values);
// One value of `values` rounded once to `dtype` and back.
double rounded(DType dtype, double value);

}  // namespace unmoor
