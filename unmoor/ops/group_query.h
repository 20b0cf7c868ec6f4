#pragma once

#include "unmoor/ops/contrib_attention.h"
#include "unmoor/ops/rotary.h"

namespace unmoor {

// com.microsoft's GroupQueryAttention: queries share key heads, and keys and values live in a cache that each call adds to.
namespace group_query {

enum Input : size_t {
  Query,
  Key,
  Value,
  PastKey,
  PastValue,
  LastKeys,
  Total,
  Cos,
  Sin,
  Positions,
  Added,
  Sinks,
  KeyScale,
  ValueScale,
  QueryNorm,
  KeyNorm,
  QueryLengths,
};

// How a cache holds numbers.
enum class Code : uint8_t {
  Plain,
  Bytes,
  Float8,
  HalfBytes
};  // HalfBytes: two a byte, the first in the low bits, 8 standing for 0.

struct Call {
  HeadSizes sizes = {};               // total: unknown, as it differs by batch. width is depth.
  bool packed = false;                // Keys and values lie behind the queries.
  int64_t added = Shape::unknown;     // Rows of keys in this call: as many as queries, or none.
  int64_t past = 0;                   // Rows that the past cache has room for.
  int64_t total = Shape::unknown;     // total_sequence_length: no batch has more keys.
  int64_t capacity = Shape::unknown;  // Rows that the present cache has room for.
  int64_t window = -1;                // Keys that a query sees, itself among them. -1: all before it.
  bool causal = true;
  bool slides = false;     // The cache holds no more than its window needs.
  Rotation rotation = {};  // half: 0 where nothing is rotated.
  Code code = Code::Plain;
  int64_t output = 0;  // What the fourth output is: 1 scores, 2 weights.
};

// Sizes as far as known; fails with InvalidModel on what cannot be.
Call read(const OpCall& call);
AttentionRule rule(const OpCall& call, const Call& read);
// Whether position_ids count from their first element alone: the first prompt, which makes as many keys as there are.
bool is_prompt(const OpCall& call, const Call& read);

void reference(const OpCall& call, std::span<const Data> in, Outputs& out);
void expand(GraphBuilder& builder);

}  // namespace group_query

}  // namespace unmoor
