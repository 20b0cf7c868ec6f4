#include "unmoor/backends/cpu/kernels/plane.h"

#include <algorithm>

namespace unmoor::cpu {

Support PlaneLayout::fits(const Window& w) {
  // In double: the products of a hostile model pass 2^64.
  const auto reach = [](size_t out, size_t stride, size_t kernel, size_t dilation) {
    return static_cast<double>(out - 1) * static_cast<double>(stride) + static_cast<double>(kernel - 1) * static_cast<double>(dilation) +
           static_cast<double>(stride);
  };
  const double plane = reach(w.out_h, w.stride_h, w.kernel_h, w.dilation_h) * reach(w.out_w, w.stride_w, w.kernel_w, w.dilation_w);
  const double own = static_cast<double>(w.h) * static_cast<double>(w.w) + static_cast<double>(w.out_h) * static_cast<double>(w.out_w);
  const double taps = static_cast<double>(w.kernel_h) * static_cast<double>(w.kernel_w);
  const bool small = plane <= 8 * own + 65536 && taps <= 4 * static_cast<double>(w.h) * static_cast<double>(w.w) + 65536;
  return small ? yes() : no(Reason::Size, "a window of ", taps, " taps over planes padded to ", plane, " elements");
}

PlaneLayout::PlaneLayout(const Window& window, float border) : window_(window), border_(border) {
  const Window& w = window_;
  const size_t padded_w = (w.out_w - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1;
  const size_t padded_h = (w.out_h - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1;
  row_ = (padded_w + w.stride_w - 1) / w.stride_w;
  rows_ = (padded_h + w.stride_h - 1) / w.stride_h;
  plane_ = row_ * rows_ * w.stride_h * w.stride_w;
  for (size_t ky = 0; ky < w.kernel_h; ++ky) {
    for (size_t kx = 0; kx < w.kernel_w; ++kx) {
      const size_t y = ky * w.dilation_h;
      const size_t x = kx * w.dilation_w;
      const size_t phase = y % w.stride_h * w.stride_w + x % w.stride_w;
      offsets_.push_back((phase * rows_ + y / w.stride_h) * row_ + x / w.stride_w);
    }
  }
}

void PlaneLayout::clear(float* plane) const { std::fill(plane, plane + plane_floats(), border_); }

void PlaneLayout::fill(const float* input, float* plane) const {
  const Window& w = window_;
  const PlaneLoops& loops = plane_loops();
  // Input columns that fall into the padded plane.
  const int64_t first = std::max<int64_t>(0, -w.pad_left);
  const int64_t last = std::min(static_cast<int64_t>(w.w), static_cast<int64_t>(row_ * w.stride_w) - w.pad_left);
  if (first >= last) return;
  if (w.stride_h == 1 && w.stride_w == 1) {
    const int64_t top = std::max<int64_t>(0, -w.pad_top);
    const int64_t bottom = std::min(static_cast<int64_t>(w.h), static_cast<int64_t>(rows_) - w.pad_top);
    if (top >= bottom) return;
    loops.copy_rows(input + static_cast<size_t>(top) * w.w + first, w.w, plane + static_cast<size_t>(top + w.pad_top) * row_ + first + w.pad_left, row_,
                    static_cast<size_t>(bottom - top), static_cast<size_t>(last - first));
    return;
  }
  std::vector<float*> phases(w.stride_w);
  for (size_t iy = 0; iy < w.h; ++iy) {
    const int64_t y = static_cast<int64_t>(iy) + w.pad_top;
    if (y < 0 || y >= static_cast<int64_t>(rows_ * w.stride_h)) continue;
    const size_t row = static_cast<size_t>(y) / w.stride_h;
    const size_t phase_y = static_cast<size_t>(y) % w.stride_h;
    for (size_t j = 0; j < w.stride_w; ++j) {
      const auto x = static_cast<size_t>(first + w.pad_left) + j;
      phases[j] = plane + ((phase_y * w.stride_w + x % w.stride_w) * rows_ + row) * row_ + x / w.stride_w;
    }
    loops.spread(input + iy * w.w + first, static_cast<size_t>(last - first), w.stride_w, phases.data());
  }
}

void PlaneLayout::extract(const float* outputs, float* y) const {
  plane_loops().copy_rows(outputs, row_, y, window_.out_w, window_.out_h, window_.out_w);
}

}  // namespace unmoor::cpu
