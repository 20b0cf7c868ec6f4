#pragma once

#include <array>

#include "unmoor/ops/attention.h"

namespace unmoor {

// com.microsoft's attention operators. Their contracts are ONNX Runtime's documents of its contrib operators; each is an
// expansion.
void add_multi_head_ops(OpSet& ops);        // MultiHeadAttention, DecoderMaskedMultiHeadAttention.
void add_self_attention_ops(OpSet& ops);    // Attention.
void add_packed_attention_ops(OpSet& ops);  // PackedAttention, PackedMultiHeadAttention.
void add_group_query_ops(OpSet& ops);       // GroupQueryAttention.
void add_contrib_rotary(OpSet& ops);        // RotaryEmbedding.
void add_contrib_embed_ops(OpSet& ops);     // EmbedLayerNormalization, BiasSplitGelu, GroupNorm, SkipGroupNorm.
void add_crop_and_inverse(OpSet& ops);      // CropAndResize, Inverse.

// What they add to scores. Where ONNX's Attention uses -infinity, these use numbers, so that a query that sees nothing sees all.
struct ContribBias {
  std::optional<size_t> mask = std::nullopt;   // The input that tells which keys count, in one of its documented shapes.
  std::optional<size_t> added = std::nullopt;  // The input to add, broadcasting to [batch, heads, length, total].
  double filter = -10000;                      // For keys that do not count.
  bool causal = false;                         // Queries do not see later keys, ...
  int64_t past = 0;                            // ... the first one being at this place.
};
ContribBias contrib_bias(const OpCall& call, std::optional<size_t> mask, std::optional<size_t> added, int64_t past);
// Fails with InvalidModel on shapes, as far as known, that fit no documented form.
void check_contrib_bias(const OpCall& call, const HeadSizes& sizes, const ContribBias& bias);
// no_value if there is nothing to add.
// `lengths`: [batch, 1, 1, 1] int64, how many keys of each batch count, in place of a mask.
ValueId add_contrib_bias(Formula& f, GraphBuilder& builder, const HeadSizes& sizes, const ContribBias& bias,
                         ValueId lengths = no_value);

// Fails with InvalidModel unless all floating inputs have the first one's dtype.
void require_one_float_dtype(const OpCall& call);
// num_heads. Fails with InvalidModel unless it is 1 or more.
int64_t heads_attribute(const OpCall& call, std::string_view key = "num_heads");
// scale, or 1/√depth where it is not given or 0.
double contrib_scale(const OpCall& call, int64_t depth);
// A size divided by the number of heads; unknown stays. Fails with InvalidModel if there is a rest.
int64_t per_head(const OpCall& call, int64_t size, int64_t heads);
// The projection of com.microsoft's Attention: weights and bias of queries, keys and values side by side.
struct Projection {
  int64_t depth = Shape::unknown;  // Of a head of queries and keys.
  int64_t width = Shape::unknown;  // Of a head of values.
};
Projection read_projection(const OpCall& call, size_t weights, size_t bias, int64_t input_size, int64_t heads);
// Rows of queries, keys and values, made of input 0.
std::array<ValueId, 3> add_projection(Formula& f, size_t weights, size_t bias, const HeadSizes& sizes);
// Elements of queries, keys and values side by side: heads·(2·depth + width). Fails with InvalidModel beyond 2^62.
int64_t projected_size(const OpCall& call, const HeadSizes& sizes);
// Part of a value along an axis.
ValueId sliced(Formula& f, ValueId x, int64_t axis, int64_t from, int64_t to);

}  // namespace unmoor
