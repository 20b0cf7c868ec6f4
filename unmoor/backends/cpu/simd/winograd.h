#pragma once

#include <cstddef>

namespace unmoor::cpu {

// F(4x4,3x3): a tile of 6x6 input pixels gives 4x4 output pixels of a 3x3 convolution, with 36 products a channel pair where the plain sum
// needs 144. Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, with the points 0, 1, -1, 2, -2.
constexpr size_t winograd_in = 6;
constexpr size_t winograd_out = 4;
constexpr size_t winograd_points = winograd_in * winograd_in;

// One tile on its way in or out. Pixels hold their channels next to each other.
struct WinogradTile {
  const float* pixels[winograd_points];  // Of the input, by row and column; null outside of the image.
  float* to;                             // Point p of the result at to + p * step.
  size_t step;
  size_t channels;
};
struct WinogradResult {
  const float* from;  // Point p at from + p * step.
  size_t step;
  float* to;          // The first output pixel.
  size_t row_step;    // From a row of output pixels to the next, in floats.
  size_t rows;        // Up to 4 that exist, and columns.
  size_t columns;
  size_t channels;
  size_t pixel_step;  // From an output pixel to the next.
};

struct WinogradLoops {
  void (*input)(const WinogradTile& tile);
  void (*output)(const WinogradResult& result);
  // F(4,3), along a line: the first six pixels become six points, and those the first row of the result.
  void (*input_line)(const WinogradTile& tile);
  void (*output_line)(const WinogradResult& result);
};
const WinogradLoops& winograd_loops();

// The 36 points of a 3x3 kernel, computed in double. Taps and points lie row by row, `taps_step` and `points_step` floats apart.
void winograd_kernel(const float* taps, size_t taps_step, float* points, size_t points_step);
// The 6 points of three taps in a row, at any alignment.
void winograd_line_kernel(const float* taps, float* points, size_t points_step);

}  // namespace unmoor::cpu
