#include "unmoor/base/error.h"
#include "unmoor/ops/contrib_attention.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/run_graph.h"

// com.microsoft's attention over sequences without their padding: rows of tokens, of which token_offset says where they were.
namespace unmoor {

namespace {

struct PackedPorts {
  size_t offsets, lengths, added;
};
constexpr PackedPorts self_ports{3, 4, 5};   // PackedAttention: input, weights, bias before them.
constexpr PackedPorts heads_ports{4, 5, 6};  // PackedMultiHeadAttention: query, key, value, bias before them.

struct PackedCall {
  HeadSizes sizes = {};
  int64_t tokens = Shape::unknown;
};

void read_offsets(const OpCall& call, const PackedPorts& ports, PackedCall& read) {
  HeadSizes& s = read.sizes;
  require_rank(call, ports.offsets, 2);
  require_rank(call, ports.lengths, 1);
  const Shape& offsets = call.input(ports.offsets).shape;
  if (offsets.has_rank()) {
    s.batch = offsets[0];
    s.length = s.total = offsets[1];
  }
  const Shape& lengths = call.input(ports.lengths).shape;
  if (lengths.has_rank() && lengths[0] >= 0) s.batch = same_dim(call, s.batch, lengths[0] - 1, "the batch");
  const bool known = s.batch >= 0 && s.length >= 0 && read.tokens >= 0;
  if (known && Shape{s.batch, s.length}.elements() < read.tokens) {
    fail(ErrorKind::InvalidModel, title(call), ": ", read.tokens, " tokens do not fit into token_offset of shape ", offsets);
  }
  if (call.has(ports.added)) require_broadcast_to(call, ports.added, Shape{s.batch, s.heads, s.length, s.length});
}

PackedCall read_self(const OpCall& call) {
  PackedCall read;
  HeadSizes& s = read.sizes;
  s.heads = s.shared = heads_attribute(call);
  require_rank(call, 0, 2);
  const Shape x = call.input(0).shape.has_rank() ? call.input(0).shape : unknown_shape(2);
  read.tokens = x[0];
  const Projection projection = read_projection(call, 1, 2, x[1], s.heads);
  s.depth = projection.depth;
  s.width = projection.width;
  read_offsets(call, self_ports, read);
  return read;
}

bool is_one_tensor(const OpCall& call) { return !call.has(1); }

void read_rows(const OpCall& call, PackedCall& read) {
  HeadSizes& s = read.sizes;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
    if (!call.has(i)) fail(ErrorKind::InvalidModel, title(call), ": it has keys, but no values");
    require_rank(call, i, 2);
    const Shape& shape = call.input(i).shape;
    if (!shape.has_rank()) continue;
    read.tokens = same_dim(call, read.tokens, shape[0], "the number of tokens");
    const int64_t size = per_head(call, shape[1], s.heads);
    (i == 2 ? s.width : s.depth) = i == 1 ? same_dim(call, s.depth, size, "the size of a head") : size;
  }
}

PackedCall read_heads(const OpCall& call) {
  PackedCall read;
  HeadSizes& s = read.sizes;
  s.heads = s.shared = heads_attribute(call);
  if (is_one_tensor(call)) {
    if (call.has(2)) fail(ErrorKind::InvalidModel, title(call), ": it has values, but no keys");
    require_rank(call, 0, 4);
    const Shape query = call.input(0).shape.has_rank() ? call.input(0).shape : unknown_shape(4);
    read.tokens = query[0];
    same_dim(call, s.heads, query[1], "the number of heads");
    same_dim(call, 3, query[2], "queries, keys and values");
    s.depth = s.width = query[3];
  } else {
    read_rows(call, read);
  }
  if (call.has(3)) {
    require_rank(call, 3, 1);
    const Shape& bias = call.input(3).shape;
    if (bias.has_rank() && s.depth >= 0 && s.width >= 0) {
      same_dim(call, bias[0], projected_size(call, s), "the size of the bias");
    }
  }
  read_offsets(call, heads_ports, read);
  return read;
}

std::vector<Type> infer_packed(const OpCall& call, const PackedCall& read) {
  require_one_float_dtype(call);
  Shape y;
  append_dim(y, read.tokens, call.input(0).shape, 0);
  y.push_back(read.sizes.width < 0 ? Shape::unknown : Shape{read.sizes.heads, read.sizes.width}.elements());
  return {TensorType{call.input(0).dtype, y}};
}

// Attention of rows [tokens, heads·size], which are first put where they were.
void attend_packed(GraphBuilder& builder, Formula& f, const PackedCall& read, const PackedPorts& ports,
                   const std::array<ValueId, 3>& rows) {
  const OpCall& call = f.call();
  const HeadSizes& s = read.sizes;
  const auto long_integers = [&](size_t i) { return f.add("Cast", {f.raw(i)}, {{"to", onnx_number(DType::I64)}}); };
  const ValueId offsets = sliced(f, sized(f, long_integers(ports.offsets), {times(s.batch, s.length)}), 0, 0, read.tokens);
  const auto spread = [&](ValueId x, int64_t size) {
    const ValueId empty = builder.constant(Tensor(TensorType{f.dtype(), Shape{times(s.batch, s.length), times(s.heads, size)}}));
    const ValueId whole = f.add("ScatterND", {empty, sized(f, offsets, {read.tokens, 1}), x});
    return split_heads(f, whole, s.batch, s.length, s.heads, size);
  };
  const ValueId ends = long_integers(ports.lengths);
  const ValueId lengths = f.difference(sliced(f, ends, 0, 1, s.batch + 1), sliced(f, ends, 0, 0, s.batch));
  const ContribBias what = contrib_bias(call, std::nullopt, ports.added, 0);
  const ValueId bias = add_contrib_bias(f, builder, s, what, sized(f, lengths, {s.batch, 1, 1, 1}));
  const AttentionRule rule{.sizes = s, .scale = contrib_scale(call, s.depth)};
  const AttendedValues result = add_attention(
      f, rule, {.q = spread(rows[0], s.depth), .k = spread(rows[1], s.depth), .v = spread(rows[2], s.width), .bias = bias});
  const ValueId y =
      sized(f, join_heads(f, result.y, s.batch, s.heads, s.length, s.width), {times(s.batch, s.length), times(s.heads, s.width)});
  f.output(0, f.add("Gather", {y, offsets}, {{"axis", int64_t{0}}}));
}

void expand_self(GraphBuilder& builder) {
  Formula f(builder);
  const PackedCall read = read_self(f.call());
  attend_packed(builder, f, read, self_ports, add_projection(f, 1, 2, read.sizes));
}

void expand_heads(GraphBuilder& builder) {
  Formula f(builder);
  const PackedCall read = read_heads(f.call());
  const HeadSizes& s = read.sizes;
  const int64_t keys = times(s.heads, s.depth);
  const int64_t values = times(s.heads, s.width);
  std::array<ValueId, 3> rows{};
  const std::array<int64_t, 3> sizes{keys, keys, values};
  int64_t from = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    rows[i] = is_one_tensor(f.call()) ? sized(f, sliced(f, f.input(0), 2, at, at + 1), {read.tokens, keys}) : f.input(i);
    if (f.has(3)) rows[i] = f.sum(rows[i], sliced(f, f.input(3), 0, from, from + sizes[i]));
    from += sizes[i];
  }
  attend_packed(builder, f, read, heads_ports, rows);
}

