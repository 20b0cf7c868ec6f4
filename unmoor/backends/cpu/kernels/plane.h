#pragma once

#include <vector>

#include "unmoor/backends/cpu/kernels/window.h"
#include "unmoor/backends/cpu/simd/plane.h"

namespace unmoor::cpu {

// Planes of a windowed operator in the form that PlaneLoops take: padded, split by phase.
class PlaneLayout {
 public:
  // No where padding or dilation make the plane much larger than what is read and written.
  static Support fits(const Window& window);
  PlaneLayout(const Window& window, float border);

  // Scratch for one plane and its outputs, in floats.
  size_t plane_floats() const { return plane_ + PlaneWindows::slack; }
  size_t output_floats() const { return outputs() + PlaneWindows::slack; }
  size_t outputs() const { return (window_.out_h - 1) * row_ + window_.out_w; }
  // Writes the border. Once for each scratch; the inside may change afterwards.
  void clear(float* plane) const;
  void fill(const float* input, float* plane) const;
  PlaneWindows windows(const float* plane, float* y) const { return {plane, offsets_.data(), offsets_.size(), outputs(), y}; }
  // Drops the junk behind each row of outputs.
  void extract(const float* outputs, float* y) const;
  const Window& window() const { return window_; }

 private:
  Window window_;
  float border_;
  size_t row_;     // Floats of a row within a phase.
  size_t rows_;    // Of a phase.
  size_t plane_;   // Floats of all phases.
  std::vector<size_t> offsets_;
};

}  // namespace unmoor::cpu
