#include "unmoor/workbench/noise/grid.h"

#include <bit>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

constexpr int double_digits = 53;

// For numbers below the normal ones, whose step is fixed.
double rounded_below(const Grid& grid, double value, uint64_t random) {
  const double step = grid.smallest();
  const double steps = std::fabs(value) / step;
  const double whole = std::floor(steps);
  const double unit = static_cast<double>(random >> 11) * 0x1p-53;
  return std::copysign((whole + (unit < steps - whole ? 1 : 0)) * step, value);
}

}  // namespace

double Grid::unit() const { return std::ldexp(1.0, -digits); }
double Grid::smallest() const { return std::ldexp(1.0, lowest_exponent - digits + 1); }

bool has_grid(DType dtype) { return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }

Grid grid_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return {53, -1022, std::numeric_limits<double>::max()};
    case DType::F32:
      return {24, -126, double{std::numeric_limits<float>::max()}};
    case DType::F16:
      return {11, -14, 65504};
    case DType::BF16:
      return {8, -126, 0x1.fep127};
    default:
      fail(ErrorKind::Internal, "no noise is made for ", dtype);
  }
}

double stochastically_rounded(const Grid& grid, double value, uint64_t random) {
  if (value == 0 || !std::isfinite(value) || grid.digits >= double_digits) return value;
  if (std::fabs(value) < std::ldexp(1.0, grid.lowest_exponent)) return rounded_below(grid, value, random);
  // Random bits are added below the last digit kept; a carry moves to the next number.
  const uint64_t mask = (uint64_t{1} << (double_digits - grid.digits)) - 1;
  const double result = std::bit_cast<double>((std::bit_cast<uint64_t>(value) + (random & mask)) & ~mask);
  return std::fabs(result) > grid.largest ? std::copysign(std::numeric_limits<double>::infinity(), value) : result;
}

}  // namespace unmoor