Op packed(std::string name, std::string summary, PackedCall (*read)(const OpCall&)) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.outputs = {required("output", float_types())};
  op.attributes = {{"num_heads", int64_t{0}}, {"scale", 0.0F}};
  op.infer = [read](const OpCall& call) { return infer_packed(call, read(call)); };
  op.reference = run_expansion;
  op.cost = [read](const OpCall& call) { return Cost{attention_flop(read(call).sizes), bytes_moved(call)}; };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  return op;
}

}  // namespace

void add_packed_attention_ops(OpSet& ops) {
  const auto& t = float_types();
  const std::vector<DType> i32{DType::I32};
  Op self = packed("com.microsoft:PackedAttention", "com.microsoft's Attention of tokens without padding.", read_self);
  self.inputs = {required("input", t),
                 required("weights", t),
                 required("bias", t),
                 required("token_offset", i32),
                 required("cumulative_sequence_length", i32),
                 optional("attention_bias", t)};
  self.attributes["qkv_hidden_sizes"] = std::vector<int64_t>();
  self.expand = expand_self;
  // The document's example: sequences of 1, 2 and 4 tokens.
  self.cases = {
      "T[7,6]~small T[6,24]~small! T[24]~small! i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2",
      "T[7,6]~small T[6,24]~small! T[24]~small! i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2 scale=0.25",
      "T[7,6]~small T[6,22]~small! T[22]~small! i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2 "
      "qkv_hidden_sizes=[8,8,6]",
      "T[7,6]~small T[6,24]~small! T[24]~small! i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} T[1,2,4,4]~small num_heads=2",
      "T[4,6]~small T[6,24]~small! T[24]~small! i32[2,2]{0,1,2,3} i32[3]{0,2,4} T[2,1,2,2]~small num_heads=2",
      "T[2,6]~small T[6,12]~small! T[12]~small! i32[2,3]{3,4,0,1,2,5} i32[3]{0,0,2} num_heads=1",
      "T[1,6]~small T[6,12]~small! T[12]~small! i32[1,1]{0} i32[2]{0,1} num_heads=1",
      "T[0,6] T[6,12]~small! T[12]~small! i32[1,2]{0,1} i32[2]{0,0} num_heads=1",
      "T[5,16]~small T[16,48]~small! T[48]~small! i32[2,4]{0,1,2,4,5,3,6,7} i32[3]{0,3,5} num_heads=4",
      "T[3,4]~small T[4,36]~small! T[36]~small! i32[1,4]{0,1,2,3} i32[2]{0,3} num_heads=3 scale=1.0",
  };
  ops.add(std::move(self));

  Op heads = packed("com.microsoft:PackedMultiHeadAttention", "com.microsoft's MultiHeadAttention of tokens without padding.",
                    read_heads);
  heads.inputs = {required("query", t),          optional("key", t),
                  optional("value", t),          optional("bias", t),
                  required("token_offset", i32), required("cumulative_sequence_length", i32),
                  optional("attention_bias", t)};
  heads.attributes["mask_filter_value"] = -10000.0F;
  heads.expand = expand_heads;
  heads.cases = {
      "T[7,8]~small T[7,8]~small T[7,8]~small - i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2",
      "T[7,8]~small T[7,8]~small T[7,6]~small T[22]~small i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2",
      "T[7,2,3,4]~small - - - i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2",
      "T[7,2,3,4]~small - - T[24]~small i32[3,4]{0,4,5,8,9,10,11,1,2,3,6,7} i32[4]{0,1,3,7} num_heads=2 scale=0.5",
      "T[4,8]~small T[4,8]~small T[4,8]~small - i32[2,2]{0,1,2,3} i32[3]{0,2,4} T[1,1,2,2]~small num_heads=2",
      "T[3,8]~small T[3,8]~small T[3,8]~small - i32[2,2]{0,1,2,3} i32[3]{0,2,3} T[2,2,2,2]~small num_heads=2 "
      "mask_filter_value=-20.0",
      "T[1,8]~small T[1,8]~small T[1,8]~small - i32[1,1]{0} i32[2]{0,1} num_heads=1",
      "T[0,8] T[0,8] T[0,8] - i32[1,2]{0,1} i32[2]{0,0} num_heads=2",
      "T[2,8]~small T[2,8]~small T[2,8]~small - i32[2,3]{3,4,0,1,2,5} i32[3]{0,0,2} num_heads=2",
      "T[5,16]~small T[5,16]~small T[5,16]~small T[48]~small i32[2,4]{0,1,2,4,5,3,6,7} i32[3]{0,3,5} num_heads=4",
  };
  ops.add(std::move(heads));
}

}  // namespace unmoor
