#pragma once

#include <memory>
#include <vector>

#include "unmoor/backends/cpu/kernels/window.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::cpu {

// What every kernel of a convolution with packed weights asks for, its layout apart: float32, constant weights that fit the groups, an
// activation that epilogues have, a residual as large as the result.
Support takes_convolution(const OpCall& call);
Window window_of_weights(const OpCall& call);

// The operands of Conv and unmoor:FusedConv; null where one is absent.
struct ConvOperands {
  explicit ConvOperands(const KernelArgs& args);
  const float* x;
  const float* weights;
  const float* bias;
  const float* residual;
  float* y;
  float* workspace;
};

// A group's weights, [output][channel][tap], as [tap][channel][output].
std::vector<float> weights_by_tap(const Tensor& weights, size_t group, size_t outputs, size_t channels, size_t taps);

// Of the output pixels of a batch of images, counted through.
struct PixelRange {
  size_t begin;
  size_t end;
};
// A row for each of these output pixels of channels-last images: what its taps meet of a group's channels, [tap][channel], zero
// outside of the image. Rows are `row_step` floats apart.
void gather_pixels(const Window& w, size_t groups, const float* x, size_t group, const PixelRange& pixels, size_t row_step, float* to);

// For Prepared::unused_inputs: the weights are packed.
std::vector<bool> without_weights(const OpCall& call);

// A prepared kernel of packed weights: `work` is shared by the copies of its function.
template <class Work>
Prepared prepared_convolution(const OpCall& call, std::shared_ptr<const Work> work) {
  const size_t workspace = work->workspace_bytes();
  return {.run = [work = std::move(work)](Stream&, const KernelArgs& args) { work->run(ConvOperands(args)); },
          .workspace_bytes = workspace,
          .unused_inputs = without_weights(call)};
}

// Of three taps in a row.
void add_line_winograd_kernels(KernelTable& table);
// Of channels-last images to few channels.
void add_dot_conv_kernels(KernelTable& table);

}  // namespace unmoor::cpu
