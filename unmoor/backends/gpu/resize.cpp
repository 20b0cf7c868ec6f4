#include "unmoor/backends/gpu/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

constexpr std::array modes{"nearest", "linear", "cubic"};
constexpr std::array coordinate_modes{"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                      "align_corners", "asymmetric",           "tf_crop_and_resize"};
constexpr std::array nearest_modes{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

bool is_one_of(const std::string& wanted, std::span<const char* const> known) {
  return std::ranges::find(known, wanted) != known.end();
}

// Where a place of the result lies in the input: the formulas of ONNX's Resize.
double place_in_input(int64_t at, const ResizeAxis& axis, const std::string& coordinates) {
  const auto x = static_cast<double>(at);
  const auto in = static_cast<double>(axis.in);
  const double exact = axis.scale * in;  // The result's size before it was cut to an integer.
  if (coordinates == "asymmetric") return x / axis.scale;
  if (coordinates == "align_corners") return axis.out == 1 ? 0 : x * (in - 1) / (exact - 1);
  if (coordinates == "pytorch_half_pixel" && axis.out == 1) return 0;
  if (coordinates == "tf_crop_and_resize") {
    const double start = axis.region_start * (in - 1);
    const double end = axis.region_end * (in - 1);
    return axis.out == 1 ? 0.5 * (start + end) : start + x * (end - start) / (exact - 1);
  }
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (coordinates == "half_pixel_symmetric") return in / 2 * (1 - static_cast<double>(axis.out) / exact) + half_pixel;
  return half_pixel;
}

double nearest_to(double place, const std::string& rule) {
  if (rule == "floor") return std::floor(place);
  if (rule == "ceil") return std::ceil(place);
  return rule == "round_prefer_ceil" ? std::floor(place + 0.5) : std::ceil(place - 0.5);
}

// Keys' cubic convolution, at a distance below 2.
double cubic_weight(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

void add_cubic(ResizeTable& table, double place, const ResizeAxis& axis, const ResizeRule& rule) {
  const double first = std::floor(place) - 1;
  std::array<double, 4> weights{};
  double total = 0;
  for (size_t tap = 0; tap < 4; ++tap) {
    const double at = first + static_cast<double>(tap);
    const bool outside = at < 0 || at >= static_cast<double>(axis.in);
    weights[tap] = rule.exclude_outside && outside ? 0 : cubic_weight(place - at, rule.cubic_a);
    total += weights[tap];
  }
  for (size_t tap = 0; tap < 4; ++tap) {
    const double at = std::clamp(first + static_cast<double>(tap), 0.0, static_cast<double>(axis.in - 1));
    table.numbers.insert(table.numbers.end(), {at, rule.exclude_outside ? weights[tap] / total : weights[tap]});
  }
}

}  // namespace

std::string unknown_choice(const ResizeRule& rule) {
  if (!is_one_of(rule.mode, modes)) return cat("mode is ", rule.mode);
  if (!is_one_of(rule.coordinates, coordinate_modes)) return cat("coordinate_transformation_mode is ", rule.coordinates);
  if (!is_one_of(rule.nearest, nearest_modes)) return cat("nearest_mode is ", rule.nearest);
  return {};
}

ResizeTable resize_table(const ResizeAxis& axis, const ResizeRule& rule) {
  ResizeTable table;
  table.taps = rule.mode == "nearest" ? 1 : rule.mode == "linear" ? 2 : 4;
  const auto last = static_cast<double>(axis.in - 1);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double place = place_in_input(i, axis, rule.coordinates);
    if (rule.coordinates == "tf_crop_and_resize" && (place < 0 || place > last)) {
      for (int64_t tap = 0; tap < table.taps; ++tap) table.numbers.insert(table.numbers.end(), {-1, 0});
    } else if (rule.mode == "nearest") {
      table.numbers.insert(table.numbers.end(), {std::clamp(nearest_to(place, rule.nearest), 0.0, last), 1});
    } else if (rule.mode == "linear") {
      const double floor = std::floor(place);
      table.numbers.insert(table.numbers.end(), {std::clamp(floor, 0.0, last), 1 - (place - floor), std::clamp(floor + 1, 0.0, last), place - floor});
    } else {
      add_cubic(table, place, axis, rule);
    }
  }
  return table;
}

}  // namespace unmoor::gpu
