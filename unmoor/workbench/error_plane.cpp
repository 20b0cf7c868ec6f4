#include "unmoor/workbench/error_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "unmoor/workbench/result.h"
#include "unmoor/workbench/systematic.h"

namespace unmoor {
namespace {

constexpr size_t most_rows = 128;
constexpr size_t most_columns = 256;
constexpr size_t least_elements = 16;
constexpr size_t bins = 33;
constexpr double far = 6;           // Deviations.
constexpr double noticeable = 0.2;  // Share of the variance.
constexpr double most = 8;          // Root mean squares, beyond which an error counts as this.

// Errors over their own root mean square, cut at ±8, and without their mean.
std::vector<double> standard(std::span<const double> errors) {
  double squares = 0;
  for (const double each : errors) squares += each * each;
  const double scale = std::sqrt(squares / static_cast<double>(errors.size()));
  std::vector<double> out;
  out.reserve(errors.size());
  for (const double each : errors) out.push_back(std::clamp(each / scale, -most, most));
  return out;
}

// How much of the variance lies between groups, beyond what as many groups of shuffled errors show. 0 if that may be chance.
double share_between(std::span<const double> errors, size_t groups, const auto& group_of) {
  const auto n = static_cast<double>(errors.size());
  const auto k = static_cast<double>(groups);
  if (groups < 2 || errors.size() < 2 * groups) return 0;
  std::vector<double> sums(groups);
  std::vector<double> counts(groups);
  double mean = 0;
  double squares = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    sums[group_of(i)] += errors[i];
    counts[group_of(i)] += 1;
    mean += errors[i] / n;
    squares += errors[i] * errors[i];
  }
  const double total = squares - n * mean * mean;
  if (!(total > 1e-12 * squares)) return 0;
  double between = -n * mean * mean;
  for (size_t g = 0; g < groups; ++g) between += counts[g] > 0 ? sums[g] * sums[g] / counts[g] : 0;
  const double chance = (k - 1) / (n - 1);
  const double deviation = std::sqrt(2 * (k - 1)) / (n - 1) + 1 / n;
  const double share = between / total;
  return share - chance > far * deviation ? (share - chance) / (1 - chance) : 0;
}

double share_along(std::span<const double> errors, const Shape& shape, size_t axis) {
  const auto size = static_cast<size_t>(shape[axis]);
  const auto step = static_cast<size_t>(shape.strides()[axis]);
  return share_between(errors, size, [=](size_t i) { return i / step % size; });
}

// Groups of as many elements each, by what is exact.
double share_by_value(std::span<const double> errors, std::span<const double> exact) {
  constexpr size_t groups = 32;
  std::vector<size_t> order(exact.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto value = [&exact](size_t i) { return std::isnan(exact[i]) ? 0 : exact[i]; };
  std::ranges::stable_sort(order, std::ranges::less(), value);
  std::vector<size_t> group(exact.size());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const bool tie = rank > 0 && value(order[rank]) == value(order[rank - 1]);  // Equal values stay together.
    group[order[rank]] = tie ? group[order[rank - 1]] : rank * groups / order.size();
  }
  return share_between(errors, groups, [&group](size_t i) { return group[i]; });
}

void add_pattern(ErrorPlane& plane, std::span<const double> errors, std::span<const double> exact, const Shape& shape, size_t axis,
                 double share) {
  const auto n = static_cast<double>(errors.size());
  const std::vector<double> z = standard(errors);
  const auto say = [&plane](std::string text) { plane.pattern.push_back(std::move(text)); };
  if (share > noticeable)
    say(fmt::format("{:.0f} % of the error's variance lies between places along axis {}.", 100 * share, axis));
  if (const double by_value = share_by_value(z, exact); by_value > noticeable)
    say(fmt::format("{:.0f} % of the error's variance follows the value.", 100 * by_value));
  const auto positive = static_cast<double>(std::ranges::count_if(errors, [](double each) { return each > 0; }));
  const auto negative = static_cast<double>(std::ranges::count_if(errors, [](double each) { return each < 0; }));
  const double signs = positive / (positive + negative);
  if (std::fabs(signs - 0.5) > 0.1 && std::fabs(signs - 0.5) > far * 0.5 / std::sqrt(positive + negative))
    say(fmt::format("{:.0f} % of the errors are {}.", 100 * std::max(signs, 1 - signs), signs > 0.5 ? "positive" : "negative"));
  const auto effects = effects_of(z, exact, shape);
  const double smooth = effects ? effects->smooth.value_or(0) : 0;
  if (smooth > noticeable && smooth > far / std::sqrt(n)) say(fmt::format("Neighbours agree: their correlation is {:.2f}.", smooth));
  plane.systematic = !plane.pattern.empty();
  if (!plane.systematic)
    say(fmt::format("{:.0f} % of the errors are positive; neither place, value nor neighbours tell a fifth of their variance.", 100 * signs));
}

// The error that all but a two-hundredth stay below; the largest where that is 0.
double scale_of(std::span<const double> errors) {
  std::vector<double> sizes;
  sizes.reserve(errors.size());
  for (const double each : errors) sizes.push_back(std::fabs(each));
  const auto place = sizes.begin() + static_cast<std::ptrdiff_t>((sizes.size() - 1) * 199 / 200);
  std::ranges::nth_element(sizes, place);
  return *place > 0 ? *place : *std::ranges::max_element(sizes);
}

// Rows and column of each element, as the tensor is laid out in the picture.
struct Layout {
  size_t rows = 1, columns = 1;
  size_t step = 1;  // Between places along the columns' axis.

