#include <array>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/attention_call.h"
#include "unmoor/ops/contrib_attention.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/fused_attention.h"
#include "unmoor/ops/moving.h"

// ONNX's Attention, in the form of opset 25.
namespace unmoor {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using namespace attention_input;

std::optional<AttentionStage> wanted_stage(const OpCall& call) {
  return call.wants_output(3) ? std::optional(attention_stage(call)) : std::nullopt;
}

std::vector<Type> infer_attention(const OpCall& call) {
  if (call.input(K).dtype != call.input(Q).dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": Q is ", call.input(Q).dtype, " and K ", call.input(K).dtype);
  }
  attention_stage(call);
  attention_window(call, "left_window_size");
  attention_window(call, "right_window_size");
  const AttentionCall read = read_attention(call);
  attention_rule(call, read.sizes);
  const HeadSizes& s = read.sizes;
  const Shape& q = call.input(Q).shape;
  Shape y = Shape::of_unknown_rank();
  if (read.packed) {
    y = Shape();
    append_dim(y, s.batch, q, 0);
    append_dim(y, s.length, q, 1);
    y.push_back(s.heads < 0 || s.width < 0 ? Shape::unknown : Shape{s.heads, s.width}.elements());
  } else if (q.has_rank() || call.input(K).shape.has_rank() || call.input(V).shape.has_rank()) {
    y = Shape();
    append_dim(y, s.batch, q, 0);
    append_dim(y, s.heads, q, 1);
    append_dim(y, s.length, q, 2);
    append_dim(y, s.width, call.input(V).shape, 3);
  }
  const DType dtype = call.input(Q).dtype;
  Shape keys;
  append_dim(keys, s.batch, q, 0);
  for (const int64_t dim : {s.shared, s.total, s.depth}) keys.push_back(dim);
  Shape values = keys;
  values.set(3, s.width);
  Shape scores;
  append_dim(scores, s.batch, q, 0);
  for (const int64_t dim : {s.heads, s.length, s.total}) scores.push_back(dim);
  return {TensorType{dtype, y}, TensorType{dtype, keys}, TensorType{call.input(V).dtype, values}, TensorType{dtype, scores}};
}

// Keys or values of all the past and this call, [batch, shared, total, width].
std::vector<double> with_past(std::span<const Data> in, size_t i, size_t past, const AttentionCall& read, int64_t width) {
  const auto size = [](int64_t dim) { return static_cast<size_t>(dim); };
  const HeadSizes& s = read.sizes;
  std::vector<double> x = doubles(in[i].tensor());
  if (read.packed) x = split_heads(x, size(s.batch), size(read.added), size(s.shared), size(width));
  if (tensor_at(in, past) == nullptr) return x;
  const std::vector<double> before = doubles(in[past].tensor());
  if (x.empty() && before.empty()) return x;
  const auto own = static_cast<std::ptrdiff_t>(read.added * width);
  const auto old = static_cast<std::ptrdiff_t>(read.past * width);
  std::vector<double> all;
  all.reserve(x.size() + before.size());
  for (std::ptrdiff_t row = 0; row < s.batch * s.shared; ++row) {
    all.insert(all.end(), before.begin() + row * old, before.begin() + (row + 1) * old);
    all.insert(all.end(), x.begin() + row * own, x.begin() + (row + 1) * own);
  }
  return all;
}

// Reads a mask as numbers to add: 0 and -infinity for true and false, -infinity behind its last column.
AddBias mask_reader(const Tensor& mask) {
  std::vector<double> values = doubles(mask);
  if (mask.dtype() == DType::Bool) {
    for (double& value : values) value = value != 0 ? 0 : -infinity;
  }
  const std::vector<int64_t> dense = mask.shape().strides();
  std::array<size_t, 4> steps{};
  for (size_t axis = 0; axis < dense.size(); ++axis) {
    steps[axis + 4 - dense.size()] = mask.shape()[axis] == 1 ? 0 : static_cast<size_t>(dense[axis]);
  }
  const auto columns = static_cast<size_t>(mask.shape()[mask.shape().rank() - 1]);
  return [values = std::move(values), steps, columns](size_t b, size_t h, size_t i, std::span<double> row) {
    const size_t first = b * steps[0] + h * steps[1] + i * steps[2];
    for (size_t j = 0; j < row.size(); ++j) row[j] += j < columns ? values[first + j] : -infinity;
  };
}

