#pragma once

#include <vector>

#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/bytes.h"
#include "unmoor/hal/support.h"

namespace unmoor::cpu {

// A matrix of bytes where it lies, [k,n] or transposed. Unsigned bytes are read as 128 less, and so are zero points.
struct ByteMatrix {
  const std::byte* data = nullptr;
  bool is_signed = false;
  bool transposed = false;  // Lies as [n,k].
  size_t k = 0;
  size_t n = 0;

  size_t packed_bytes() const { return byte_loops().packed_bytes(n, k); }
  // Panels as ByteProduct wants them.
  void pack(const Machine& machine, int8_t* to) const;
};

// The constant's matrix that begins at byte `first`, packed once for all plans.
Packed pack_bytes(const Machine& machine, const Tensor& constant, size_t first, const ByteMatrix& matrix);
inline const int8_t* bytes_of(const Packed& packed) { return reinterpret_cast<const int8_t*>(packed->host()); }

// Elements from one row of int16 to the next: rows begin at cache lines, and seldom in the same set of the cache.
constexpr size_t row_stride(size_t k) { return (k + 31) / 32 * 32 + 32; }

// What DynamicQuantizeLinear would take for n floats: the scale, and the zero point of unsigned bytes. The scale is 0 for zeros
// alone.
struct ByteRange {
  float scale = 0;
  int zero = 0;
};
ByteRange byte_range(const Machine& machine, const float* x, size_t n);
// Rows of k floats as bytes by this range, less the zero point; strides of row_stride(k), zeros behind.
void quantize_rows(const Machine& machine, const float* x, size_t rows, size_t k, const ByteRange& range, int16_t* to);
// Rows of k bytes less a zero point, as above. With `transposed`, x lies as [k,rows].
struct ByteRows {
  const std::byte* data = nullptr;
  bool is_signed = false;
  bool transposed = false;
  int zero = 0;
};
void centre_rows(const Machine& machine, const ByteRows& x, size_t rows, size_t k, int16_t* to);
int32_t row_sum(const int16_t* row, size_t k);

// The part of a product that is done: rows [row, row + rows), columns [column, column + columns).
struct ByteBlock {
  size_t row, rows, column, columns;
  const int32_t* sums;
  size_t stride;  // From row to row of the sums.
};
// Multiplies on all threads and calls finish(block) for every block of the [product.rows, n] result; calls come from any thread,
// and blocks do not overlap.
void multiply_bytes(const Machine& machine, const ByteProduct& product, size_t n,
                    const std::function<void(const ByteBlock&)>& finish);

// One number for all of n columns, or one for each, as a list of n. Unsigned zero points come out 128 less, as ByteMatrix reads
// weights.
void spread_scales(const float* from, size_t count, size_t n, float* to);
// False if all are 0. `from` null: none are given, which is a 0 for each.
bool spread_zeros(const std::byte* from, bool is_signed, size_t count, size_t n, int32_t* to);

// Whether an input, if it is there, has one element or one for each of n columns.
Support one_or_per_column(const OpCall& call, size_t input, size_t n);

}  // namespace unmoor::cpu
