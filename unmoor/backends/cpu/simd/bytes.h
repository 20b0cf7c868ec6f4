#pragma once

#include <cstddef>
#include <cstdint>

namespace unmoor::cpu {

// A[rows,k] B[k,n] of whole numbers, in int32, which wraps around. A's rows hold int16, so far apart as a_stride says, and end in
// a zero where k is odd. B holds int8 in panels of panel_columns columns, each [pairs][columns][2]: two of k beside each other;
// zeros fill the last panel, and the last pair where k is odd.
struct ByteProduct {
  size_t rows = 0;
  size_t pairs = 0;  // Of k: half of it, rounded up.
  const int16_t* a = nullptr;
  size_t a_stride = 0;
  const int8_t* b = nullptr;
};

// What turns a row of sums into float32: (sum - row_sum * zeros[j]) * (scales[j] * scale) + base[j].
struct ByteScaling {
  const float* scales = nullptr;
  float scale = 1;
  const int32_t* zeros = nullptr;  // Of B's columns; null if they are all 0.
  int32_t row_sum = 0;             // Of A's row.
  const float* base = nullptr;     // Null: nothing is added.
};

struct ByteLoops {
  size_t panel_columns;
  // Panels [begin, end) into c, whose column 0 is the first of panel `begin`. Writes whole panels.
  void (*multiply)(const ByteProduct& product, size_t begin, size_t end, int32_t* c, size_t c_stride);
  // panel_columns bytes of each, side by side, with the bits of `flip` turned over: a pair of a panel.
  void (*interleave)(const uint8_t* even, const uint8_t* odd, uint8_t flip, uint8_t* to);
  void (*scaled)(const int32_t* sums, size_t n, const ByteScaling& scaling, float* to);
  // Widens [low, high] to hold n floats; NaN does not.
  void (*range)(const float* x, size_t n, float& low, float& high);
  // to[i] = x[i] / scale, rounded to even ties and limited to [low, high]; 0 for NaN.
  void (*quantize)(const float* x, size_t n, float scale, int low, int high, int16_t* to);
  // The same, plus the zero point, as bytes: limited to 0 … 255.
  void (*quantize_bytes)(const float* x, size_t n, float scale, int zero, uint8_t* to);
  // to[i] = x[i] / scale, rounded to even ties and limited to whole [low, high], plus zero; NaN becomes zero.
  void (*quantize_doubles)(const double* x, size_t n, double scale, double low, double high, double zero, int32_t* to);
  // n numbers of 2, 4 or 8 bits, the first in the low bits, as floats: (number - zero) * scale. n is a multiple of 16.
  void (*unpack)(const uint8_t* packed, size_t n, size_t bits, float zero, float scale, float* to);
  // An LSTM cell's step: gates are input, output, forget and cell, of n floats each. c and h are the cell and the new state.
  void (*lstm)(const float* gates, size_t n, float* c, float* h);

  size_t panels(size_t n) const { return (n + panel_columns - 1) / panel_columns; }
  size_t packed_bytes(size_t n, size_t k) const { return panels(n) * panel_columns * ((k + 1) / 2 * 2); }
};
const ByteLoops& byte_loops();

}  // namespace unmoor::cpu