  size_t column(size_t i) const { return i / step % columns; }
  size_t row(size_t i) const { return i / (step * columns) * step + i % step; }
};

void draw(ErrorPlane& plane, std::span<const double> errors, const Layout& layout) {
  plane.rows = std::min(layout.rows, most_rows);
  plane.columns = std::min(layout.columns, most_columns);
  plane.cells.assign(plane.rows * plane.columns, 0);
  plane.row_mean.assign(plane.rows, 0);
  plane.column_mean.assign(plane.columns, 0);
  plane.histogram.assign(bins, 0);
  std::vector<double> in_row(plane.rows);
  std::vector<double> in_column(plane.columns);
  for (size_t i = 0; i < errors.size(); ++i) {
    const size_t row = layout.row(i) * plane.rows / layout.rows;
    const size_t column = layout.column(i) * plane.columns / layout.columns;
    const double share = std::clamp(errors[i] / plane.scale, -1.0, 1.0);
    int8_t& cell = plane.cells[row * plane.columns + column];
    const auto level = static_cast<int8_t>(std::lround(127 * share));
    if (std::abs(level) > std::abs(cell)) cell = level;
    ++plane.histogram[static_cast<size_t>(std::lround((share + 1) / 2 * (bins - 1)))];
    plane.row_mean[row] += errors[i];
    plane.column_mean[column] += errors[i];
    ++in_row[row];
    ++in_column[column];
  }
  for (size_t row = 0; row < plane.rows; ++row) plane.row_mean[row] /= in_row[row];
  for (size_t column = 0; column < plane.columns; ++column) plane.column_mean[column] /= in_column[column];
}

std::string base64(std::span<const int8_t> bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8U | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : letters[three >> (18 - 6 * k) & 63U];
  }
  return out;
}

nlohmann::json numbers(const std::vector<double>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (const double each : values) list.push_back(measured(each));
  return list;
}

}  // namespace

std::optional<ErrorPlane> error_plane(std::span<const double> exact, std::span<const double> found, const Shape& shape) {
  if (exact.size() != found.size() || exact.size() < least_elements || static_cast<size_t>(shape.elements()) != exact.size())
    return std::nullopt;
  std::vector<double> errors(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    const double error = found[i] - exact[i];
    errors[i] = std::isfinite(error) ? error : 0;
  }
  ErrorPlane plane;
  plane.scale = scale_of(errors);
  if (!(plane.scale > 0)) return std::nullopt;
  size_t axis = shape.rank() - 1;
  double share = 0;
  const std::vector<double> z = standard(errors);
  for (size_t each = 0; each < shape.rank(); ++each) {
    if (const double here = share_along(z, shape, each); here > share) {
      share = here;
      axis = each;
    }
    plane.shape.push_back(shape[each]);
  }
  for (size_t each = 0; each < shape.rank(); ++each) plane.axes[each == axis ? 1 : 0].push_back(each);
  const auto columns = static_cast<size_t>(shape[axis]);
  draw(plane, errors, {errors.size() / columns, columns, static_cast<size_t>(shape.strides()[axis])});
  add_pattern(plane, errors, exact, shape, axis, share);
  return plane;
}

void add_reason(ErrorPlane& plane, std::string reason) {
  if (!plane.systematic) plane.pattern.clear();  // It said that there is none.
  plane.systematic = true;
  plane.pattern.insert(plane.pattern.begin(), std::move(reason));
}

ErrorPlane shrunk(const ErrorPlane& plane, size_t cells) {
  ErrorPlane out = plane;
  while (out.rows * out.columns > std::max<size_t>(cells, 1)) {
    const bool lower = out.rows >= out.columns;
    const size_t rows = lower ? (out.rows + 1) / 2 : out.rows;
    const size_t columns = lower ? out.columns : (out.columns + 1) / 2;
    std::vector<int8_t> fewer(rows * columns);
    for (size_t i = 0; i < out.cells.size(); ++i) {
      int8_t& cell = fewer[i / out.columns * rows / out.rows * columns + i % out.columns * columns / out.columns];
      if (std::abs(out.cells[i]) > std::abs(cell)) cell = out.cells[i];
    }
    out.rows = rows;
    out.columns = columns;
    out.cells = std::move(fewer);
  }
  return out;
}

nlohmann::json plane_json(const ErrorPlane& plane) {
  return {{"rows", plane.rows},
          {"cols", plane.columns},
          {"axes", plane.axes},
          {"shape", plane.shape},
          {"scale", measured(plane.scale)},
          {"data", base64(plane.cells)},
          {"row_mean", numbers(plane.row_mean)},
          {"col_mean", numbers(plane.column_mean)},
          {"hist", plane.histogram},
          {"verdict", plane.systematic ? "systematic" : "random"},
          {"pattern", plane.pattern}};
}

}  // namespace unmoor
