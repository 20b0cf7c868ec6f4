#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/convolve.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/resample.h"
#include "unmoor/ops/vision.h"

namespace unmoor {
namespace {

int64_t offset_groups(const OpCall& call, int64_t channels) {
  const int64_t groups = call.integer("offset_group", 1);
  if (groups < 1 || (channels >= 0 && channels % groups != 0)) {
    fail(ErrorKind::InvalidModel, title(call), ": offset_group is ", groups, ", not a divisor of ", channels, " channels");
  }
  return groups;
}

// Fails with InvalidModel unless input i, as far as known, is [N, channels, …] with the output's spatial shape.
void require_per_position(const OpCall& call, size_t i, const Convolution& convolution, int64_t channels) {
  const Shape& shape = call.input(i).shape;
  require_rank(call, i, convolution.window.rank() + 2);
  if (!shape.has_rank()) return;
  const std::string what = cat("a size of input ", i);
  same_dim(call, shape[0], convolution.batch, what);
  same_dim(call, shape[1], channels, what);
  for (size_t axis = 0; axis < convolution.window.rank(); ++axis) {
    same_dim(call, shape[axis + 2], convolution.window.output[axis], what);
  }
}

std::vector<Type> infer_deform_conv(const OpCall& call) {
  const TensorType& x = call.input(0);
  const Shape& w = call.input(1).shape;
  if (!x.shape.has_rank() && !w.has_rank()) return {TensorType{x.dtype, Shape::of_unknown_rank()}};
  const Convolution convolution = convolution_of(call, x.shape, w);
  const int64_t groups = offset_groups(call, convolution.channels);
  const Shape kernel(convolution.window.kernel);
  const int64_t points = kernel.is_known() ? Shape{groups, kernel.elements()}.elements() : Shape::unknown;
  const auto rank = static_cast<int64_t>(convolution.window.rank());
  require_per_position(call, 2, convolution, points < 0 ? Shape::unknown : Shape{points, rank}.elements());
  require_bias(call, 3, convolution.outputs);
  if (call.has(4)) require_per_position(call, 4, convolution, points);
  return infer_convolution(call, x.shape, w, x.dtype);
}

// The elements around a point of a plane and their weights in linear interpolation; what lies outside counts as zero.
Taps around(const std::vector<double>& point, const std::vector<int64_t>& plane) {
  Taps taps{{0, 1.0}};
  for (size_t axis = 0; axis < point.size(); ++axis) {
    if (!(std::fabs(point[axis]) < 0x1p52)) return {};
    const double floor = std::floor(point[axis]);
    const double ratio = point[axis] - floor;
    Taps next;
    for (const Tap& tap : taps) {
      for (const int64_t side : {0, 1}) {
        const int64_t at = static_cast<int64_t>(floor) + side;
        const double weight = side == 0 ? 1 - ratio : ratio;
        if (at >= 0 && at < plane[axis] && weight > 0) next.push_back({tap.from * plane[axis] + at, tap.weight * weight});
      }
    }
    taps = std::move(next);
  }
  return taps;
}

// Samples one item of the batch.
class Sampler {
 public:
  Sampler(const OpCall& call, const Convolution& convolution, std::span<const double> x, std::span<const double> offset,
          std::span<const double> mask)
      : window_(convolution.window), x_(x), offset_(offset), mask_(mask) {
    taps_ = static_cast<size_t>(Shape(window_.kernel).elements());
    positions_ = static_cast<size_t>(Shape(window_.output).elements());
    plane_ = static_cast<size_t>(Shape(window_.input).elements());
    groups_ = static_cast<size_t>(offset_groups(call, convolution.channels));
    channels_ = static_cast<size_t>(convolution.channels) / groups_;
  }

  // Column [channels, taps] of what the taps see at an output position, times the mask.
  void column(size_t position, const std::vector<int64_t>& index, std::vector<double>& values) const {
    std::vector<int64_t> tap_index(window_.rank());
    for (size_t tap = 0; tap < taps_; ++tap, advance(tap_index, window_.kernel)) {
      for (size_t group = 0; group < groups_; ++group) {
        const size_t at = group * taps_ + tap;
        const Taps taps = around(point(at, position, index, tap_index), window_.input);
        const double factor = mask_.empty() ? 1 : mask_[at * positions_ + position];
        for (size_t i = group * channels_; i < (group + 1) * channels_; ++i) {
          double sum = 0;
          for (const Tap& each : taps) sum += each.weight * x_[i * plane_ + static_cast<size_t>(each.from)];
          values[i * taps_ + tap] = sum * factor;
        }
      }
    }
  }

 private:
  std::vector<double> point(size_t at, size_t position, const std::vector<int64_t>& index,
                            const std::vector<int64_t>& tap_index) const {
    std::vector<double> point(window_.rank());
    for (size_t axis = 0; axis < point.size(); ++axis) {
      const int64_t regular =
          index[axis] * window_.strides[axis] - window_.begin[axis] + tap_index[axis] * window_.dilations[axis];
      point[axis] = static_cast<double>(regular) + offset_[(at * point.size() + axis) * positions_ + position];
    }
    return point;
  }

