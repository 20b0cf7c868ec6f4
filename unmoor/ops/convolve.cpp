#include "unmoor/ops/convolve.h"

#include "unmoor/base/error.h"

namespace unmoor {

namespace {

// The spatial part of a [N, C, …] or [M, C/group, …] shape, all unknown where the rank is.
std::vector<int64_t> spatial(const Shape& shape, size_t rank) {
  std::vector<int64_t> dims(rank, Shape::unknown);
  for (size_t axis = 0; shape.has_rank() && axis < rank; ++axis) dims[axis] = shape[axis + 2];
  return dims;
}

}  // namespace

Shape Convolution::output_shape() const {
  Shape shape{batch, outputs};
  for (const int64_t dim : window.output) shape.push_back(dim);
  return shape;
}

Convolution convolution_of(const OpCall& call, const Shape& x, const Shape& w) {
  const size_t rank = x.has_rank() ? x.rank() : w.rank();
  if (rank < 3 || (w.has_rank() && w.rank() != rank)) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", x, " and weight ", w, " do not have the same rank of 3 or more");
  }
  Convolution result;
  result.group = call.integer("group", 1);
  result.batch = x.has_rank() ? x[0] : Shape::unknown;
  const int64_t per_group = w.has_rank() ? w[1] : Shape::unknown;
  result.outputs = w.has_rank() ? w[0] : Shape::unknown;
  const bool whole =
      result.group >= 1 && (result.outputs < 0 || result.outputs % result.group == 0) &&
      (!x.has_rank() || x[1] < 0 || (x[1] % result.group == 0 && (per_group < 0 || x[1] / result.group == per_group)));
  if (!whole) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", x, " and weight ", w, " do not fit with group ", result.group);
  }
  result.channels = x.has_rank() ? x[1] : Shape::unknown;
  std::vector<int64_t> kernel = spatial(w, rank - 2);
  const std::vector<int64_t> declared = call.integers("kernel_shape");
  if (!declared.empty()) {
    if (declared.size() != kernel.size()) {
      fail(ErrorKind::InvalidModel, title(call), ": kernel_shape has ", declared.size(), " values, not ", kernel.size());
    }
    for (size_t axis = 0; axis < kernel.size(); ++axis)
      kernel[axis] = same_dim(call, kernel[axis], declared[axis], "kernel_shape");
  }
  result.window = window_of(call, spatial(x, rank - 2), std::move(kernel));
  return result;
}

std::vector<Type> infer_convolution(const OpCall& call, const Shape& x, const Shape& w, DType dtype) {
  if (!x.has_rank() && !w.has_rank()) return {TensorType{dtype, Shape::of_unknown_rank()}};
  const Shape first = canonical(call, x);
  Shape shape = convolution_of(call, first, w).output_shape();
  if (first.has_rank() && !first.symbol(0).empty()) shape.set_symbol(0, first.symbol(0));
  return {TensorType{dtype, in_layout(call, shape)}};
}

void require_bias(const OpCall& call, size_t i, int64_t outputs) {
  if (!call.has(i)) return;
  require_rank(call, i, 1);
  if (call.input(i).shape.has_rank()) same_dim(call, call.input(i).shape[0], outputs, "the number of output channels");
}

double convolution_flop(const Convolution& convolution) {
  const Shape output = convolution.output_shape();
  if (!output.is_known() || convolution.channels < 0) return 0;
  const double depth = static_cast<double>(convolution.channels) / static_cast<double>(convolution.group) *
                       elements_or_zero(Shape(convolution.window.kernel));
  return 2 * depth * static_cast<double>(output.elements());
}

Cost convolution_cost(const OpCall& call, size_t x, size_t w) {
  const Shape first = canonical(call, call.input(x).shape);
  if (!first.has_rank() || !call.input(w).shape.has_rank()) return {0, bytes_moved(call)};
  return {convolution_flop(convolution_of(call, first, call.input(w).shape)), bytes_moved(call)};
}

void add_bias(std::vector<double>& y, const std::vector<double>& bias, size_t plane) {
  for (size_t first = 0; !bias.empty() && first < y.size(); first += plane) {
    const double more = bias[first / plane % bias.size()];
    for (size_t i = first; i < first + plane; ++i) y[i] += more;
  }
}

std::vector<double> convolved(const OpCall& call, std::span<const Data> in) {
  const Convolution convolution = convolution_of(call, canonical(call, in[0].tensor().shape()), in[1].tensor().shape());
  const RealInput w(in[1].tensor());
  std::vector<double> y;
  if (channels_last(call)) {
    y = convolve(convolution, read_canonical<double>(call, in[0].tensor()).data(), w.data());
  } else {
    y = convolve(convolution, RealInput(in[0].tensor()).data(), w.data());
  }
  add_bias(y, doubles_at(in, 2), static_cast<size_t>(Shape(convolution.window.output).elements()));
  return y;
}

TapOffsets::TapOffsets(const Window& window, int64_t first, int64_t count)
    : window_(window), starts_(window.rank()), offsets_(static_cast<size_t>(count)) {
  std::vector<int64_t> index(window.rank());
  int64_t rest = first;
  for (size_t axis = window.rank(); axis-- > 0;) {
    index[axis] = rest % window.output[axis];
    rest /= window.output[axis];
  }
  for (int64_t i = 0; i < count; ++i) {
    for (size_t axis = 0; axis < window.rank(); ++axis) {
      starts_[axis].push_back(index[axis] * window.strides[axis] - window.begin[axis]);
    }
    advance(index, window.output);
  }
}

const std::vector<int64_t>& TapOffsets::at(const std::vector<int64_t>& kernel_index) {
  std::fill(offsets_.begin(), offsets_.end(), 0);
  for (size_t axis = 0; axis < window_.rank(); ++axis) {
    const int64_t size = window_.input[axis];
    const int64_t ahead = kernel_index[axis] * window_.dilations[axis];
    for (size_t i = 0; i < offsets_.size(); ++i) {
      const int64_t at = starts_[axis][i] + ahead;
      offsets_[i] = offsets_[i] < 0 || at < 0 || at >= size ? -1 : offsets_[i] * size + at;
    }
  }
  return offsets_;
}

}  // namespace unmoor
