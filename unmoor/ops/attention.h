#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "unmoor/ops/formula.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {

// Parts of the attention family.
void add_rotary_ops(OpSet& ops);            // RotaryEmbedding.
void add_linear_attention_ops(OpSet& ops);  // LinearAttention.
void add_causal_conv(OpSet& ops);           // CausalConvWithState.
void add_flex_attention(OpSet& ops);        // ai.onnx.preview:FlexAttention.

// Queries are [batch, heads, length, depth], keys [batch, shared, total, depth], values [batch, shared, total, width]. Query head
// h reads key head h / (heads / shared).
struct HeadSizes {
  int64_t batch = Shape::unknown;
  int64_t heads = Shape::unknown;
  int64_t shared = Shape::unknown;
  int64_t length = Shape::unknown;
  int64_t total = Shape::unknown;
  int64_t depth = Shape::unknown;
  int64_t width = Shape::unknown;
};
// Fails with InvalidModel unless heads, where known, are 1 or more and a multiple of the shared ones.
void require_groups(const OpCall& call, const HeadSizes& sizes);
// Keys of before and now; unknown if one is. Fails with InvalidModel beyond 2^62.
int64_t joined_length(const OpCall& call, int64_t past, int64_t added);
// 1 / √depth.
double usual_scale(int64_t depth);
// Twice the multiply-adds of both products, and the softmax; 0 where a size is unknown.
double attention_flop(const HeadSizes& sizes);

struct AttentionRule {
  HeadSizes sizes = {};
  double scale = 1;
  double softcap = 0;            // Scores become softcap·tanh(score / softcap). 0: they stay.
  DType precision = DType::F64;  // What scores and weights are rounded to on either side of the softmax.
  std::vector<double> sinks =
      {};  // By head, a further logit that takes a share of the softmax and is dropped. Empty: none. Not for add_attention.
};

// What can be watched of it: scale·q·kᵀ, that capped, that with the bias, and its softmax.
enum class AttentionStage : uint8_t { Product, Capped, Biased, Weights };

// Adds the bias of query i of head h of batch b to a row of zeros, one a key. -infinity shuts the key out.
using AddBias = std::function<void(size_t b, size_t h, size_t i, std::span<double> row)>;

struct Attended {
  std::vector<double> y;      // [batch, heads, length, width]
  std::vector<double> stage;  // [batch, heads, length, total], or empty.
};
// softmax(cap(scale·q·kᵀ) + bias)·v. Queries whose bias shuts out every key give zeros.
Attended attend(const AttentionRule& rule, std::span<const double> q, std::span<const double> k, std::span<const double> v,
                const AddBias& add_bias, std::optional<AttentionStage> keep = std::nullopt);

// scale·q·kᵀ as operators, for known sizes: [batch, heads, length, total].
ValueId add_scores(Formula& f, const AttentionRule& rule, ValueId q, ValueId k);
// All of it as operators.
struct AttentionValues {
  ValueId q, k, v;            // In the formula's dtype.
  ValueId bias = no_value;    // Broadcasts to [batch, heads, length, total], its last dimension being total.
  bool may_shut_out = false;  // Whether the bias may shut out every key of a query.
  ValueId sinks = no_value;   // [1, heads, 1, 1]: the rule's sinks.
};
struct AttendedValues {
  ValueId y = no_value;
  ValueId stage = no_value;
};
AttendedValues add_attention(Formula& f, const AttentionRule& rule, const AttentionValues& values,
                             std::optional<AttentionStage> keep = std::nullopt);

// [batch, length, heads·width] as [batch, heads, length, width], and back.
std::vector<double> split_heads(std::span<const double> x, size_t batch, size_t length, size_t heads, size_t width);
std::vector<double> join_heads(std::span<const double> x, size_t batch, size_t heads, size_t length, size_t width);
ValueId split_heads(Formula& f, ValueId x, int64_t batch, int64_t length, int64_t heads, int64_t width);
ValueId join_heads(Formula& f, ValueId x, int64_t batch, int64_t heads, int64_t length, int64_t width);

// As Reshape, but a size of 0 is 0.
ValueId sized(Formula& f, ValueId x, std::vector<int64_t> shape);
// 0 where the condition holds, else -infinity.
ValueId shut_out_unless(Formula& f, ValueId condition);
// first, first + 1, … as an int64 constant of shape [count], or [count, 1].
ValueId places(GraphBuilder& builder, int64_t first, int64_t count, bool as_column);

// Fails with OutOfMemory if so many numbers may not be held. Counts are up to 2^62 each.
void check_doubles(std::initializer_list<size_t> counts);
// A product of two sizes. Fails with InvalidArgument beyond 2^62.
inline int64_t times(int64_t a, int64_t b) { return Shape{a, b}.elements(); }
// The dimension or, where it is unknown, the symbol of the axis that it is.
void append_dim(Shape& shape, int64_t dim, const Shape& from, size_t axis);

}  // namespace unmoor
