#pragma once

#include "unmoor/passes/pass.h"
#include "unmoor/passes/rewrite.h"

namespace unmoor {

// The passes as they work inside: each true if it changed anything. all.cpp lists them in order and says what they do.
bool fold_constants(Rewriter& r);
bool inline_constant_if(Rewriter& r);
bool remove_identity(Rewriter& r);
bool merge_moves(Rewriter& r);
bool remove_duplicates(Rewriter& r);
bool remove_dead(Rewriter& r);
bool raise_layer_normalization(Rewriter& r);
bool raise_activations(Rewriter& r);
bool fuse_transpose(Rewriter& r);
bool fuse_scale(Rewriter& r);
bool fuse_conv(Rewriter& r);
bool fuse_matmul(Rewriter& r);
bool widen_weights(Rewriter& r);
bool convolve_before_resize(Rewriter& r);
// Once, at the end. Joins the products of queries, keys and values with the softmax between where the device takes it so.
bool fuse_attention(Rewriter& r, const TakesCall& takes);
// Once, at the end. A value of the file may then stand in the graph in both layouts, under its one name.
bool channels_last(Rewriter& r, const TakesCall& takes);
// Once, behind that. Joins a depthwise convolution with the 1×1 ones around it where the device takes it so.
bool fuse_inverted_residual(Rewriter& r, const TakesCall& takes);

// False for what gives another result at each run.
bool is_deterministic(const Node& node);

}  // namespace unmoor
