#include "unmoor/base/error.h"
#include "unmoor/ops/contrib_attention.h"
#include "unmoor/ops/run_graph.h"

// com.microsoft's Attention, which projects its input to queries, keys and values itself.
namespace unmoor {

namespace {

enum Input : size_t { X, Weights, Bias, Mask, Past, Added, PastLength };

struct SelfCall {
  HeadSizes sizes = {};
  int64_t past = 0;
  int64_t capacity = Shape::unknown;  // Keys that `present` has room for.
  bool shared = false;                // Past and present are of one size.
};

void read_past(const OpCall& call, SelfCall& read) {
  HeadSizes& s = read.sizes;
  read.shared = call.integer("past_present_share_buffer", 0) != 0;
  if (read.shared && (!call.has(Past) || !call.has(PastLength))) {
    fail(ErrorKind::InvalidModel, title(call), ": past_present_share_buffer needs past and past_sequence_length");
  }
  if (!call.has(Past)) return;
  require_rank(call, Past, 5);
  const Shape past = call.input(Past).shape.has_rank() ? call.input(Past).shape : unknown_shape(5);
  same_dim(call, 2, past[0], "keys and values");
  s.batch = same_dim(call, s.batch, past[1], "the batch");
  same_dim(call, s.heads, past[2], "the number of heads");
  s.depth = same_dim(call, s.depth, past[4], "the size of a head");
  s.width = same_dim(call, s.width, past[4], "the size of a head");
  read.past = past[3];
  if (!read.shared) return;
  read.capacity = past[3];
  const auto known = constant_integers(call, PastLength);
  read.past = known && known->size() == 1 ? (*known)[0] : Shape::unknown;
  if (known && (known->size() != 1 || read.past < 0 || (past[3] >= 0 && s.length >= 0 && read.past > past[3] - s.length))) {
    fail(ErrorKind::InvalidArgument, title(call), ": past_sequence_length ", read.past, " and ", s.length,
         " keys do not fit into ", past[3]);
  }
}

SelfCall read_self(const OpCall& call) {
  if (call.integer("do_rotary", 0) != 0) {
    fail(ErrorKind::Unsupported, title(call),
         ": do_rotary is not supported, as nothing says which angles are meant; use RotaryEmbedding");
  }
  SelfCall read;
  HeadSizes& s = read.sizes;
  s.heads = s.shared = heads_attribute(call);
  require_rank(call, X, 3);
  const Shape x = call.input(X).shape.has_rank() ? call.input(X).shape : unknown_shape(3);
  s.batch = x[0];
  s.length = x[1];
  const Projection projection = read_projection(call, Weights, Bias, x[2], s.heads);
  s.depth = projection.depth;
  s.width = projection.width;
  read_past(call, read);
  s.total = joined_length(call, read.past, s.length);
  if (!read.shared) read.capacity = s.total;
  return read;
}

std::vector<Type> infer_self(const OpCall& call) {
  require_one_float_dtype(call);
  const SelfCall read = read_self(call);
  const HeadSizes& s = read.sizes;
  check_contrib_bias(call, s, contrib_bias(call, Mask, Added, read.past));
  if (call.wants_output(1)) same_dim(call, s.depth, s.width, "the size of a head of keys and values, which present needs");
  const Shape& x = call.input(X).shape;
  Shape y;
  append_dim(y, s.batch, x, 0);
  append_dim(y, s.length, x, 1);
  y.push_back(s.width < 0 ? Shape::unknown : Shape{s.heads, s.width}.elements());
  Shape present{2};
  append_dim(present, s.batch, x, 0);
  for (const int64_t dim : {s.heads, read.capacity, s.depth}) present.push_back(dim);
  return {TensorType{call.input(X).dtype, y}, TensorType{call.input(X).dtype, present}};
}

struct Cached {
  ValueId all;      // What is attended to.
  ValueId present;  // What is kept.
};
// `at`: 0 for keys, 1 for values.
Cached with_past(Formula& f, const SelfCall& read, ValueId added, int64_t at) {
  if (!f.has(Past)) return {added, added};
  const HeadSizes& s = read.sizes;
  const Attributes along{{"axis", int64_t{2}}};
  const int64_t rows = f.call().input(Past).shape[3];
  const ValueId past = sized(f, sliced(f, f.input(Past), 0, at, at + 1), {s.batch, s.heads, rows, s.depth});
  if (!read.shared) {
    const ValueId all = f.add("Concat", {past, added}, along);
    return {all, all};
  }
  if (read.past < 0) fail(ErrorKind::Unsupported, title(f.call()), ": past_sequence_length is not known before it runs");
  const ValueId all = f.add("Concat", {sliced(f, past, 2, 0, read.past), added}, along);
  return {all, f.add("Concat", {all, sliced(f, past, 2, s.total, rows)}, along)};
}

void expand_self(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const SelfCall read = read_self(call);
  const HeadSizes& s = read.sizes;
  const auto rows = add_projection(f, Weights, Bias, s);
  const ValueId q = split_heads(f, rows[0], s.batch, s.length, s.heads, s.depth);
  const Cached k = with_past(f, read, split_heads(f, rows[1], s.batch, s.length, s.heads, s.depth), 0);
  const Cached v = with_past(f, read, split_heads(f, rows[2], s.batch, s.length, s.heads, s.width), 1);
  const ValueId bias = add_contrib_bias(f, builder, s, contrib_bias(call, Mask, Added, read.past));
  const AttentionRule rule{.sizes = s, .scale = contrib_scale(call, s.depth)};
  const AttendedValues result = add_attention(f, rule, {.q = q, .k = k.all, .v = v.all, .bias = bias});
  f.output(0, join_heads(f, result.y, s.batch, s.heads, s.length, s.width));
  if (!call.wants_output(1)) return;
  const auto one = [&](ValueId x) { return sized(f, x, {1, s.batch, s.heads, read.capacity, s.depth}); };
  f.output(1, f.add("Concat", {one(k.present), one(v.present)}, {{"axis", int64_t{0}}}));
}

}  // namespace

Projection read_projection(const OpCall& call, size_t weights, size_t bias, int64_t input_size, int64_t heads) {
  require_rank(call, weights, 2);
  const Shape shape = call.input(weights).shape.has_rank() ? call.input(weights).shape : unknown_shape(2);
  same_dim(call, input_size, shape[0], "the size of the input");
  int64_t whole = shape[1];
  if (call.has(bias)) {
    require_rank(call, bias, 1);
    if (call.input(bias).shape.has_rank()) whole = same_dim(call, whole, call.input(bias).shape[0], "the size of the projection");
  }
  Projection result;
  const std::vector<int64_t> sizes = call.integers("qkv_hidden_sizes");
  if (sizes.empty()) {
    result.depth = result.width = per_head(call, whole, 3 * heads);
    return result;
  }
  const bool fits = sizes.size() == 3 && sizes[0] > 0 && sizes[2] > 0 && sizes[0] == sizes[1] && sizes[0] < (int64_t{1} << 40) &&
                    sizes[2] < (int64_t{1} << 40) && (whole < 0 || whole == 2 * sizes[0] + sizes[2]);
  if (!fits) fail(ErrorKind::InvalidModel, title(call), ": qkv_hidden_sizes do not fit weights of shape ", shape);
  result.depth = per_head(call, sizes[0], heads);
  result.width = per_head(call, sizes[2], heads);
  return result;
}

std::array<ValueId, 3> add_projection(Formula& f, size_t weights, size_t bias, const HeadSizes& s) {
  ValueId rows = f.add("MatMul", {f.input(0), f.input(weights)});
  if (f.has(bias)) rows = f.sum(rows, f.input(bias));
  const int64_t keys = times(s.heads, s.depth);
  const int64_t values = times(s.heads, s.width);
  return {sliced(f, rows, -1, 0, keys), sliced(f, rows, -1, keys, 2 * keys), sliced(f, rows, -1, 2 * keys, 2 * keys + values)};
}

void add_self_attention_ops(OpSet& ops) {
  Op op;
  op.name = "com.microsoft:Attention";
  op.summary = "An input projected to queries, keys and values, and their attention by heads, with masks and a cache.";
  const auto& t = float_types();
  op.inputs = {required("input", t),
               required("weights", t),
               optional("bias", t),
               optional("mask_index", {DType::I32}),
               optional("past", t),
               optional("attention_bias", t),
               optional("past_sequence_length", {DType::I32})};
  op.outputs = {required("output", t), optional("present", t)};
  op.attributes = {{"num_heads", int64_t{0}},
                   {"qkv_hidden_sizes", std::vector<int64_t>()},
                   {"mask_filter_value", -10000.0F},
                   {"scale", 0.0F},
                   {"unidirectional", int64_t{0}},
                   {"do_rotary", int64_t{0}},
                   {"past_present_share_buffer", int64_t{0}},
                   {"rotary_embedding_dim", int64_t{0}}};
  op.infer = infer_self;
  op.reference = run_expansion;
  op.expand = expand_self;
  op.cost = [](const OpCall& call) {
    const HeadSizes s = read_self(call).sizes;
    return Cost{attention_flop(s) + 2 * elements_or_zero(call.input(Weights).shape) * elements_or_zero(Shape{s.batch, s.length}),
                bytes_moved(call)};
  };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  op.cases = {
      "T[2,4,6]~small T[6,24]~small! T[24]~small! num_heads=2",
      "T[2,4,6]~small T[6,24]~small! - num_heads=2 scale=0.25,0.0",
      "T[2,4,6]~small T[6,22]~small! T[22]~small! num_heads=2 qkv_hidden_sizes=[8,8,6]",
      "T[2,4,6]~small T[6,24]~small! T[24]~small! i32[2]{2,4} num_heads=2",
      "T[2,4,6]~small T[6,24]~small! T[24]~small! i32[4]{4,3,1,0} num_heads=2",
      "T[2,4,6]~small T[6,24]~small! T[24]~small! i32[8]{3,4,0,3,6,0,3,8} num_heads=2",
      "T[2,4,6]~small T[6,24]~small! T[24]~small! i32[2,4]{1,1,0,0,1,1,1,1} num_heads=2 unidirectional=0,1",
      "T[2,4,6]~small T[6,24]~small! T[24]~small! i32[2,4,4]~unit num_heads=2 mask_filter_value=-1000.0",
      "T[2,4,6]~small T[6,24]~small! T[24]~small! i32[2,1,7,7]~unit num_heads=2",
      "T[2,4,6]~small T[6,24]~small! T[24]~small! - - T[1,2,4,4]~small num_heads=2 unidirectional=1 outputs=2",
      "T[2,2,6]~small T[6,24]~small! T[24]~small! i32[2,5]~unit T[2,2,2,3,4]~small num_heads=2 unidirectional=0,1 outputs=2",
      "T[2,2,6]~small T[6,24]~small! T[24]~small! - T[2,2,2,3,4]~small T[2,1,2,5]~small num_heads=2 unidirectional=1 outputs=2",
      "T[2,2,6]~small T[6,24]~small! T[24]~small! i32[2,1,6,6]~unit T[2,2,2,3,4]~small num_heads=2 outputs=2",
      "T[2,1,6]~small T[6,24]~small! T[24]~small! - T[2,2,2,7,4]~small - i32[1]{3} num_heads=2 past_present_share_buffer=1 "
      "unidirectional=1 outputs=2",
      "T[0,4,6] T[6,24]~small! T[24]~small! num_heads=2",
      "T[1,9,64]~small T[64,192]~small! T[192]~small! i32[1]{7} num_heads=4",
  };
  ops.add(std::move(op));
  add_packed_attention_ops(ops);
}

}  // namespace unmoor
