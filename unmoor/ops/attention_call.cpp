#include "unmoor/ops/attention_call.h"

#include <algorithm>
#include <array>

#include "unmoor/base/error.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {

namespace {

using namespace attention_input;

// [batch, heads, length, width] of an input in either form.
std::array<int64_t, 4> parts_of(const OpCall& call, size_t i, std::string_view key) {
  const Shape& shape = call.input(i).shape;
  const int64_t heads = call.integer(key, Shape::unknown);
  if (call.has_attribute(key) && heads < 1)
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " is ", heads, ", not 1 or more");
  if (!shape.has_rank()) return {Shape::unknown, heads, Shape::unknown, Shape::unknown};
  if (shape.rank() == 4) return {shape[0], same_dim(call, shape[1], heads, key), shape[2], shape[3]};
  if (shape.rank() != 3)
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", shape, ", not 3 or 4 dimensions");
  if (heads < 0) fail(ErrorKind::InvalidModel, title(call), ": inputs of 3 dimensions need the attribute ", key);
  if (shape[2] >= 0 && shape[2] % heads != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " of shape ", shape, " does not divide into ", heads, " heads");
  }
  return {shape[0], heads, shape[1], shape[2] < 0 ? Shape::unknown : shape[2] / heads};
}

void read_past(const OpCall& call, AttentionCall& read) {
  if (call.has(PastKey) != call.has(PastValue)) {
    fail(ErrorKind::InvalidModel, title(call), ": past_key and past_value go together, but only one is given");
  }
  if (!call.has(PastKey)) return;
  if (call.has(Nonpad)) fail(ErrorKind::InvalidModel, title(call), ": it has both nonpad_kv_seqlen and past keys");
  if (call.input(PastKey).dtype != call.input(K).dtype || call.input(PastValue).dtype != call.input(V).dtype) {
    fail(ErrorKind::InvalidModel, title(call), ": past keys and values must have the dtypes of K and V");
  }
  require_rank(call, PastKey, 4);
  require_rank(call, PastValue, 4);
  const auto parts = [&call](size_t i) {
    const Shape& shape = call.input(i).shape;
    return shape.has_rank() ? shape : unknown_shape(4);
  };
  const Shape key = parts(PastKey);
  const Shape value = parts(PastValue);
  HeadSizes& s = read.sizes;
  s.batch = same_dim(call, s.batch, same_dim(call, key[0], value[0], "the batch"), "the batch");
  s.shared = same_dim(call, s.shared, same_dim(call, key[1], value[1], "the number of key heads"), "the number of key heads");
  read.past = same_dim(call, key[2], value[2], "the past length");
  s.depth = same_dim(call, s.depth, key[3], "the size of a key");
  s.width = same_dim(call, s.width, value[3], "the size of a value");
}

// Checks the mask as far as shapes are known: its last dimension may be shorter than the keys.
void check_mask(const OpCall& call, const HeadSizes& s) {
  if (!call.has(Mask) || !call.input(Mask).shape.has_rank()) return;
  const Shape& mask = call.input(Mask).shape;
  const std::array<int64_t, 4> wanted{s.batch, s.heads, s.length, s.total};
  bool fits = mask.rank() >= 1 && mask.rank() <= 4;
  for (size_t axis = 0; fits && axis < mask.rank(); ++axis) {
    const int64_t dim = wanted[axis + 4 - mask.rank()];
    const bool is_last = axis + 1 == mask.rank();
    fits = mask[axis] < 0 || dim < 0 || mask[axis] == dim || (is_last ? mask[axis] < dim : mask[axis] == 1);
  }
  if (!fits) {
    fail(ErrorKind::InvalidModel, title(call), ": attn_mask of shape ", mask, " does not broadcast to ",
         Shape{s.batch, s.heads, s.length, s.total});
  }
}

}  // namespace

AttentionCall read_attention(const OpCall& call) {
  AttentionCall read;
  std::optional<size_t> rank;
  for (const size_t i : {size_t{Q}, size_t{K}, size_t{V}}) {
    const Shape& shape = call.input(i).shape;
    if (!shape.has_rank()) continue;
    if (rank && *rank != shape.rank()) {
      fail(ErrorKind::InvalidModel, title(call), ": Q, K and V have ", *rank, " and ", shape.rank(), " dimensions");
    }
    rank = shape.rank();
  }
  read.packed = rank == size_t{3};
  const auto q = parts_of(call, Q, "q_num_heads");
  const auto k = parts_of(call, K, "kv_num_heads");
  const auto v = parts_of(call, V, "kv_num_heads");
  HeadSizes& s = read.sizes;
  s.batch = same_dim(call, q[0], same_dim(call, k[0], v[0], "the batch"), "the batch");
  s.heads = q[1];
  s.shared = same_dim(call, k[1], v[1], "the number of key heads");
  s.length = q[2];
  read.added = same_dim(call, k[2], v[2], "the number of keys");
  s.depth = same_dim(call, q[3], k[3], "the size of a key");
  s.width = v[3];
  read_past(call, read);
  s.total = joined_length(call, read.past, read.added);
  require_groups(call, s);
  check_mask(call, s);
  if (call.has(Nonpad)) {
    require_rank(call, Nonpad, 1);
    if (call.input(Nonpad).shape.has_rank())
      same_dim(call, s.batch, call.input(Nonpad).shape[0], "the batch of nonpad_kv_seqlen");
  }
  return read;
}

int64_t attention_window(const OpCall& call, std::string_view key) {
  const int64_t size = call.integer(key, -1);
  if (size < -1) fail(ErrorKind::InvalidModel, title(call), ": ", key, " is ", size, ", not -1 or more");
  return std::min(size, int64_t{1} << 60);  // More is as good as none, and sums stay in range.
}

AttentionRule attention_rule(const OpCall& call, const HeadSizes& sizes) {
  AttentionRule rule{.sizes = sizes};
  rule.scale = call.has_attribute("scale") ? call.real("scale", 1) : usual_scale(sizes.depth);
  rule.softcap = call.real("softcap", 0);
  if (!(rule.softcap >= 0)) fail(ErrorKind::InvalidModel, title(call), ": softcap is ", rule.softcap, ", not 0 or more");
  if (!call.has_attribute("softmax_precision")) return rule;
  const auto precision = dtype_numbered(call.integer("softmax_precision", 1));
  const auto& known = float_types();
  if (!precision || std::ranges::find(known, *precision) == known.end()) {
    fail(ErrorKind::InvalidModel, title(call), ": softmax_precision is ", call.integer("softmax_precision", 1),
         ", not 1, 10, 11 or 16");
  }
  // A wider one than the inputs' rounds nothing.
  const DType own = call.input(Q).dtype;
  if (*precision != own && bits_of(*precision) <= bits_of(own)) rule.precision = *precision;
  return rule;
}

AttentionStage attention_stage(const OpCall& call) {
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) fail(ErrorKind::InvalidModel, title(call), ": qk_matmul_output_mode is ", mode, ", not 0 to 3");
  return static_cast<AttentionStage>(mode);
}

}  // namespace unmoor
