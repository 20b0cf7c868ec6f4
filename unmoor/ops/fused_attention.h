#pragma once

#include <array>
#include <optional>

#include "unmoor/ops/attention.h"

namespace unmoor {

// A call of unmoor:FusedAttention, read: what passes make of the operators between two products.

namespace fused_attention {
enum Input : size_t { Q, K, V, Bias, Shown };
}

// Where element (batch, head, row, column) of an operand lies: steps in elements, 0 along what is repeated.
using HeadSteps = std::array<size_t, 4>;

// What a query gives whose weights are no numbers.
enum class NoWeights : uint8_t {
  NaN,         // As Softmax has it.
  ZeroIfShut,  // Zeros where the bias of every key is -infinity.
  ZeroIfNaN,   // Zeros where a weight is NaN.
};

struct FusedAttentionCall {
  HeadSizes sizes = {};  // All known.
  double scale = 1;
  double hidden_score = 0;
  NoWeights no_weights = NoWeights::NaN;
  HeadSteps q = {}, k = {}, v = {}, y = {};
  std::optional<HeadSteps> bias = {};  // Rows are queries, columns keys; so for `shown`.
  std::optional<HeadSteps> shown = {};
};
// Every shape must be known.
FusedAttentionCall read_fused_attention(const OpCall& call);

void add_fused_attention(OpSet& ops);

}  // namespace unmoor
