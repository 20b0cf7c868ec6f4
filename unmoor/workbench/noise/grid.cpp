#include "unmoor/workbench/noise/grid.h"

#include <cmath>
#include <limits>

#include "unmoor/base/error.h"

namespace unmoor {

double rounded_below(const Grid& grid, double value, uint64_t random) {
  const double step = grid.smallest();
  const double steps = std::fabs(value) / step;
  const double whole = std::floor(steps);
  const double unit = static_cast<double>(random >> 11) * 0x1p-53;
  return std::copysign((whole + (unit < steps - whole ? 1 : 0)) * step, value);
}

double Grid::unit() const { return std::ldexp(1.0, -digits); }
double Grid::smallest() const { return std::ldexp(1.0, lowest_exponent - digits + 1); }

bool has_grid(DType dtype) { return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }

Grid grid_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return {53, -1022, std::numeric_limits<double>::max(), 0x1p-1022};
    case DType::F32:
      return {24, -126, double{std::numeric_limits<float>::max()}, 0x1p-126};
    case DType::F16:
      return {11, -14, 65504, 0x1p-14};
    case DType::BF16:
      return {8, -126, 0x1.fep127, 0x1p-126};
    default:
      fail(ErrorKind::Internal, "no noise is made for ", dtype);
  }
}

}  // namespace unmoor
