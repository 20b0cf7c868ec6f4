#include "unmoor/backends/cpu/simd/integer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/integer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<int32_t>;
using D16 = hn::ScalableTag<int16_t>;
constexpr size_t lanes16 = HWY_LANES(int16_t);
static_assert(IntegerProduct::depth_step % lanes16 == 0);

// A tile of rows and columns, each a sum over whole vectors. Which lane a product goes to is the target's choice: all are added
// in the end.
template <size_t rows, size_t columns>
HWY_INLINE void multiply_tile(const IntegerProduct& p, size_t row, size_t column) {
  const D32 d;
  const int16_t* const a = p.a + row * p.depth;
  const int16_t* const b = p.b + column * p.depth;
  hn::Vec<D32> sums[rows][columns];
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) sums[i][j] = hn::Zero(d);
  }
  for (size_t k = 0; k < p.depth; k += lanes16) {
    hn::Vec<D16> right[columns];
    for (size_t j = 0; j < columns; ++j) right[j] = hn::LoadU(D16(), b + j * p.depth + k);
    for (size_t i = 0; i < rows; ++i) {
      const hn::Vec<D16> left = hn::LoadU(D16(), a + i * p.depth + k);
      for (size_t j = 0; j < columns; ++j) {
        hn::Vec<D32> more = hn::Zero(d);
        sums[i][j] = hn::ReorderWidenMulAccumulate(d, left, right[j], sums[i][j], more);
        sums[i][j] = hn::Add(sums[i][j], more);  // Zero where the target adds pairs itself.
      }
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) p.c[(row + i) * p.c_stride + column + j] = hn::GetLane(hn::SumOfLanes(d, sums[i][j]));
  }
}

template <size_t rows>
HWY_INLINE void multiply_rows(const IntegerProduct& p, size_t row) {
  size_t column = 0;
  for (; column + 2 <= p.columns; column += 2) multiply_tile<rows, 2>(p, row, column);
  if (column < p.columns) multiply_tile<rows, 1>(p, row, column);
}

void multiply(const IntegerProduct& p) {
  size_t row = 0;
  for (; row + 4 <= p.rows; row += 4) multiply_rows<4>(p, row);
  for (; row < p.rows; ++row) multiply_rows<1>(p, row);
}

const IntegerLoops& integer_table() {
  static constexpr IntegerLoops table = {multiply};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(integer_table);
const IntegerLoops& integer_loops() { return HWY_DYNAMIC_DISPATCH(integer_table)(); }

}  // namespace unmoor::cpu
#endif
