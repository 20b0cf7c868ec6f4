#pragma once

#include <functional>
#include <string>

#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/gemm.h"

namespace unmoor::cpu {

// The middle of a Winograd convolution: for every point a matrix product over channels, of the tiles that are worked on at once
// by the weights' values at that point. Immutable once its weights are packed: any thread.
class WinogradProducts {
 public:
  WinogradProducts(const Machine& machine, size_t points, size_t channels, size_t outputs);

  // `at(output, channel, to, step)` writes the points of one kernel, `step` floats apart. `kind` names the way.
  using KernelPoints = std::function<void(size_t output, size_t channel, float* to, size_t step)>;
  void pack(const Tensor& weights, const std::string& kind, const KernelPoints& at);
  void set_together(size_t tiles) { together_ = tiles; }

  size_t together() const { return together_; }  // Tiles.
  // Floats from tile to tile: a little more than there are channels, so that rows do not share places in the caches.
  size_t in_step() const { return channels_ + apart; }
  size_t out_step() const { return outputs_ + apart; }
  // Floats from point to point, and of all points of a tile in and out.
  size_t in_point() const { return together_ * in_step(); }
  size_t out_point() const { return together_ * out_step(); }
  size_t tile_floats() const { return points_ * (in_step() + out_step()); }
  // `count` tiles of one point.
  void multiply(size_t point, size_t count, const float* in, float* out) const;

 private:
  static constexpr size_t apart = 16;
  size_t packed_point() const { return loops_.packed_b(outputs_, channels_); }

  const Machine& machine_;
  const GemmLoops& loops_;
  size_t points_, channels_, outputs_;
  size_t together_ = 0;
  Packed weights_;
};

}  // namespace unmoor::cpu
