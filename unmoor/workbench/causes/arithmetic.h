#pragma once

#include <cstdint>

#include "unmoor/workbench/noise/grid.h"

namespace unmoor::causes {

using Format = Grid;
inline constexpr Format float32_format{24, -126, 3.4028234663852886e38, 0x1p-126};
inline constexpr Format float16_format{11, -14, 65504, 0x1p-14};
inline constexpr Format bfloat16_format{8, -126, 3.3895313892515355e38, 0x1p-126};
inline constexpr Format tf32_format{11, -126, 3.4028234663852886e38, 0x1p-126};
inline constexpr Format float64_format{53, -1022, 1.7976931348623157e308, 0x1p-1022};
Format format_of(DType dtype);  // float32's for what is no floating type.

enum class Cut : uint8_t { Nearest, TowardZero };
// The value in the format: denormals kept, infinite beyond the greatest number (that number itself where it is cut off).
double on_grid(const Format& format, double value, Cut cut = Cut::Nearest);
// The step between neighbouring numbers of the format at `value`.
double step_at(const Format& format, double value);

// What sums of products and what single steps are rounded to.
struct Arithmetic {
  Format sums = float32_format;
  Format steps = float32_format;
};

// Seeded random numbers: the same on every machine. One thread at a time.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  double unit();    // [0, 1)
  double spread();  // [-1, 1)
  // Mean 0, deviation 1: a sum of four uniform numbers, never beyond 3.5.
  double normal();

 private:
  uint64_t state_;
};

}  // namespace unmoor::causes
