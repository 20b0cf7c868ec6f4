#pragma once

#include "unmoor/ops/op.h"
#include "unmoor/ops/window.h"

namespace unmoor {

// A call of unmoor:InvertedResidual, read: what passes make of a 1×1 convolution, a depthwise one and another 1×1 one.

namespace inverted_residual {
enum Input : size_t { X, ExpandWeights, ExpandBias, DepthwiseWeights, DepthwiseBias, ProjectWeights, ProjectBias, Residual };
// What the activations' attributes begin with.
constexpr std::string_view expand_prefix = "expand_";
constexpr std::string_view depthwise_prefix = "depthwise_";
}  // namespace inverted_residual

// Images are [batch, h, w, channels], channels last whatever the graph.
struct InvertedResidualCall {
  int64_t batch = Shape::unknown;
  int64_t channels = Shape::unknown;  // Of X.
  int64_t expanded = Shape::unknown;  // Of what the depthwise convolution reads and gives.
  int64_t outputs = Shape::unknown;
  Window window = {};  // The depthwise convolution's, axes h and w.
};
// Shapes need not be known. Fails with InvalidModel where they do not fit.
InvertedResidualCall read_inverted_residual(const OpCall& call);

void add_inverted_residual(OpSet& ops);

}  // namespace unmoor
