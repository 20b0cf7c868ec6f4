#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "unmoor/ops/numeric.h"

namespace unmoor {

// A window that slides over the spatial axes; every vector has one number an axis. Unknown input dimensions are `Shape::unknown`,
// and so are then the outputs.
struct Window {
  std::vector<int64_t> input, output, kernel, strides, dilations;
  std::vector<int64_t> begin, end;  // Padding. Zero where auto_pad asks for what an unknown input hides.

  size_t rank() const { return kernel.size(); }
  int64_t reach(size_t axis) const {
    return (kernel[axis] - 1) * dilations[axis] + 1;
  }  // Elements from its first to its last tap.
};

// The attribute's values, one a spatial axis, or all `otherwise`. Fails with InvalidModel on a wrong count or values below
// `least`.
std::vector<int64_t> per_axis(const OpCall& call, std::string_view key, size_t count, int64_t otherwise, int64_t least);
// Fails with InvalidModel, naming the call and `what`, unless the value is from `least` to 2^31 - 1: then no product of two overflows.
void require_size(const OpCall& call, std::string_view what, int64_t value, int64_t least);
// The attribute `auto_pad`: NOTSET, VALID, SAME_UPPER or SAME_LOWER. Fails with InvalidModel on another.
std::string padding_kind(const OpCall& call);
// strides, dilations, pads, auto_pad and ceil_mode of a convolution or pool. Fails with InvalidModel where the window does not
// fit.
Window window_of(const OpCall& call, std::vector<int64_t> input, std::vector<int64_t> kernel);

// Calls visit(position, taps, padded) for each output position in row-major order: offsets of the taps inside of the input plane,
// and how many taps lie in the padded input.
template <class Visit>
void each_window(const Window& window, Visit&& visit);

// The internal attribute `layout`: NCHW (default) or NHWC. Fails with InvalidModel on another.
bool channels_last(const OpCall& call);
// The shape with the last axis moved to place 1, and back.
Shape channels_first_shape(const Shape& shape);
Shape channels_last_shape(const Shape& shape);
// A shape as [N, C, …], whatever the call's layout, and back.
inline Shape canonical(const OpCall& call, const Shape& shape) {
  return channels_last(call) ? channels_first_shape(shape) : shape;
}
inline Shape in_layout(const OpCall& call, const Shape& shape) {
  return channels_last(call) ? channels_last_shape(shape) : shape;
}

// Elements of [N, …, C] moved to [N, C, …], and back; `first` is the [N, C, …] shape.
template <class T>
std::vector<T> moved_first(const std::vector<T>& values, const Shape& first) {
  const auto channels = static_cast<size_t>(first[1]);
  const auto plane = static_cast<size_t>(first.elements(2, first.rank()));
  std::vector<T> result(values.size());
  for (size_t n = 0; n < static_cast<size_t>(first[0]); ++n) {
    for (size_t i = 0; i < plane; ++i) {
      for (size_t c = 0; c < channels; ++c) result[(n * channels + c) * plane + i] = values[(n * plane + i) * channels + c];
    }
  }
  return result;
}
template <class T>
std::vector<T> moved_last(const std::vector<T>& values, const Shape& first) {
  const auto channels = static_cast<size_t>(first[1]);
  const auto plane = static_cast<size_t>(first.elements(2, first.rank()));
  std::vector<T> result(values.size());
  for (size_t n = 0; n < static_cast<size_t>(first[0]); ++n) {
    for (size_t i = 0; i < plane; ++i) {
      for (size_t c = 0; c < channels; ++c) result[(n * plane + i) * channels + c] = values[(n * channels + c) * plane + i];
    }
  }
  return result;
}
// Elements of a tensor as [N, C, …].
template <class T>
std::vector<T> read_canonical(const OpCall& call, const Tensor& tensor) {
  std::vector<T> values = read_as<T>(tensor);
  return channels_last(call) ? moved_first(values, channels_first_shape(tensor.shape())) : values;
}
// Stores [N, C, …] elements in the call's layout.
template <class T>
void write_canonical(const OpCall& call, Tensor& tensor, const std::vector<T>& values) {
  write_as<T>(tensor, channels_last(call) ? moved_last(values, channels_first_shape(tensor.shape())) : values);
}

// Counts up `index` below `limits`, the last axis fastest. False when it is back at zero.
inline bool advance(std::vector<int64_t>& index, const std::vector<int64_t>& limits) {
  for (size_t axis = index.size(); axis-- > 0;) {
    if (++index[axis] < limits[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

template <class Visit>
void each_window(const Window& window, Visit&& visit) {
  const Shape outputs(window.output);
  if (outputs.elements() == 0) return;
  const std::vector<int64_t> steps = Shape(window.input).strides();
  std::vector<int64_t> at(window.rank());
  std::vector<int64_t> taps;
  size_t position = 0;
  do {
    taps.assign(1, 0);
    int64_t padded = 1;
    for (size_t axis = 0; axis < window.rank(); ++axis) {
      const int64_t start = at[axis] * window.strides[axis] - window.begin[axis];
      const int64_t step = window.dilations[axis];
      // How many taps lie before a place along the axis.
      const auto taps_before = [&](int64_t place) {
        return std::clamp<int64_t>(place <= start ? 0 : (place - start - 1) / step + 1, 0, window.kernel[axis]);
      };
      std::vector<int64_t> next;
      const int64_t end = taps_before(window.input[axis]);
      for (int64_t k = taps_before(0); k < end; ++k) next.push_back((start + k * step) * steps[axis]);
      padded *= taps_before(window.input[axis] + window.end[axis]);
      std::vector<int64_t> all;
      for (const int64_t base : taps) {
        for (const int64_t more : next) all.push_back(base + more);
      }
      taps = std::move(all);
    }
    visit(position, std::span<const int64_t>(taps), padded);
    ++position;
  } while (advance(at, window.output));
}

}  // namespace unmoor
