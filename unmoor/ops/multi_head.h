#pragma once

#include "unmoor/ops/contrib_attention.h"

namespace unmoor {

// Where com.microsoft's MultiHeadAttention and its kin have their inputs; none is beyond all of them.
struct MultiHeadPorts {
  static constexpr size_t none = 99;
  size_t query = 0, key = 1, value = 2;
  size_t bias = none, mask = none, attention_bias = none;
  size_t past_key = none, past_value = none, past_length = none;
  size_t beam_width = none, indirection = none;
};

// How queries, keys and values come. Rows are [batch, length, heads·size].
enum class MultiHeadForm : uint8_t {
  Unknown,
  Rows,        // Rows, each.
  Keys4,       // Queries in rows; keys and values [batch, heads, total, size], as made before.
  PackedKeys,  // Queries in rows; keys and values [batch, total, heads, 2, size].
  PackedAll,   // [batch, length, heads, 3, size].
  PackedRows,  // [batch, length, 3·heads·size].
};

struct MultiHeadCall {
  MultiHeadForm form = MultiHeadForm::Unknown;
  HeadSizes sizes = {};
  int64_t added = Shape::unknown;     // Keys of this call.
  int64_t past = 0;                   // Keys before them that count.
  int64_t capacity = Shape::unknown;  // Keys that present ones have room for.
  bool shared = false;                // Past and present are of one size, of which past_length rows count.
};
MultiHeadCall read_multi_head(const OpCall& call, const MultiHeadPorts& ports, bool packs_rows);

// Queries, keys and values, [batch, heads, length or total, size], in the formula's dtype, the bias added.
struct MultiHeadValues {
  ValueId q, k, v;
  ValueId present_key, present_value;
};
MultiHeadValues multi_head_values(Formula& f, const MultiHeadCall& read, const MultiHeadPorts& ports);

}  // namespace unmoor
