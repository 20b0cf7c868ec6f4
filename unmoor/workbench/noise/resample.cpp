#include "unmoor/workbench/noise/resample.h"

#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

Tensor identity(int64_t size) {
  Tensor result(TensorType{DType::F64, Shape{size, size}});
  const auto values = result.writable_span<double>();
  for (size_t i = 0; i < static_cast<size_t>(size); ++i) values[i * static_cast<size_t>(size) + i] = 1;
  return result;
}

// The weights of one axis, [output, input]: the same operator on an identity matrix, whose second axis stays.
Tensor weights_along(const Node& node, std::span<const Data> in, const Tensor& y, size_t axis) {
  const Shape& shape = in[0].tensor().shape();
  Node along = node;
  along.attributes.erase("axes");
  along.inputs.assign(4, ValueId{0});
  const bool by_size = in.size() > 3 && in[3] && in[3].tensor().elements() > 0;
  std::vector<Data> inputs{identity(shape[axis]), Data(), Data(), Data()};
  if (by_size) {
    inputs[3] = Tensor::from<int64_t>({2}, {y.shape()[axis], shape[axis]});
  } else {
    const auto axes = call_on(node, in).integers("axes");
    const std::vector<double> scales = doubles(in[2].tensor());
    size_t at = axis;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(shape.rank()) : axes[i]) == axis) at = i;
    }
    inputs[2] = Tensor::from<float>({2}, {static_cast<float>(scales.at(at)), 1.0F});
  }
  along.inputs[1] = no_value;
  along.inputs[by_size ? 2 : 3] = no_value;
  return reference_on(along, inputs).at(0).tensor();
}

}  // namespace

bool is_interpolation(const OpCall& call) {
  return call.node.op == "Resize" && call.text("mode", "nearest") != "nearest" && call.input(0).dtype == DType::F64;
}

ResampleForm::ResampleForm(const Node& node, std::span<const Data> in) {
  const OpCall call = call_on(node, in);
  if (call.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" ||
      call.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    fail(ErrorKind::Unsupported, "no noise model for Resize of a region or with its aspect ratio kept");
  }
  const Tensor y = reference_on(node, in).at(0).tensor();
  const Shape& shape = in[0].tensor().shape();
  constexpr int64_t most = 8192;  // A matrix of weights of 512 MB.
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == y.shape()[axis]) continue;
    if (shape[axis] > most || y.shape()[axis] > most)
      fail(ErrorKind::Unsupported, "no noise model for Resize of an axis over ", most);
    const Tensor weights = weights_along(node, in, y, axis);
    const auto columns = static_cast<size_t>(shape[axis]);
    Axis form{axis, std::vector<std::vector<Tap>>(static_cast<size_t>(y.shape()[axis]))};
    const auto w = weights.span<double>();
    for (size_t row = 0; row < form.taps.size(); ++row) {
      for (size_t i = 0; i < columns; ++i) {
        if (w[row * columns + i] != 0) form.taps[row].push_back({i, w[row * columns + i]});
      }
    }
    axes_.push_back(std::move(form));
  }
}

Tensor ResampleForm::sample(const Tensor& x, double unit, const NoiseRandom& random) const {
  std::vector<double> values = doubles(x);
  Shape shape = x.shape();
  size_t drawn = 0;
  for (const Axis& form : axes_) {
    const Split split = split_at(shape, form.axis);
    std::vector<double> result(split.outer * form.taps.size() * split.inner);
    for (size_t row = 0; row < form.taps.size(); ++row) {
      std::vector<Tap> taps = form.taps[row];
      // The coordinate is at about the place of its taps; it moved by u takes that much weight from one of the middle two to the
      // other, or from the only one to a neighbour.
      const double moved = taps.empty() ? 0 : unit * static_cast<double>(taps.back().from + 1) * random.around(drawn++);
      if (taps.size() > 1) {
        taps[taps.size() / 2 - 1].weight -= moved;
        taps[taps.size() / 2].weight += moved;
      } else if (taps.size() == 1 && (moved > 0 ? taps[0].from + 1 < split.length : taps[0].from > 0)) {
        taps.push_back({moved > 0 ? taps[0].from + 1 : taps[0].from - 1, std::fabs(moved)});
        taps[0].weight -= std::fabs(moved);
      }
      for (size_t outer = 0; outer < split.outer; ++outer) {
        double* const to = result.data() + (outer * form.taps.size() + row) * split.inner;
        for (const Tap& tap : taps) {
          const double* const from = values.data() + (outer * split.length + tap.from) * split.inner;
          const double weight = tap.weight * (1 + unit * random.around(drawn++));
          for (size_t i = 0; i < split.inner; ++i) {
            const double product = weight * from[i] * (1 + unit * random.around(drawn++));
            to[i] = (to[i] + product) * (1 + unit * random.around(drawn++));
          }
        }
      }
    }
    values = std::move(result);
    shape.set(form.axis, static_cast<int64_t>(form.taps.size()));
  }
  Tensor result(TensorType{DType::F64, shape});
  store(result, std::span<const double>(values));
  return result;
}

}  // namespace unmoor
