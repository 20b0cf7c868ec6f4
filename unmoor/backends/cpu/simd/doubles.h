#pragma once

#include <cstddef>

namespace unmoor::cpu {

// The functions for one instruction set.
struct DoubleLoops {
  size_t panel_columns;
  // Columns [begin, end) of c += a·b for dense row-major a[m,k], b[k,n], c[m,n]; `begin` is a multiple of panel_columns, as `end`
  // is unless it is n. `panel` has room for depth * panel_columns numbers.
  static constexpr size_t depth = 256;
  void (*add_product)(const double* a, const double* b, double* c, size_t m, size_t n, size_t k, size_t begin, size_t end,
                      double* panel);
};
const DoubleLoops& double_loops();

}  // namespace unmoor::cpu
