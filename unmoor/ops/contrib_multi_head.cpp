#include "unmoor/ops/multi_head.h"
#include "unmoor/ops/run_graph.h"

namespace unmoor {

namespace {

constexpr MultiHeadPorts multi_head_ports{
    .bias = 3, .mask = 4, .attention_bias = 5, .past_key = 6, .past_value = 7, .past_length = 8, .indirection = 9};
constexpr MultiHeadPorts decoder_ports{.bias = 10,
                                       .mask = 3,
                                       .attention_bias = 4,
                                       .past_key = 5,
                                       .past_value = 6,
                                       .past_length = 7,
                                       .beam_width = 8,
                                       .indirection = 9};

ContribBias bias_of(const OpCall& call, const MultiHeadCall& read, const MultiHeadPorts& ports) {
  return contrib_bias(call, ports.mask, ports.attention_bias, read.past);
}

std::vector<Type> infer_multi_head(const OpCall& call, const MultiHeadPorts& ports, bool decodes) {
  require_one_float_dtype(call);
  const MultiHeadCall read = read_multi_head(call, ports, decodes);
  const HeadSizes& s = read.sizes;
  check_contrib_bias(call, s, bias_of(call, read, ports));
  if (decodes && s.length >= 0) same_dim(call, 1, s.length, "the number of queries");
  const Shape& query = call.input(ports.query).shape;
  Shape y;
  append_dim(y, s.batch, query, 0);
  append_dim(y, s.length, query, 1);
  y.push_back(s.width < 0 ? Shape::unknown : Shape{s.heads, s.width}.elements());
  Shape keys;
  append_dim(keys, s.batch, query, 0);
  for (const int64_t dim : {s.heads, read.capacity, s.depth}) keys.push_back(dim);
  Shape values = keys;
  values.set(3, s.width);
  Shape scores;
  append_dim(scores, s.batch, query, 0);
  for (const int64_t dim : {s.heads, s.length, s.total}) scores.push_back(dim);
  const DType dtype = call.input(ports.query).dtype;
  return {TensorType{dtype, y}, TensorType{dtype, keys}, TensorType{dtype, values}, TensorType{dtype, scores}};
}

void expand_multi_head(GraphBuilder& builder, const MultiHeadPorts& ports, bool decodes) {
  Formula f(builder);
  const OpCall& call = f.call();
  const MultiHeadCall read = read_multi_head(call, ports, decodes);
  const HeadSizes& s = read.sizes;
  const MultiHeadValues values = multi_head_values(f, read, ports);
  const ValueId bias = add_contrib_bias(f, builder, s, bias_of(call, read, ports));
  const AttentionRule rule{.sizes = s, .scale = contrib_scale(call, s.depth)};
  // The fourth output is the scores with all that was added, as ONNX Runtime 1.32 gives.
  const auto keep = call.wants_output(3) ? std::optional(AttentionStage::Biased) : std::nullopt;
  const AttendedValues result = add_attention(f, rule, {.q = values.q, .k = values.k, .v = values.v, .bias = bias}, keep);
  f.output(0, join_heads(f, result.y, s.batch, s.heads, s.length, s.width));
  if (call.wants_output(1)) f.output(1, values.present_key);
  if (call.wants_output(2)) f.output(2, values.present_value);
  if (call.wants_output(3)) f.output(3, result.stage);
}

Op contrib_attention(std::string name, std::string summary, const MultiHeadPorts& ports, bool decodes) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.outputs = {required("output", float_types()), optional("present_key", float_types()),
                optional("present_value", float_types()), optional("qk", float_types())};
  op.infer = [&ports, decodes](const OpCall& call) { return infer_multi_head(call, ports, decodes); };
  op.reference = run_expansion;
  op.expand = [&ports, decodes](GraphBuilder& builder) { expand_multi_head(builder, ports, decodes); };
  op.cost = [&ports, decodes](const OpCall& call) {
    return Cost{attention_flop(read_multi_head(call, ports, decodes).sizes), bytes_moved(call)};
  };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  return op;
}

Op multi_head() {
  Op op = contrib_attention("com.microsoft:MultiHeadAttention",
                            "Attention by heads over projected inputs, with masks and a cache.", multi_head_ports, false);
  const auto& t = float_types();
  op.inputs = {required("query", t),
               optional("key", t),
               optional("value", t),
               optional("bias", t),
               optional("key_padding_mask", {DType::I32}),
               optional("attention_bias", t),
               optional("past_key", t),
               optional("past_value", t),
               optional("past_sequence_length", {DType::I32}),
               optional("cache_indirection", {DType::I32})};
  op.attributes = {{"num_heads", int64_t{0}}, {"mask_filter_value", -10000.0F}, {"scale", 0.0F}, {"unidirectional", int64_t{0}}};
  op.cases = {
      "T[2,3,8]~small T[2,5,8]~small T[2,5,8]~small num_heads=2",
      "T[2,3,8]~small T[2,5,8]~small T[2,5,6]~small T[22]~small num_heads=2 scale=0.0,0.25",
      "T[2,4,8]~small T[2,4,8]~small T[2,4,8]~small num_heads=2 unidirectional=1 outputs=3",
      // Every form of the mask, one that leaves nothing among them.
      "T[2,3,8]~small T[2,5,8]~small T[2,5,8]~small - i32[2]{3,5} num_heads=2",
      "T[2,3,8]~small T[2,5,8]~small T[2,5,8]~small - i32[8]{3,5,0,3,6,0,3,8} num_heads=2",
      "T[2,3,8]~small T[2,5,8]~small T[2,5,8]~small - i32[2,5]{1,0,2,-1,0,1,1,1,0,0} num_heads=2 "
      "mask_filter_value=-10000,-3.4e38",
      "T[2,3,8]~small T[2,5,8]~small T[2,5,8]~small - i32[2,3,5]~unit num_heads=2",
      "T[1,2,8]~small T[1,3,8]~small T[1,3,8]~small - i32[1,3]{0,0,0} num_heads=2 mask_filter_value=-10",
      "T[2,3,8]~small T[2,3,8]~small T[2,3,8]~small - i32[2,3]{1,0,1,1,1,0} T[1,2,3,3]~small num_heads=2 unidirectional=0,1 outputs=4",
      "T[2,3,8]~small T[2,5,8]~small T[2,5,8]~small - - T[2,1,3,5]~small num_heads=2",
      // Other layouts.
      "T[2,3,2,3,4]~small num_heads=2",
      "T[2,3,2,3,4]~small - - T[24]~small num_heads=2",
      "T[2,3,8]~small T[2,5,2,2,4]~small - T[24]~small num_heads=2",
      "T[2,3,8]~small T[2,2,5,4]~small T[2,2,5,4]~small T[24]~small num_heads=2 outputs=3",
      // A cache, growing and of one size, and one of a beam search.
      "T[2,2,8]~small T[2,2,8]~small T[2,2,8]~small T[24]~small i32[2,5]~unit - T[2,2,3,4]~small T[2,2,3,4]~small num_heads=2 "
      "outputs=3",
      "T[2,2,8]~small T[2,2,8]~small T[2,2,8]~small - - - T[2,2,3,4]~small T[2,2,3,4]~small num_heads=2 unidirectional=1 "
      "outputs=3",
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small - - - T[2,2,6,4]~small T[2,2,6,4]~small i32[1]{3} num_heads=2 outputs=4",
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small - - - T[2,2,4,4]~small T[2,2,4,4]~small i32[1]{3} "
      "i32[1,2,4]{0,1,1,0,1,0,1,1} num_heads=2 outputs=3",
      "T[0,3,8] T[0,5,8] T[0,5,8] num_heads=2",
      "T[1,16,64]~small T[1,16,64]~small T[1,16,64]~small num_heads=4 unidirectional=1",
  };
  return op;
}

Op decoder_multi_head() {
  Op op = contrib_attention("com.microsoft:DecoderMaskedMultiHeadAttention",
                            "MultiHeadAttention of one query each, for decoders.", decoder_ports, true);
  const auto& t = float_types();
  const std::vector<DType> i32{DType::I32};
  op.inputs = {required("query", t),
               optional("key", t),
               optional("value", t),
               optional("mask_index", i32),
               optional("attention_bias", t),
               optional("past_key", t),
               optional("past_value", t),
               optional("past_sequence_length", i32),
               optional("beam_width", i32),
               optional("cache_indirection", i32),
               optional("bias", t)};
  op.attributes = {{"num_heads", int64_t{0}},
                   {"mask_filter_value", -10000.0F},
                   {"scale", 0.0F},
                   {"past_present_share_buffer", int64_t{0}},
                   {"output_qk", int64_t{0}}};
  op.cases = {
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small - - T[2,2,6,4]~small T[2,2,6,4]~small i32[1]{3} num_heads=2 "
      "past_present_share_buffer=1 outputs=3",
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small i32[2,4]~unit - T[2,2,6,4]~small T[2,2,6,4]~small i32[1]{3} num_heads=2 "
      "past_present_share_buffer=1 outputs=3",
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small - T[1,2,1,4]~small T[2,2,6,4]~small T[2,2,6,4]~small i32[1]{3} num_heads=2 "
      "past_present_share_buffer=1 output_qk=1 outputs=4",
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small - - T[2,2,6,4]~small T[2,2,6,4]~small i32[1]{0} - - T[24]~small num_heads=2 "
      "past_present_share_buffer=1 outputs=3",
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small - - T[2,2,6,4]~small T[2,2,6,4]~small i32[1]{5} num_heads=2 scale=0.3 "
      "past_present_share_buffer=1 outputs=3",
      "T[4,1,8]~small T[4,1,8]~small T[4,1,8]~small - - T[4,2,5,4]~small T[4,2,5,4]~small i32[1]{3} i32[1]{2} "
      "i32[2,2,5]{0,1,1,0,0,1,0,1,0,0,1,1,0,0,0,0,0,1,0,0} num_heads=2 past_present_share_buffer=1 outputs=3",
      "T[2,1,24]~small - - - - T[2,2,6,4]~small T[2,2,6,4]~small i32[1]{2} num_heads=2 past_present_share_buffer=1 outputs=3",
      "T[2,1,8]~small T[2,1,8]~small T[2,1,8]~small - - T[2,2,3,4]~small T[2,2,3,4]~small num_heads=2 outputs=3",
      "T[2,1,8]~small T[2,2,5,4]~small T[2,2,5,4]~small num_heads=2",
      "T[2,1,8]~small T[2,2,5,4]~small T[2,2,5,4]~small i32[2,5]{1,0,1,1,0,1,1,1,1,1} num_heads=2 mask_filter_value=-20000.0",
      "T[2,1,8]~small T[2,2,5,4]~small T[2,2,5,4]~small - T[2,1,1,5]~small - - - - - T[24]~small num_heads=2",
  };
  return op;
}

}  // namespace

void add_multi_head_ops(OpSet& ops) {
  ops.add(multi_head());
  ops.add(decoder_multi_head());
}

}  // namespace unmoor
