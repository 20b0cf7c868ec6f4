#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unmoor/tensor/dtype.h"

namespace unmoor::causes {

// A floating format: bits of the significand, the exponent of the least normal number, the greatest number.
struct Format {
  int digits = 24;
  int lowest = -126;
  double most = 3.4028234663852886e38;

  double unit() const;  // Half a step at 1: the unit roundoff.
  bool operator==(const Format&) const = default;
};
inline constexpr Format float32_format{};
inline constexpr Format float16_format{11, -14, 65504};
inline constexpr Format bfloat16_format{8, -126, 3.3895313892515355e38};
inline constexpr Format tf32_format{11, -126, 3.4028234663852886e38};
inline constexpr Format float64_format{53, -1022, 1.7976931348623157e308};
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

// Rounds each value up or down to a number of the format, at random so that the mean stays.
void round_at_random(std::span<double> values, const Format& format, Random& random);

}  // namespace unmoor::causes
