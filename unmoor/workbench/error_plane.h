#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unmoor/tensor/shape.h"

namespace unmoor {

// The signed error of a tensor as a picture, and what its form tells.
struct ErrorPlane {
  std::array<std::vector<size_t>, 2> axes;  // Of the tensor: those that rows run over, in order, and the one of columns.
  std::vector<int64_t> shape;
  size_t rows = 0;  // At most 128, and 256 columns: several elements may share a cell, which shows the largest error of them.
  size_t columns = 0;
  double scale = 0;            // The error that a cell of ±127 stands for; larger ones are cut to it.
  std::vector<int8_t> cells;   // By row.
  std::vector<double> row_mean, column_mean;  // Mean signed error of all their elements.
  std::vector<size_t> histogram;              // Elements by signed error, 33 steps from -scale to scale.
  bool systematic = false;            // Place, value, sign or neighbourhood tell more of the errors than chance would.
  std::vector<std::string> pattern;   // Why, in sentences.
};

// `found` minus `exact`, in the order of the shape. Of the axes the one whose places tell most of the error is laid along the columns.
// An effect counts if it explains a fifth of the variance (of signs: 60 % on one side) and lies six deviations beyond what shuffled
// errors show. Empty if nothing differs, or there are fewer than 16 elements. Elements that are not finite in either count as equal.
// Any thread.
std::optional<ErrorPlane> error_plane(std::span<const double> exact, std::span<const double> found, const Shape& shape);

// Calls it systematic for one more reason, a sentence.
void add_reason(ErrorPlane& plane, std::string reason);

// The same picture in at most so many cells, at least one a side; every new cell shows the largest of those in it.
ErrorPlane shrunk(const ErrorPlane& plane, size_t cells);

// {rows, cols, axes, shape, scale, data (int8, base64), row_mean, col_mean, hist, verdict ("systematic" or "random"), pattern[]}
nlohmann::json plane_json(const ErrorPlane& plane);

}  // namespace unmoor
