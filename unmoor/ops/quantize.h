#pragma once

#include "unmoor/ops/numeric.h"

namespace unmoor {

// Parts of the quantize family.
void add_linear_quantize_ops(OpSet& ops);  // QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
void add_quantized_products(OpSet& ops);   // MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv.

// A whole-number type's least and greatest value.
struct Limits {
  double low = 0, high = 0;
};
Limits limits_of(DType dtype);

// round(x / scale) + zero point, ties to even, limited to the dtype's range. NaN becomes the zero point.
double quantized(double quotient, double zero_point, Limits limits);

// How DynamicQuantizeLinear maps x to unsigned bytes, so that 0 and all of x fit. The scale is rounded to `dtype`; it is 0 where
// x has zeros alone.
struct ByteScale {
  double scale = 0, zero = 0;
};
ByteScale byte_scale_of(std::span<const double> x, DType dtype);

}  // namespace unmoor
