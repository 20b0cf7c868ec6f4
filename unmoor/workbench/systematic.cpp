#include "unmoor/workbench/systematic.h"

#include <algorithm>
#include <cmath>

namespace unmoor {
namespace {

constexpr double most = 8;         // z beyond it counts as this.
constexpr int64_t least_size = 8;  // Of an axis whose neighbours are correlated, and of a plane that has a border.
constexpr size_t least_runs = 4;
constexpr double far = 6;

double sign_of(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

// Correlation of neighbours along an axis of values whose mean is 0 and whose variance is given.
double neighbours(const std::vector<double>& centred, double variance, const Shape& shape, size_t axis) {
  const auto step = static_cast<size_t>(shape.strides()[axis]);
  const auto size = static_cast<size_t>(shape[axis]);
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < centred.size(); ++i) {
    if (i / step % size + 1 >= size) continue;
    sum += centred[i] * centred[i + step];
    ++count;
  }
  return count == 0 || variance == 0 ? 0 : sum / static_cast<double>(count) / variance;
}

std::optional<double> smoothness(const std::vector<double>& z, double mean, const Shape& shape) {
  std::vector<double> centred(z);
  double variance = 0;
  for (double& value : centred) {
    value -= mean;
    variance += value * value / static_cast<double>(z.size());
  }
  std::optional<double> best;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < least_size) continue;
    best = std::max(best.value_or(-1), neighbours(centred, variance, shape, axis));
  }
  return best;
}

std::optional<double> border(const std::vector<double>& z, const Shape& shape) {
  if (shape.rank() != 4 || shape[2] < least_size || shape[3] < least_size) return std::nullopt;
  const auto height = static_cast<size_t>(shape[2]);
  const auto width = static_cast<size_t>(shape[3]);
  double inside = 0;
  double outside = 0;
  size_t inner = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const size_t row = i / width % height;
    const size_t column = i % width;
    const bool at_border = row == 0 || row + 1 == height || column == 0 || column + 1 == width;
    (at_border ? outside : inside) += z[i] * z[i];
    if (!at_border) ++inner;
  }
  const double interior = std::max(inside / static_cast<double>(inner), 1e-12);
  return std::log10(std::max(outside / static_cast<double>(z.size() - inner), 1e-12) / interior);
}

// One effect against those of the runs.
bool is_far(double found, const std::vector<double>& runs, double limit, size_t elements) {
  if (runs.size() < least_runs) return false;
  const auto count = static_cast<double>(runs.size());
  double mean = 0;
  for (const double value : runs) mean += value / count;
  double variance = 0;
  for (const double value : runs) variance += (value - mean) * (value - mean) / count;
  const double deviation = std::sqrt(variance) + 1 / std::sqrt(static_cast<double>(elements));
  return std::fabs(found - mean) > limit && std::fabs(found - mean) > far * deviation;
}

}  // namespace

std::optional<Effects> effects_of(std::span<const double> z, std::span<const double> values, const Shape& shape) {
  std::vector<double> limited(z.size());
  double squares = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    limited[i] = std::isfinite(z[i]) ? std::clamp(z[i], -most, most) : 0;
    squares += limited[i] * limited[i];
  }
  if (squares == 0) return std::nullopt;
  const auto count = static_cast<double>(z.size());
  const double scale = std::sqrt(squares / count);
  Effects effects;
  for (size_t i = 0; i < limited.size(); ++i) {
    limited[i] /= scale;
    effects.bias += limited[i] / count;
    effects.shrink += limited[i] * sign_of(values[i]) / count;
  }
  effects.smooth = smoothness(limited, effects.bias, shape);
  effects.edge = border(limited, shape);
  return effects;
}

std::optional<Systematic> find_systematic(std::span<const double> z, std::span<const double> values, const Shape& shape,
                                          std::span<const std::vector<double>> noise) {
  const auto found = effects_of(z, values, shape);
  if (!found) return std::nullopt;
  std::vector<double> bias;
  std::vector<double> shrink;
  std::vector<double> smooth;
  std::vector<double> edge;
  for (const auto& run : noise) {
    const auto effects = effects_of(run, values, shape);
    if (!effects) continue;
    bias.push_back(effects->bias);
    shrink.push_back(effects->shrink);
    if (effects->smooth) smooth.push_back(*effects->smooth);
    if (effects->edge) edge.push_back(*effects->edge);
  }
  Systematic result{*found, {}};
  if (is_far(found->bias, bias, 0.2, z.size())) result.fired.emplace_back("bias");
  if (is_far(found->shrink, shrink, 0.2, z.size())) result.fired.emplace_back("shrink");
  if (found->smooth && is_far(*found->smooth, smooth, 0.2, z.size())) result.fired.emplace_back("smooth");
  if (found->edge && is_far(*found->edge, edge, 0.3, z.size())) result.fired.emplace_back("edge");
  return result;
}

}  // namespace unmoor
