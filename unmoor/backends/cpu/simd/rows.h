#pragma once

#include <cstddef>

namespace unmoor::cpu {

// How elements are combined into one.
enum class Reduction { Sum, Max, Min, Prod, SumSquare, L1, SumExp };
constexpr size_t reduction_count = 7;

struct RowLoops {
  // y = softmax x, or its logarithm; y may be x.
  void (*softmax)(const float* x, float* y, size_t n);
  void (*log_softmax)(const float* x, float* y, size_t n);
  // The same down the columns of [length][step], for `columns` of them, using 2 * columns floats of scratch.
  void (*softmax_columns)(const float* x, float* y, size_t length, size_t step, size_t columns, bool logarithm, float* scratch);
  // y = (x - mean) / sqrt(variance + epsilon) * scale + shift; scale and shift may be null. Returns mean and inverse deviation.
  void (*normalize)(const float* x, float* y, size_t n, const float* scale, const float* shift, float epsilon, bool centred, float* statistics);
  // y = x * factor + offset.
  void (*affine)(const float* x, float* y, size_t n, float factor, float offset);
  // Sum of the elements and sum of the squares of their differences from `centre`.
  float (*sum)(const float* x, size_t n);
  float (*squares)(const float* x, size_t n, float centre);
  // Combines a row into one value; start is what changes nothing: 0, 1 or an infinity.
  float (*reduce[reduction_count])(const float* x, size_t n, float start);
  // y[i] = combine(y[i], x[i]).
  void (*merge[reduction_count])(const float* x, float* y, size_t n);
};
const RowLoops& row_loops();

}  // namespace unmoor::cpu