// The bias of the mask and of what queries may see by their places.
AddBias bias_of(const OpCall& call, std::span<const Data> in, const AttentionCall& read) {
  AddBias mask;
  if (tensor_at(in, Mask) != nullptr) mask = mask_reader(in[Mask].tensor());
  const bool causal = call.integer("is_causal", 0) != 0;
  const auto left = static_cast<double>(attention_window(call, "left_window_size"));
  const auto right = static_cast<double>(attention_window(call, "right_window_size"));
  const std::vector<double> valid = doubles_at(in, Nonpad);
  const HeadSizes& s = read.sizes;
  return [=](size_t b, size_t h, size_t i, std::span<double> row) {
    if (mask) mask(b, h, i, row);
    const double offset = valid.empty() ? static_cast<double>(read.past) : valid[b] - static_cast<double>(s.length);
    const double place = offset + static_cast<double>(i);
    for (size_t j = 0; j < row.size(); ++j) {
      const auto key = static_cast<double>(j);
      const bool shut = (causal && key > place) || (left >= 0 && place - key > left) || (right >= 0 && key - place > right) ||
                        (!valid.empty() && key >= valid[b]);
      if (shut) row[j] += -infinity;
    }
  };
}

// Present keys and values: what was there, bit for bit, and what is new.
void write_present(const OpCall& call, std::span<const Data> in, Outputs& out, const AttentionCall& read, size_t i, size_t past) {
  const size_t to = i == K ? 1 : 2;
  if (!call.wants_output(to)) return;
  Tensor& present = out.allocate(to, call.output(to));
  const Tensor& added = in[i].tensor();
  const Tensor* before = tensor_at(in, past);
  const ElementCopy copy_added(added, present);
  const int64_t width = present.shape()[3];
  for_each_index(present.shape(), [&](int64_t at, const std::vector<int64_t>& index) {
    const int64_t row = index[2] - read.past;
    if (row < 0) return;
    const int64_t from = read.packed ? ((index[0] * read.added + row) * read.sizes.shared + index[1]) * width
                                     : ((index[0] * read.sizes.shared + index[1]) * read.added + row) * width;
    copy_added(from + index[3], at);
  });
  if (before == nullptr) return;
  const ElementCopy copy_before(*before, present);
  for_each_index(before->shape(), [&](int64_t at, const std::vector<int64_t>& index) {
    copy_before(at, ((index[0] * read.sizes.shared + index[1]) * read.sizes.total + index[2]) * width + index[3]);
  });
}

void attention_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto size = [](int64_t dim) { return static_cast<size_t>(dim); };
  const AttentionCall read = read_attention(call);
  const HeadSizes& s = read.sizes;
  std::vector<double> q = doubles(in[Q].tensor());
  if (read.packed) q = split_heads(q, size(s.batch), size(s.length), size(s.heads), size(s.depth));
  const std::vector<double> k = with_past(in, K, PastKey, read, s.depth);
  const std::vector<double> v = with_past(in, V, PastValue, read, s.width);
  Attended result = attend(attention_rule(call, s), q, k, v, bias_of(call, in, read), wanted_stage(call));
  if (read.packed) result.y = join_heads(result.y, size(s.batch), size(s.heads), size(s.length), size(s.width));
  put(call, out, 0, std::span<const double>(result.y));
  write_present(call, in, out, read, K, PastKey);
  write_present(call, in, out, read, V, PastValue);
  if (call.wants_output(3)) put(call, out, 3, std::span<const double>(result.stage));
}

ValueId both(Formula& f, std::string op, ValueId a, ValueId b) {
  return a == no_value ? b : b == no_value ? a : f.add(std::move(op), {a, b});
}

// attn_mask as numbers to add, as long as the keys.
ValueId mask_value(Formula& f, const HeadSizes& s) {
  if (!f.has(Mask)) return no_value;
  const TensorType& type = f.call().input(Mask);
  const ValueId mask = type.dtype == DType::Bool ? shut_out_unless(f, f.raw(Mask)) : f.input(Mask);
  const int64_t missing = s.total - type.shape[type.shape.rank() - 1];
  return missing == 0 ? mask : f.add("Pad", {mask, f.ints({0, missing}), f.number(-infinity), f.ints({-1})});
}

// Whether queries may see keys by their places, broadcasting to [batch, 1, length, total]. no_value: they always may.
ValueId visible(GraphBuilder& builder, Formula& f, const AttentionCall& read) {
  const OpCall& call = f.call();
  const HeadSizes& s = read.sizes;
  const bool causal = call.integer("is_causal", 0) != 0;
  const int64_t left = attention_window(call, "left_window_size");
  const int64_t right = attention_window(call, "right_window_size");
  const ValueId keys = places(builder, 0, s.total, false);
  const ValueId valid = f.has(Nonpad) ? sized(f, f.raw(Nonpad), {s.batch, 1, 1, 1}) : no_value;
  // Queries' places, moved by `by`.
  const auto queries = [&](int64_t by) {
    if (valid == no_value) return places(builder, read.past + by, s.length, true);
    return f.sum(valid, places(builder, by - s.length, s.length, true));
  };
  ValueId seen = no_value;
  if (causal) seen = f.add("LessOrEqual", {keys, queries(0)});
  if (left >= 0) seen = both(f, "And", seen, f.add("GreaterOrEqual", {keys, queries(-left)}));
  if (right >= 0) seen = both(f, "And", seen, f.add("LessOrEqual", {keys, queries(right)}));
  if (valid != no_value) seen = both(f, "And", seen, f.add("Less", {keys, valid}));
  return seen;
}

