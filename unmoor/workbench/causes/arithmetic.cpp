#include "unmoor/workbench/causes/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace unmoor::causes {

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return float16_format;
    case DType::BF16:
      return bfloat16_format;
    case DType::F64:
      return float64_format;
    default:
      return float32_format;
  }
}

double step_at(const Format& format, double value) {
  const int least = format.lowest_exponent + 1 - format.digits;
  if (value == 0 || !std::isfinite(value)) return std::ldexp(1.0, least);
  return std::ldexp(1.0, std::max(std::ilogb(value) + 1 - format.digits, least));
}

double on_grid(const Format& format, double value, Cut cut) {
  if (!std::isfinite(value) || value == 0) return value;
  const double step = step_at(format, value);
  const double steps = value / step;
  const double rounded = (cut == Cut::Nearest ? std::nearbyint(steps) : std::trunc(steps)) * step;
  if (std::fabs(rounded) <= format.largest) return rounded;
  return std::copysign(cut == Cut::Nearest ? std::numeric_limits<double>::infinity() : format.largest, value);
}

// splitmix64, by Sebastiano Vigna (public domain): a counter, well mixed.
double Random::unit() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

double Random::spread() { return 2 * unit() - 1; }

double Random::normal() {
  const double sum = spread() + spread() + spread() + spread();  // Of variance 4/3.
  return sum * 0.8660254037844386;
}

}  // namespace unmoor::causes
