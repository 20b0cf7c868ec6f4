#include "unmoor/ops/group_query.h"

#include "unmoor/base/error.h"

namespace unmoor::group_query {

namespace {

Shape shape_of(const OpCall& call, size_t i, size_t rank) {
  require_rank(call, i, rank);
  return call.input(i).shape.has_rank() ? call.input(i).shape : unknown_shape(rank);
}

void read_rows(const OpCall& call, Call& read) {
  HeadSizes& s = read.sizes;
  const Shape query = shape_of(call, Query, 3);
  s.batch = query[0];
  s.length = query[1];
  if (call.has(Key) != call.has(Value))
    fail(ErrorKind::InvalidModel, title(call), ": key and value go together, but only one is given");
  read.packed = !call.has(Key);
  s.depth = per_head(call, query[2], read.packed ? s.heads + 2 * s.shared : s.heads);
  read.added = s.length;
  if (read.packed) return;
  const Shape key = shape_of(call, Key, 3);
  const Shape value = shape_of(call, Value, 3);
  s.batch = same_dim(call, s.batch, same_dim(call, key[0], value[0], "the batch"), "the batch");
  read.added = same_dim(call, key[1], value[1], "the number of keys");
  s.depth = same_dim(call, s.depth, per_head(call, key[2], s.shared), "the size of a head");
  s.depth = same_dim(call, s.depth, per_head(call, value[2], s.shared), "the size of a head");
  if (read.added != 0) read.added = s.length = same_dim(call, s.length, read.added, "the number of queries and keys");
  if (read.added == 0 && !call.has(PastKey)) fail(ErrorKind::InvalidModel, title(call), ": it has neither keys nor past ones");
}

Code code_of(const OpCall& call) {
  const std::string key = call.text("k_quant_type", "NONE");
  const std::string value = call.text("v_quant_type", "NONE");
  for (const std::string& type : {key, value}) {
    if (type != "NONE" && type != "PER_TENSOR" && type != "PER_CHANNEL") {
      fail(ErrorKind::InvalidModel, title(call), ": a cache is quantised '", type, "', not NONE, PER_TENSOR or PER_CHANNEL");
    }
  }
  if ((key == "NONE") != (value == "NONE"))
    fail(ErrorKind::InvalidModel, title(call), ": only one of keys and values is quantised");
  if (key == "NONE") return Code::Plain;
  if (!call.has(PastKey) || !call.has(KeyScale) || !call.has(ValueScale)) {
    fail(ErrorKind::InvalidModel, title(call), ": a quantised cache needs past_key, past_value, k_scale and v_scale");
  }
  const DType dtype = call.input(PastKey).dtype;
  const int64_t bits = call.integer("kv_cache_bit_width", 8);
  if (dtype == DType::F8E4M3FN && bits != 4) return Code::Float8;
  if (dtype == DType::I8 && bits != 4) return Code::Bytes;
  if (dtype == DType::U8 && bits == 4) return Code::HalfBytes;
  fail(ErrorKind::InvalidModel, title(call), ": a cache of ", dtype, " with ", bits, " bits is none that is known");
}

void read_past(const OpCall& call, Call& read) {
  HeadSizes& s = read.sizes;
  if (call.has(PastKey) != call.has(PastValue)) {
    fail(ErrorKind::InvalidModel, title(call), ": past_key and past_value go together, but only one is given");
  }
  read.code = code_of(call);
  if (!call.has(PastKey)) return;
  const bool plain = read.code == Code::Plain;
  for (const size_t i : {size_t{PastKey}, size_t{PastValue}}) {
    const DType wanted = plain ? call.input(Query).dtype : call.input(PastKey).dtype;
    if (call.input(i).dtype != wanted) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", wanted);
    }
  }
  const Shape key = shape_of(call, PastKey, 4);
  const Shape value = shape_of(call, PastValue, 4);
  s.batch = same_dim(call, s.batch, same_dim(call, key[0], value[0], "the batch"), "the batch");
  same_dim(call, s.shared, same_dim(call, key[1], value[1], "the number of key heads"), "the number of key heads");
  read.past = same_dim(call, key[2], value[2], "the size of the cache");
  int64_t depth = same_dim(call, key[3], value[3], "the size of a head");
  if (read.code == Code::HalfBytes && depth >= 0) depth = Shape{2, depth}.elements();
  s.depth = same_dim(call, s.depth, depth, "the size of a head");
}

void read_lengths(const OpCall& call, Call& read) {
  HeadSizes& s = read.sizes;
  for (const size_t i : {size_t{LastKeys}, size_t{QueryLengths}}) {
    if (!call.has(i) || !call.input(i).shape.is_known()) continue;
    same_dim(call, s.batch, call.input(i).shape.elements(), "the batch of seqlens_k or query_seqlens");
  }
  const auto total = constant_integers(call, Total);
  if (total && (total->size() != 1 || (*total)[0] < 1)) {
    fail(ErrorKind::InvalidArgument, title(call), ": total_sequence_length is not one number of 1 or more");
  }
  if (total) read.total = (*total)[0];
  if (total && !read.slides && s.length > read.total) {
    fail(ErrorKind::InvalidArgument, title(call), ": total_sequence_length ", read.total, " is less than the ", s.length,
         " queries");
  }
  if (read.slides || read.past < 0) {
    read.capacity = read.past;
  } else if (read.total >= 0) {
    read.capacity = std::max(read.total, read.past);
  }
}

void read_window(const OpCall& call, Call& read) {
  read.window = call.integer("local_window_size", -1);
  read.causal = call.integer("causal", 1) != 0;
  read.slides = call.integer("sliding_window_cache", 0) != 0;
  if (read.window < -1 || read.window == 0) {
    fail(ErrorKind::InvalidModel, title(call), ": local_window_size is ", read.window, ", not -1 or 1 and more");
  }
  if (!read.causal && read.window > 0) fail(ErrorKind::InvalidModel, title(call), ": local_window_size needs causal attention");
  if (!read.slides) return;
  if (read.window < 1 || !call.has(PastKey)) {
    fail(ErrorKind::InvalidModel, title(call), ": sliding_window_cache needs local_window_size, past_key and past_value");
  }
  if (read.past >= 0 && read.past < read.window) {
    fail(ErrorKind::InvalidArgument, title(call), ": a cache of ", read.past, " rows is smaller than the window of ",
         read.window);
  }
}

void read_rotation(const OpCall& call, Call& read) {
  if (call.integer("do_rotary", 0) == 0) return;
  if (!call.has(Cos) || !call.has(Sin)) fail(ErrorKind::InvalidModel, title(call), ": do_rotary needs cos_cache and sin_cache");
  const int64_t half =
      same_dim(call, shape_of(call, Cos, 2)[1], shape_of(call, Sin, 2)[1], "the angles of cos_cache and sin_cache");
  const int64_t depth = read.sizes.depth;
  if (depth >= 0 && half > depth / 2) {
    fail(ErrorKind::InvalidModel, title(call), ": ", half, " angles are more than a head of ", depth, " has pairs");
  }
  read.rotation = {half, call.integer("rotary_interleaved", 0) != 0};
  if (call.has(Positions)) same_dim(call, read.sizes.batch, shape_of(call, Positions, 2)[0], "the batch of position_ids");
}

void check_others(const OpCall& call, const Call& read) {
  const HeadSizes& s = read.sizes;
  for (const size_t i :
       {size_t{Key}, size_t{Value}, size_t{Cos}, size_t{Sin}, size_t{Added}, size_t{Sinks}, size_t{QueryNorm}, size_t{KeyNorm}}) {
    if (call.has(i) && call.input(i).dtype != call.input(Query).dtype) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", call.input(Query).dtype);
    }
  }
  if (call.has(Added)) require_broadcast_to(call, Added, Shape{s.batch, s.heads, s.length, read.total});
  if (call.has(Sinks)) same_dim(call, s.heads, shape_of(call, Sinks, 1)[0], "the number of heads of head_sink");
  if (call.has(QueryNorm) != call.has(KeyNorm)) {
    fail(ErrorKind::InvalidModel, title(call), ": q_norm_weight and k_norm_weight go together, but only one is given");
  }
  for (const size_t i : {size_t{QueryNorm}, size_t{KeyNorm}}) {
    if (call.has(i)) same_dim(call, s.depth, shape_of(call, i, 1)[0], "the size of a head");
  }
  for (const size_t i : {size_t{KeyScale}, size_t{ValueScale}}) {
    if (call.has(i)) require_broadcast_to(call, i, Shape{s.batch, s.shared, Shape::unknown, s.depth});
  }
  if (read.output < 0 || read.output > 2)
    fail(ErrorKind::InvalidModel, title(call), ": qk_output is ", read.output, ", not 0 to 2");
}

}  // namespace

