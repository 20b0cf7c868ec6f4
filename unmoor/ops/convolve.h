#pragma once

#include "unmoor/ops/real.h"
#include "unmoor/ops/window.h"

namespace unmoor {

// A convolution's sizes, channels first. Unknown ones are `Shape::unknown`.
struct Convolution {
  Window window;
  int64_t batch = 1;
  int64_t channels = 1;  // Of the input.
  int64_t outputs = 1;   // Channels of the output.
  int64_t group = 1;

  Shape output_shape() const;  // [N, M, …].
};

// From the call's attributes and the shapes of X (channels first) and W [M, C/group, …]; either may be unknown, not both in rank.
// Fails with InvalidModel where they do not fit.
Convolution convolution_of(const OpCall& call, const Shape& x, const Shape& w);
// One output of dtype and layout that the call's X, W and attributes ask for.
std::vector<Type> infer_convolution(const OpCall& call, const Shape& x, const Shape& w, DType dtype);
// Fails with InvalidModel unless input i, where given, has shape [outputs].
void require_bias(const OpCall& call, size_t i, int64_t outputs);
// Multiply-adds count two.
double convolution_flop(const Convolution& convolution);

// The cost of a call whose inputs `x` and `w` are convolved.
Cost convolution_cost(const OpCall& call, size_t x = 0, size_t w = 1);
// y [N, C, …] plus one number a channel; `plane` elements a channel and item. No bias: y stays.
void add_bias(std::vector<double>& y, const std::vector<double>& bias, size_t plane);
// X by W plus the bias, where there is one, of a call whose first three inputs these are. [N, M, …].
std::vector<double> convolved(const OpCall& call, std::span<const Data> in);

// The sums of products without bias: x [N, C, …], w [M, C/group, …] to [N, M, …].
template <class T>
std::vector<T> convolve(const Convolution& convolution, const T* x, const T* w);

// Offsets into an input plane, or -1 in the padding, of one tap at a run of output positions.
class TapOffsets {
 public:
  // Positions [first, first + count) in row-major order.
  TapOffsets(const Window& window, int64_t first, int64_t count);
  // For the tap at `kernel_index`; valid until the next call.
  const std::vector<int64_t>& at(const std::vector<int64_t>& kernel_index);

 private:
  const Window& window_;
  std::vector<std::vector<int64_t>> starts_;  // By axis, then position: where the window begins.
  std::vector<int64_t> offsets_;
};

// Whether every output position reads the input at its own place alone, so that nothing has to be unfolded.
inline bool is_pointwise(const Window& window) {
  const auto all = [](const std::vector<int64_t>& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [wanted](int64_t value) { return value == wanted; });
  };
  return window.input == window.output && all(window.kernel, 1) && all(window.strides, 1) && all(window.begin, 0);
}

// Unfolds the input under the window: columns[c·taps + tap][i] at the output positions that `offsets` are of.
template <class T>
void unfold(const Window& window, const T* x, size_t inputs, TapOffsets& offsets, size_t count, T* columns) {
  const auto plane = static_cast<size_t>(Shape(window.input).elements());
  const auto taps = static_cast<size_t>(Shape(window.kernel).elements());
  std::vector<int64_t> kernel_index(window.rank());
  for (size_t tap = 0; tap < taps; ++tap, advance(kernel_index, window.kernel)) {
    const std::vector<int64_t>& from = offsets.at(kernel_index);
    side_by_side_ranges(inputs, static_cast<double>(count), [&](size_t begin, size_t end) {
      for (size_t c = begin; c < end; ++c) {
        T* const column = columns + (c * taps + tap) * count;
        const T* const channel = x + c * plane;
        for (size_t i = 0; i < count; ++i) column[i] = from[i] < 0 ? T{0} : channel[from[i]];
      }
    });
  }
}

template <class T>
std::vector<T> convolve(const Convolution& convolution, const T* x, const T* w) {
  const Window& window = convolution.window;
  const auto size = [](int64_t value) { return static_cast<size_t>(value); };
  const size_t plane = size(Shape(window.input).elements());
  const size_t positions = size(Shape(window.output).elements());
  const size_t taps = size(Shape(window.kernel).elements());
  const size_t group = size(convolution.group);
  const size_t batch = size(convolution.batch);
  const size_t inputs = size(convolution.channels) / group;
  const size_t outputs = size(convolution.outputs) / group;
  const size_t depth = inputs * taps;
  std::vector<T> y(batch * group * outputs * positions);
  if (y.empty() || depth == 0) return y;
  // Columns of unfolded input, a chunk of positions at a time: at most about a million numbers, which caches hold in part.
  const size_t most = std::max<size_t>(64, std::min<size_t>(positions, (size_t{1} << 20) / depth));
  const bool pointwise = is_pointwise(window);
  const size_t chunk = pointwise ? positions : most;
  std::vector<T> columns(pointwise ? 0 : depth * std::min(chunk, positions));
  std::vector<T> part(chunk >= positions ? 0 : outputs * chunk);
  for (size_t first = 0; first < positions; first += chunk) {
    const size_t count = std::min(chunk, positions - first);
    TapOffsets offsets(window, static_cast<int64_t>(first), static_cast<int64_t>(count));
    for (size_t slice = 0; slice < batch * group; ++slice) {
      const T* const source = x + slice * inputs * plane;
      if (!pointwise) unfold(window, source, inputs, offsets, count, columns.data());
      std::fill(part.begin(), part.end(), T{0});
      T* const products = part.empty() ? &y[slice * outputs * positions] : part.data();
      add_product(w + (slice % group) * outputs * depth, pointwise ? source : columns.data(), products, outputs, count, depth);
      for (size_t m = 0; m < outputs && !part.empty(); ++m) {
        std::copy_n(&part[m * count], count, &y[(slice * outputs + m) * positions + first]);
      }
    }
  }
  return y;
}

}  // namespace unmoor