void expand_attention(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const AttentionCall read = read_attention(call);
  const HeadSizes& s = read.sizes;
  // Keys or values in the file's dtype.
  const auto whole = [&](size_t i, size_t past, int64_t width) {
    const ValueId x = read.packed ? split_heads(f, f.raw(i), s.batch, read.added, s.shared, width) : f.raw(i);
    return f.has(past) ? f.add("Concat", {f.raw(past), x}, {{"axis", int64_t{2}}}) : x;
  };
  const ValueId k = whole(K, PastKey, s.depth);
  const ValueId v = whole(V, PastValue, s.width);
  if (call.wants_output(1)) builder.output(1, k);
  if (call.wants_output(2)) builder.output(2, v);
  const ValueId q = read.packed ? split_heads(f, f.input(Q), s.batch, s.length, s.heads, s.depth) : f.input(Q);
  const ValueId seen = visible(builder, f, read);
  const ValueId bias = both(f, "Add", mask_value(f, s), seen == no_value ? no_value : shut_out_unless(f, seen));
  // A causal mask alone leaves every query its first key.
  const bool has_window = attention_window(call, "left_window_size") >= 0 || attention_window(call, "right_window_size") >= 0;
  const AttendedValues result =
      add_attention(f, attention_rule(call, s), {q, f.wide(k), f.wide(v), bias, f.has(Mask) || f.has(Nonpad) || has_window},
                    wanted_stage(call));
  f.output(0, read.packed ? join_heads(f, result.y, s.batch, s.heads, s.length, s.width) : result.y);
  if (call.wants_output(3)) f.output(3, result.stage);
}

