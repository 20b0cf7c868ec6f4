#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "unmoor/base/threads.h"

namespace unmoor {

// c += a·b for dense row-major a[m,k], b[k,n], c[m,n].
using DoubleProduct = std::function<void(const double* a, const double* b, double* c, size_t m, size_t n, size_t k)>;

// What makes many runs in float64 bearable.
struct Float64Help {
  DoubleProduct product;             // For large products, those of convolutions too. Any thread.
  std::shared_ptr<ThreadPool> pool;  // For runs side by side.
};

// While it lives, references on its thread make large products of float64 by the help's instead of the plain loops below. Sums are
// added up in another order, no more. May be nested; ends in reverse order.
class Float64Scope {
 public:
  explicit Float64Scope(const Float64Help& help);  // Must outlive it.
  ~Float64Scope();
  Float64Scope(const Float64Scope&) = delete;
  Float64Scope& operator=(const Float64Scope&) = delete;
  static const Float64Help* current();  // On this thread; null: none.

 private:
  const Float64Help* before_;
};
// What there is on this thread for a product of this size; null: the plain loops.
const DoubleProduct* fast_product(size_t m, size_t n, size_t k);

// c += a·b for dense row-major a[m,k], b[k,n], c[m,n]. Four rows at a time over a strip of columns, so that b is read from cache.
template <class T>
void add_product(const T* a, const T* b, T* c, size_t m, size_t n, size_t k) {
  if constexpr (std::is_same_v<T, double>) {
    if (const DoubleProduct* const fast = fast_product(m, n, k)) return (*fast)(a, b, c, m, n, k);
  }
  constexpr size_t strip = 256;
  for (size_t j0 = 0; j0 < n; j0 += strip) {
    const size_t width = std::min(strip, n - j0);
    size_t i = 0;
    for (; i + 4 <= m; i += 4) {
      T* const c0 = c + i * n + j0;
      T* const c1 = c0 + n;
      T* const c2 = c1 + n;
      T* const c3 = c2 + n;
      for (size_t p = 0; p < k; ++p) {
        const T* const row = b + p * n + j0;
        const T a0 = a[i * k + p];
        const T a1 = a[(i + 1) * k + p];
        const T a2 = a[(i + 2) * k + p];
        const T a3 = a[(i + 3) * k + p];
        for (size_t j = 0; j < width; ++j) {
          c0[j] += a0 * row[j];
          c1[j] += a1 * row[j];
          c2[j] += a2 * row[j];
          c3[j] += a3 * row[j];
        }
      }
    }
    for (; i < m; ++i) {
      for (size_t p = 0; p < k; ++p) {
        const T a0 = a[i * k + p];
        for (size_t j = 0; j < width; ++j) c[i * n + j0 + j] += a0 * b[p * n + j0 + j];
      }
    }
  }
}

// Dense [rows, columns] as [columns, rows].
template <class T>
std::vector<T> transposed(const T* a, size_t rows, size_t columns) {
  std::vector<T> result(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) result[j * rows + i] = a[i * columns + j];
  }
  return result;
}

}  // namespace unmoor