Call read(const OpCall& call) {
  Call result;
  HeadSizes& s = result.sizes;
  s.heads = heads_attribute(call);
  s.shared = heads_attribute(call, "kv_num_heads");
  require_groups(call, s);
  result.output = call.integer("qk_output", 0);
  read_rows(call, result);
  read_past(call, result);
  s.width = s.depth;
  read_window(call, result);
  read_lengths(call, result);
  read_rotation(call, result);
  check_others(call, result);
  return result;
}

AttentionRule rule(const OpCall& call, const Call& read) {
  AttentionRule result{.sizes = read.sizes, .scale = contrib_scale(call, read.sizes.depth), .softcap = call.real("softcap", 0)};
  if (!(result.softcap >= 0)) fail(ErrorKind::InvalidModel, title(call), ": softcap is ", result.softcap, ", not 0 or more");
  return result;
}

bool is_prompt(const OpCall& call, const Call& read) { return !call.has(QueryLengths) && read.total == read.sizes.length; }

namespace {

std::vector<Type> infer(const OpCall& call) {
  const Call found = read(call);
  rule(call, found);
  const HeadSizes& s = found.sizes;
  const DType dtype = call.input(Query).dtype;
  const Shape& query = call.input(Query).shape;
  Shape y;
  append_dim(y, s.batch, query, 0);
  append_dim(y, s.length, query, 1);
  y.push_back(s.depth < 0 ? Shape::unknown : Shape{s.heads, s.depth}.elements());
  Shape cache;
  append_dim(cache, s.batch, query, 0);
  cache.push_back(s.shared);
  cache.push_back(found.capacity);
  cache.push_back(found.code == Code::HalfBytes && s.depth >= 0 ? s.depth / 2 : s.depth);
  Shape scores;
  append_dim(scores, s.batch, query, 0);
  for (const int64_t dim : {s.heads, s.length, found.total}) scores.push_back(dim);
  const DType held = call.has(PastKey) ? call.input(PastKey).dtype : dtype;
  return {TensorType{dtype, y}, TensorType{held, cache}, TensorType{held, cache}, TensorType{dtype, scores}};
}

}  // namespace

}  // namespace unmoor::group_query

