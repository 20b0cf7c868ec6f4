#pragma once

#include "unmoor/ops/attention.h"

namespace unmoor {

// A call of ONNX's Attention, read.
struct AttentionCall {
  HeadSizes sizes = {};
  bool packed = false;             // Heads lie in the last of three dimensions.
  int64_t added = Shape::unknown;  // Keys of this call.
  int64_t past = 0;                // Keys before them.
};
namespace attention_input {
enum Input : size_t { Q, K, V, Mask, PastKey, PastValue, Nonpad };
}

// Sizes, as far as shapes tell. Fails with InvalidModel where they contradict each other.
AttentionCall read_attention(const OpCall& call);
AttentionRule attention_rule(const OpCall& call, const HeadSizes& sizes);
// left_window_size or right_window_size: -1 for none, and no more than 2^60.
int64_t attention_window(const OpCall& call, std::string_view key);
// qk_matmul_output_mode.
AttentionStage attention_stage(const OpCall& call);

}  // namespace unmoor
