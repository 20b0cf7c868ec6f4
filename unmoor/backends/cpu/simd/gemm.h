#pragma once

#include <cstddef>
#include <limits>

#include "unmoor/backends/cpu/simd/functions.h"

namespace unmoor::cpu {

// What becomes of sums before they are results: activate(clamp(alpha * sum + beta * (row bias + column bias + addend) +
// residual)). Pointers are to what belongs to row 0, column 0 of C; a null one is left out.
struct Epilogue {
  float alpha = 1;
  float beta = 1;
  const float* row_bias = nullptr;     // One for each row of C.
  const float* column_bias = nullptr;  // One for each column.
  const float* addend = nullptr;       // As C, with its own row stride.
  size_t addend_stride = 0;
  const float* residual = nullptr;  // As C, with C's row stride.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  UnaryLoop activate = nullptr;
  float a = 0;  // Of activate.
  float b = 0;

  bool is_identity() const;
  // For the part of C that starts there.
  Epilogue at(size_t row, size_t column, size_t c_stride) const;
};

// C[m,n] = epilogue(A[m,k] B[k,n]) of packed operands.
//
// A is packed in pieces of rows, each [k][rows of the piece] at row * k: as many of tile_rows as there are, then a piece each
// of the largest of 4, 2, 1 that fit. B is packed in panels of panel_columns, each [k][columns] at column * k; the last one's
// columns are rounded up to whole vectors, with zeros.
struct Product {
  size_t m = 0;
  size_t n = 0;
  size_t k = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  size_t c_stride = 0;
  Epilogue epilogue = {};
  bool prefetch_b = false;  // B comes from memory: fetch what is needed next.
  size_t a_stride = 0;      // Not 0: A is not packed but lies row-major, rows so far apart.
  bool accumulate = false;  // Adds to what C holds.
};

// The part of a product to compute: columns [panel_begin * panel_columns, …), rows [row_begin, row_end), which must start at a
// piece.
struct Block {
  size_t row_begin;
  size_t row_end;
  size_t panel_begin;
  size_t panel_end;
};

// Up to 4 rows of A as they are, times packed panels of B. Bound by memory: B is read once, several panels at a time.
struct RowProduct {
  size_t m = 0;  // 1 to 4.
  size_t n = 0;
  size_t k = 0;
  const float* a = nullptr;
  size_t a_stride = 0;
  const float* b = nullptr;
  float* c = nullptr;
  size_t c_stride = 0;
  Epilogue epilogue = {};
};

// A matrix where it lies: element (i, j) at i * row_step + j * column_step; one of them is 1.
struct Strided {
  const float* data;
  size_t row_step;
  size_t column_step;
};

// The functions for one instruction set, and the tile they use.
struct GemmLoops {
  size_t tile_rows;
  size_t panel_columns;
  size_t lanes;
  void (*pack_a)(const Strided& a, size_t rows, size_t k, float* to);
  // Panels [begin, end) of B, a [k][n] matrix.
  void (*pack_b)(const Strided& b, size_t n, size_t k, size_t begin, size_t end, float* to);
  void (*multiply)(const Product& product, const Block& block);
  void (*multiply_rows)(const RowProduct& product, size_t panel_begin, size_t panel_end);
  // One row of A as it is, times B as it is (row-major or transposed), columns [begin, end) of the result.
  void (*multiply_unpacked)(const float* a, const Strided& b, size_t k, size_t begin, size_t end, float* c);
  // to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns.
  void (*transpose)(const float* from, size_t from_step, size_t rows, size_t columns, float* to, size_t to_step);
  // The epilogue alone, over a part of C that holds sums.
  void (*finish)(float* c, size_t c_stride, size_t rows, size_t columns, const Epilogue& epilogue);

  size_t panels(size_t n) const { return (n + panel_columns - 1) / panel_columns; }
  // Floats that packed B takes.
  size_t packed_b(size_t n, size_t k) const { return (n + lanes - 1) / lanes * lanes * k; }
};
const GemmLoops& gemm_loops();

}  // namespace unmoor::cpu