namespace unmoor {

void add_group_query_ops(OpSet& ops) {
  using group_query::read;
  Op op;
  op.name = "com.microsoft:GroupQueryAttention";
  op.summary = "Attention in which queries share key heads, over a cache of keys and values that grows, slides or is quantised.";
  const auto& t = float_types();
  std::vector<DType> held = t;
  held.insert(held.end(), {DType::U8, DType::I8, DType::F8E4M3FN});
  const std::vector<DType> i32{DType::I32};
  op.inputs = {required("query", t),
               optional("key", t),
               optional("value", t),
               optional("past_key", held),
               optional("past_value", held),
               required("seqlens_k", i32),
               required("total_sequence_length", i32),
               optional("cos_cache", t),
               optional("sin_cache", t),
               optional("position_ids", {DType::I64}),
               optional("attention_bias", t),
               optional("head_sink", t),
               optional("k_scale", {DType::F32}),
               optional("v_scale", {DType::F32}),
               optional("q_norm_weight", t),
               optional("k_norm_weight", t),
               optional("query_seqlens", i32)};
  op.outputs = {required("output", t), optional("present_key", held), optional("present_value", held), optional("output_qk", t)};
  op.attributes = {{"num_heads", int64_t{0}},
                   {"kv_num_heads", int64_t{0}},
                   {"scale", 0.0F},
                   {"softcap", 0.0F},
                   {"local_window_size", int64_t{-1}},
                   {"causal", int64_t{1}},
                   {"do_rotary", int64_t{0}},
                   {"rotary_interleaved", int64_t{0}},
                   {"smooth_softmax", int64_t{-1}},
                   {"sliding_window_cache", int64_t{0}},
                   {"qk_output", int64_t{0}},
                   {"k_quant_type", std::string("NONE")},
                   {"v_quant_type", std::string("NONE")},
                   {"kv_cache_bit_width", int64_t{8}},
                   {"qk_norm_epsilon", 1e-6F}};
  op.infer = group_query::infer;
  op.reference = group_query::reference;
  op.expand = group_query::expand;
  op.cost = [](const OpCall& call) {
    const group_query::Call found = read(call);
    HeadSizes s = found.sizes;
    s.total = found.total;
    return Cost{attention_flop(s), bytes_moved(call)};
  };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  op.cases = {
      // The first prompt, whole and padded.
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small - - i32[2]{2,2} i32[]{3} num_heads=4 kv_num_heads=2 outputs=3",
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small - - i32[2]{1,2} i32[]{3} num_heads=4 kv_num_heads=2 outputs=3",
      "T[2,3,64]~small - - - - i32[2]{2,2} i32[1]{3} num_heads=4 kv_num_heads=2 scale=0.25 outputs=1",
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small T[2,2,0,8] T[2,2,0,8] i32[2]{2,2} i32[]{3} num_heads=4 kv_num_heads=2 "
      "outputs=3",
      // One token more, into a cache that grows and one that has room; several.
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small T[2,2,5,8]~small T[2,2,5,8]~small i32[2]{5,5} i32[]{6} num_heads=4 "
      "kv_num_heads=2 outputs=3",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small T[2,2,8,8]~small T[2,2,8,8]~small i32[2]{4,6} i32[]{7} num_heads=4 "
      "kv_num_heads=2 outputs=3",
      "T[1,3,32]~small T[1,3,16]~small T[1,3,16]~small T[1,2,5,8]~small T[1,2,5,8]~small i32[1]{7} i32[]{8} num_heads=4 "
      "kv_num_heads=2 outputs=3",
      // Chunks with padding behind, one of them all padding; no new keys.
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small T[2,2,9,8]~small T[2,2,9,8]~small i32[2]{5,7} i32[]{9} - - - - - - - - - "
      "i32[2]{2,3} num_heads=4 kv_num_heads=2 outputs=3",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small T[2,2,9,8]~small T[2,2,9,8]~small i32[2]{5,7} i32[]{9} - - - - - - - - - "
      "i32[2]{0,1} num_heads=4 kv_num_heads=2 outputs=3",
      "T[1,3,32]~small T[1,0,16] T[1,0,16] T[1,2,8,8]~small T[1,2,8,8]~small i32[1]{4} i32[]{5} num_heads=4 kv_num_heads=2 "
      "outputs=3",
      // What scores go through.
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small - - i32[2]{1,2} i32[]{3} num_heads=4 kv_num_heads=2 softcap=1.5 "
      "causal=0,1",
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small - - i32[2]{2,2} i32[]{3} num_heads=4 kv_num_heads=2 local_window_size=1,2",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small T[2,2,8,8]~small T[2,2,8,8]~small i32[2]{4,6} i32[]{7} num_heads=4 "
      "kv_num_heads=2 local_window_size=3 smooth_softmax=1",
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small - - i32[2]{2,2} i32[]{3} - - - - T[4]~small num_heads=4 kv_num_heads=2",
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small - - i32[2]{2,2} i32[]{3} - - - T[2,1,3,3]~small num_heads=4 "
      "kv_num_heads=2 "
      "qk_output=0,1,2 outputs=4",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small T[2,2,8,8]~small T[2,2,8,8]~small i32[2]{4,6} i32[]{7} - - - "
      "T[1,4,1,7]~small "
      "num_heads=4 kv_num_heads=2 qk_output=1,2 local_window_size=3 outputs=4",
      // Rotated: by place, by given places, in part.
      "T[2,3,64]~small T[2,3,32]~small T[2,3,32]~small - - i32[2]{1,2} i32[]{3} T[16,8]~small T[16,8]~small num_heads=4 "
      "kv_num_heads=2 "
      "do_rotary=1 rotary_interleaved=0,1 outputs=3",
      "T[2,1,64]~small T[2,1,32]~small T[2,1,32]~small T[2,2,8,16]~small T[2,2,8,16]~small i32[2]{4,6} i32[]{7} T[16,8]~small "
      "T[16,8]~small num_heads=4 kv_num_heads=2 do_rotary=1 outputs=3",
      "T[2,3,64]~small T[2,3,32]~small T[2,3,32]~small - - i32[2]{2,2} i32[]{3} T[16,8]~small T[16,8]~small "
      "i64[2,3]{5,3,1,2,7,9} "
      "num_heads=4 kv_num_heads=2 do_rotary=1",
      "T[1,3,64]~small T[1,3,32]~small T[1,3,32]~small T[1,2,8,16]~small T[1,2,8,16]~small i32[1]{6} i32[]{7} T[16,8]~small "
      "T[16,8]~small i64[1,3]{5,3,1} num_heads=4 kv_num_heads=2 do_rotary=1 outputs=3",
      "T[2,3,256]~small - - - - i32[2]{2,2} i32[]{3} T[16,8]~small T[16,8]~small num_heads=4 kv_num_heads=2 do_rotary=1 "
      "outputs=3",
      // Normalized heads.
      "T[2,3,32]~small T[2,3,16]~small T[2,3,16]~small - - i32[2]{2,2} i32[]{3} - - - - - - - T[8]~small T[8]~small num_heads=4 "
      "kv_num_heads=2 outputs=3",
      // A cache that slides: filling, evicting, more at once than it holds.
      "T[1,2,32]~small T[1,2,16]~small T[1,2,16]~small T[1,2,6,8]~small T[1,2,6,8]~small i32[1]{4} i32[]{5} num_heads=4 "
      "kv_num_heads=2 "
      "local_window_size=4 sliding_window_cache=1 outputs=3",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small T[2,2,6,8]~small T[2,2,6,8]~small i32[2]{6,19} i32[]{20} num_heads=4 "
      "kv_num_heads=2 local_window_size=4 sliding_window_cache=1 outputs=3",
      "T[1,8,32]~small T[1,8,16]~small T[1,8,16]~small T[1,2,6,8]~small T[1,2,6,8]~small i32[1]{18} i32[]{19} num_heads=4 "
      "kv_num_heads=2 local_window_size=6 sliding_window_cache=1 qk_output=2 outputs=4",
      // Quantised caches.
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small i8[2,2,8,8] i8[2,2,8,8] i32[2]{4,6} i32[]{7} - - - - - f32[1]{0.05} "
      "f32[1]{0.03} "
      "num_heads=4 kv_num_heads=2 k_quant_type=PER_TENSOR v_quant_type=PER_TENSOR outputs=3",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small i8[2,2,6,8] i8[2,2,6,8] i32[2]{6,6} i32[]{7} - - - - - "
      "f32[1,2,1,8]~positive "
      "f32[1,2,1,8]~positive num_heads=4 kv_num_heads=2 k_quant_type=PER_CHANNEL v_quant_type=PER_CHANNEL outputs=3",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small u8[2,2,8,4] u8[2,2,8,4] i32[2]{4,6} i32[]{7} - - - - - f32[1]{0.5} "
      "f32[1]{0.25} "
      "num_heads=4 kv_num_heads=2 k_quant_type=PER_TENSOR v_quant_type=PER_TENSOR kv_cache_bit_width=4 outputs=3",
      "T[2,1,32]~small T[2,1,16]~small T[2,1,16]~small f8e4m3fn[2,2,8,8]~small f8e4m3fn[2,2,8,8]~small i32[2]{4,6} i32[]{7} - - "
      "- - - "
      "f32[1]{0.5} f32[1]{2.0} num_heads=4 kv_num_heads=2 k_quant_type=PER_TENSOR v_quant_type=PER_TENSOR outputs=3",
      "T[0,3,32] T[0,3,16] T[0,3,16] - - i32[0] i32[]{3} num_heads=4 kv_num_heads=2 outputs=3",
  };
  ops.add(std::move(op));
}

}  // namespace unmoor