  const Window& window_;
  std::span<const double> x_, offset_, mask_;
  size_t taps_ = 0, positions_ = 0, plane_ = 0, groups_ = 0, channels_ = 0;
};

void run_deform_conv(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Convolution convolution = convolution_of(call, in[0].tensor().shape(), in[1].tensor().shape());
  const auto x = doubles(in[0].tensor());
  const auto w = doubles(in[1].tensor());
  const auto offset = doubles(in[2].tensor());
  const auto bias = doubles_at(in, 3);
  const auto mask = doubles_at(in, 4);
  Tensor& result = allocate_inferred(call, in, out, infer_deform_conv);
  std::vector<double> y(result.elements());
  if (y.empty()) return;
  const auto batch = static_cast<size_t>(convolution.batch);
  const auto outputs = static_cast<size_t>(convolution.outputs);
  const auto positions = static_cast<size_t>(Shape(convolution.window.output).elements());
  const size_t depth = outputs == 0 ? 0 : w.size() / outputs;
  const size_t per_group = outputs / static_cast<size_t>(convolution.group);
  std::vector<double> column(depth * static_cast<size_t>(convolution.group));
  for (size_t n = 0; n < batch; ++n) {
    const auto item = [&](const std::vector<double>& all) {
      return std::span(all).subspan(n * (all.size() / batch), all.size() / batch);
    };
    const Sampler sampler(call, convolution, item(x), item(offset), item(mask));
    std::vector<int64_t> index(convolution.window.rank());
    for (size_t position = 0; position < positions; ++position, advance(index, convolution.window.output)) {
      sampler.column(position, index, column);
      for (size_t m = 0; m < outputs; ++m) {
        double sum = bias.empty() ? 0 : bias[m];
        for (size_t i = 0; i < depth; ++i) sum += w[m * depth + i] * column[m / per_group * depth + i];
        y[(n * outputs + m) * positions + position] = sum;
      }
    }
  }
  store(result, std::span<const double>(y));
}

}  // namespace

void add_deform_conv(OpSet& ops) {
  Op op;
  op.name = "DeformConv";
  op.summary = "Convolution whose taps are moved by offsets of their own and weighted by a mask.";
  op.inputs = {required("X", float_types()), required("W", float_types()), required("offset", float_types()),
               optional("B", float_types()), optional("mask", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"dilations", std::vector<int64_t>()},    {"group", int64_t{1}},
                   {"kernel_shape", std::vector<int64_t>()}, {"offset_group", int64_t{1}},
                   {"pads", std::vector<int64_t>()},         {"strides", std::vector<int64_t>()}};
  op.infer = infer_deform_conv;
  op.reference = run_deform_conv;
  op.cost = [](const OpCall& call) {
    const Shape& x = call.input(0).shape;
    const Shape& w = call.input(1).shape;
    if (!x.has_rank() || !w.has_rank()) return Cost{0, bytes_moved(call)};
    return Cost{convolution_flop(convolution_of(call, x, w)) + 8 * elements_or_zero(call.input(2).shape), bytes_moved(call)};
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Convolution;
  op.cases = {"T[1,1,3,3]~small T[1,1,2,2]~small! T[1,8,4,4]~small pads=[1,1,1,1]",
              "T[2,4,5,6]~small T[6,2,3,3]~small! T[2,18,5,6]~small T[6]~small! T[2,9,5,6]~unit group=2 pads=[1,1,1,1]",
              "T[1,4,5,5]~small T[2,4,2,2]~small! T[1,16,4,4]~small - T[1,8,4,4]~unit offset_group=2",
              "T[1,4,5,5]~small T[2,4,2,2]~small! T[1,32,4,4]~small T[2]~small! offset_group=4",
              "T[1,2,7,9]~small T[3,2,3,3]~small! T[1,18,3,3]~small strides=[2,2] dilations=[1,2]",
              "T[1,2,4,4]~small T[3,2,1,1]~small! T[1,2,4,4]~small kernel_shape=[1,1]",
              "T[1,2,9]~small T[3,2,3]~small! T[1,3,9]~small pads=[1,1]",
              "T[1,2,3,4,3]~small T[2,2,2,2,2]~small! T[1,24,2,3,2]~small",
              "T[1,1,1,1]~small T[1,1,1,1]~small! T[1,2,1,1]~small",
              "T[1,1,3,3]~small T[1,1,2,2]~small! T[1,8,4,4] pads=[1,1,1,1]",
              "T[0,1,3,3] T[1,1,2,2]! T[0,8,2,2]",
              "f32[1,1,3,3]{1,2,3,4,5,6,7,8,9} f32[1,1,1,1]{1} f32[1,2,1,1]{0.5,1.25} strides=[3,3]",
              "f32[1,1,2,2]{1,2,3,4} f32[1,1,1,1]{1} f32[1,2,2,2]{-1,-0.5,inf,nan,-1,0,0,0}"};
  ops.add(std::move(op));
}

}  // namespace unmoor