Op attention() {
  Op op;
  op.name = "Attention";
  op.summary = "softmax(scale·Q·Kᵀ, capped, plus bias)·V by heads, with a cache of keys and values.";
  op.inputs = {required("Q", float_types()),
               required("K", float_types()),
               required("V", float_types()),
               optional("attn_mask", plain_types()),
               optional("past_key", float_types()),
               optional("past_value", float_types()),
               optional("nonpad_kv_seqlen", {DType::I64})};
  op.outputs = {required("Y", float_types()), optional("present_key", float_types()), optional("present_value", float_types()),
                optional("qk_matmul_output", float_types())};
  op.attributes = {{"is_causal", int64_t{0}},
                   {"softcap", 0.0F},
                   {"left_window_size", int64_t{-1}},
                   {"right_window_size", int64_t{-1}},
                   {"qk_matmul_output_mode", int64_t{0}}};
  op.infer = infer_attention;
  op.reference = attention_reference;
  op.expand = expand_attention;
  op.cost = [](const OpCall& call) { return Cost{attention_flop(read_attention(call).sizes), bytes_moved(call)}; };
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  op.cases = {
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small is_causal=0,1",
      "T[2,4,24]~small T[2,6,24]~small T[2,6,30]~small q_num_heads=3 kv_num_heads=3 is_causal=0,1",
      // Several query heads to a key head; only one; keys of another size than values.
      "T[2,6,5,8]~small T[2,2,7,8]~small T[2,2,7,10]~small",
      "T[1,3,40]~small T[1,5,8]~small T[1,5,12]~small q_num_heads=5 kv_num_heads=1",
      "T[1,2,3,8]~small T[1,2,5,8]~small T[1,2,5,8]~small scale=0.25 softcap=0.0,2.0 is_causal=1",
      // Masks: bool and numbers, every rank, a row that sees nothing, a short one.
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small bool[4,6]~mask is_causal=0,1",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small bool[2,1,4,6]~mask",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small T[2,3,4,6]~small is_causal=0,1",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small T[3,1,6]~mask",
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small f32[6]~mask softcap=1.5",
      "T[1,2,3,4]~small T[1,2,3,4]~small T[1,2,3,4]~small bool[3,3]{1,0,1,0,0,0,1,1,1} is_causal=0,1 outputs=1",
      "T[1,2,3,4]~small T[1,2,6,4]~small T[1,2,6,4]~small bool[3,4]~mask is_causal=0,1",
      "T[1,2,3,4]~small T[1,2,6,4]~small T[1,2,6,4]~small T[1,1,3,1]~small",
      "T[1,2,3,4]~small T[1,2,6,4]~small T[1,2,6,4]~small i32[3,6]~small",
      // A cache.
      "T[2,3,4,8]~small T[2,3,2,8]~small T[2,3,2,6]~small - T[2,3,5,8]~small T[2,3,5,6]~small is_causal=0,1 outputs=3",
      "T[2,1,24]~small T[2,1,8]~small T[2,1,8]~small bool[1,6]~mask T[2,1,5,8]~small T[2,1,5,8]~small q_num_heads=3 "
      "kv_num_heads=1 is_causal=1 outputs=3",
      "T[2,4,24]~small T[2,4,24]~small T[2,4,24]~small T[4,4]~small q_num_heads=3 kv_num_heads=3 outputs=3",
      "T[1,2,2,4]~small T[1,2,2,4]~small T[1,2,2,4]~small - T[1,2,0,4] T[1,2,0,4] is_causal=1 outputs=3",
      // What the fourth output shows.
      "T[2,4,3,8]~small T[2,2,5,8]~small T[2,2,5,8]~small bool[3,5]~mask qk_matmul_output_mode=0,1,2,3 softcap=0.0,2.0 outputs=4",
      "T[1,2,3,4]~small T[1,2,3,4]~small T[1,2,3,4]~small bool[3,3]{1,1,1,0,0,0,1,0,1} qk_matmul_output_mode=3 outputs=4",
      "T[1,3,16]~small T[1,2,16]~small T[1,2,16]~small - T[1,2,3,8]~small T[1,2,3,8]~small q_num_heads=2 kv_num_heads=2 "
      "is_causal=1 qk_matmul_output_mode=2,3 outputs=4",
      // A cache kept outside, with fewer keys than queries too.
      "T[2,3,4,8]~small T[2,3,6,8]~small T[2,3,6,8]~small - - - i64[2]{3,6} is_causal=0,1",
      "T[3,2,2,4]~small T[3,1,6,4]~small T[3,1,6,4]~small bool[2,5]~mask - - i64[3]{0,1,5} is_causal=0,1",
      "T[2,2,3,4]~small T[2,2,4,4]~small T[2,2,4,4]~small - - - i64[2]{-3,99} is_causal=1",
      // Windows.
      "T[1,2,4,4]~small T[1,2,6,4]~small T[1,2,6,4]~small left_window_size=-1,0,2 right_window_size=-1,0,1 is_causal=0,1",
      "T[1,2,8,4]~small T[1,2,3,4]~small T[1,2,3,4]~small left_window_size=1",
      "T[1,2,3,4]~small T[1,2,2,4]~small T[1,2,2,4]~small - T[1,2,4,4]~small T[1,2,4,4]~small left_window_size=2 is_causal=1",
      "T[2,2,3,4]~small T[2,2,6,4]~small T[2,2,6,4]~small - - - i64[2]{4,6} left_window_size=1 right_window_size=0",
      "T[1,1,2,4]~small T[1,1,3,4]~small T[1,1,3,4]~small left_window_size=9223372036854775807 "
      "right_window_size=9223372036854775807",
      // The softmax in other dtypes.
      "T[1,2,3,4]~small T[1,2,5,4]~small T[1,2,5,4]~small softmax_precision=1,11",
      "f16[1,2,3,4]~small f16[1,2,5,4]~small f16[1,2,5,4]~small softmax_precision=10,16",
      "f32[1,1,1,2]{1,1} f32[1,1,2,2]{1,2,0,-1} f32[1,1,2,1]{3,7} softmax_precision=10,16 scale=1.0",
      "f32[1,2,3,4]~small f32[1,2,5,4]~small f16[1,2,5,4]~small outputs=3",
      // Nothing to see, nobody to look.
      "T[1,2,3,4]~small T[1,2,0,4] T[1,2,0,4]",
      "T[0,2,3,4] T[0,2,5,4] T[0,2,5,4] is_causal=1",
      "T[1,2,0,4] T[1,2,5,4] T[1,2,5,4] bool[0,5]",
      "T[1,12,17,64]~small T[1,12,17,64]~small T[1,12,17,64]~small is_causal=1",
  };
  return op;
}

}  // namespace

void add_attention_ops(OpSet& ops) {
  ops.add(attention());
  add_rotary_ops(ops);
  add_linear_attention_ops(ops);
  add_flex_attention(ops);
  add_fused_attention(ops);
  add_multi_head_ops(ops);
  add_self_attention_ops(ops);
  add_group_query_ops(ops);
  add_contrib_rotary(ops);
  add_contrib_embed_ops(ops);
  add_crop_and_inverse(ops);
}

}  // namespace unmoor
