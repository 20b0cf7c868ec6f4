#include "unmoor/workbench/noise/effects.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

double root_mean_square(const std::vector<double>& z) {
  double sum = 0;
  for (const double each : z) sum += each * each;
  return z.empty() ? 0 : std::sqrt(sum / static_cast<double>(z.size()));
}

// Takes the mean out and returns the sum of squares then.
double centre(std::vector<double>& z) {
  double mean = 0, square = 0;
  for (const double each : z) mean += each / static_cast<double>(z.size());
  for (double& each : z) {
    each -= mean;
    square += each * each;
  }
  return square;
}

// The correlation of neighbours along an axis, of values without their mean and within 6 deviations.
// `square` is the sum of their squares.
double neighbours(const std::vector<double>& z, double square, const Shape& shape, size_t axis) {
  const Split split = split_at(shape, axis);
  double product = 0;
  const size_t line = split.length * split.inner;
  for (size_t first = 0; first < z.size(); first += line) {
    for (size_t i = first; i + split.inner < first + line; ++i) product += z[i] * z[i + split.inner];
  }
  const double share = static_cast<double>(split.length) / static_cast<double>(split.length - 1);
  return square == 0 ? 0 : share * product / square;
}

double border_over_inside(const std::vector<double>& z, const Shape& shape) {
  const size_t rank = shape.rank();
  const auto height = static_cast<size_t>(shape[rank - 2]);
  const auto width = static_cast<size_t>(shape[rank - 1]);
  double border = 0, inside = 0;
  size_t border_count = 0, inside_count = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const size_t x = i % width;
    const size_t y = i / width % height;
    const bool is_inside = x >= 2 && y >= 2 && x + 2 < width && y + 2 < height;
    (is_inside ? inside : border) += z[i] * z[i];
    ++(is_inside ? inside_count : border_count);
  }
  constexpr double least = 1e-30;
  return std::log10(std::max(border / static_cast<double>(border_count), least) /
                    std::max(inside / static_cast<double>(inside_count), least));
}

}  // namespace

void set_effects(Metrics& metrics, std::span<const double> exact, std::span<const double> actual, std::span<const double> spread,
                 const Shape& shape) {
  std::vector<double> z(exact.size());
  double towards = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const double each = (actual[i] - exact[i]) / spread[i];
    z[i] = std::isfinite(each) ? std::clamp(each, -1e6, 1e6) : 0;
    towards += exact[i] == 0 ? 0 : std::copysign(1.0, exact[i]) * z[i];
  }
  const double size = root_mean_square(z);
  metrics.shrink = size == 0 ? 0 : towards / static_cast<double>(z.size()) / size;
  for (double& each : z) each = std::clamp(each, -6 * size, 6 * size);
  const size_t rank = shape.rank();
  if (rank >= 2 && shape[rank - 1] >= 6 && shape[rank - 2] >= 6 && size > 0) metrics.edge = border_over_inside(z, shape);
  const double square = centre(z);
  for (size_t axis = 0; axis < shape.rank() && !z.empty(); ++axis) {
    if (shape[axis] >= 8) metrics.smooth = std::max(metrics.smooth.value_or(-1), neighbours(z, square, shape, axis));
  }
}

}  // namespace unmoor
