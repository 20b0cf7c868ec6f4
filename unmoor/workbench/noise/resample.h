#pragma once

#include "unmoor/workbench/noise/random.h"
#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

// Resize by linear or cubic interpolation as taps along one axis after the other. Coordinates are rounded, which moves weight
// between neighbours; then each tap is a product and a sum.
class ResampleForm {
 public:
  // Fails with Unsupported where no taps stand for the call: tf_crop_and_resize, or an aspect ratio that is kept.
  ResampleForm(const Node& node, std::span<const Data> in);
  // The values of float64 `x` resampled, with noise of unit roundoff `unit`.
  Tensor sample(const Tensor& x, double unit, const NoiseRandom& random) const;

 private:
  struct Tap {
    size_t from = 0;
    double weight = 0;
  };
  struct Axis {
    size_t axis = 0;
    std::vector<std::vector<Tap>> taps;  // By output element.
  };
  std::vector<Axis> axes_;
};

// Whether this call is one that interpolates.
bool is_interpolation(const OpCall& call);

}  // namespace unmoor
