#include "unmoor/ops/multi_head.h"

#include <array>

#include "unmoor/base/error.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {

namespace {

Shape shape_of(const OpCall& call, size_t i) { return call.has(i) ? call.input(i).shape : Shape::of_unknown_rank(); }

MultiHeadForm form_of(const OpCall& call, const MultiHeadPorts& ports, bool packs_rows) {
  const Shape query = shape_of(call, ports.query);
  const Shape key = shape_of(call, ports.key);
  if (!call.has(ports.key)) {
    if (call.has(ports.value)) fail(ErrorKind::InvalidModel, title(call), ": it has values, but no keys");
    require_rank(call, ports.query, packs_rows ? 3 : 5);
    return packs_rows ? MultiHeadForm::PackedRows : MultiHeadForm::PackedAll;
  }
  require_rank(call, ports.query, 3);
  if (key.has_rank() && key.rank() == 5) return MultiHeadForm::PackedKeys;
  if (!key.has_rank()) return MultiHeadForm::Unknown;
  if (key.rank() != 3 && key.rank() != 4) {
    fail(ErrorKind::InvalidModel, title(call), ": the key has shape ", key, ", not 3, 4 or 5 dimensions");
  }
  if (!call.has(ports.value))
    fail(ErrorKind::InvalidModel, title(call), ": the key has shape ", key, ", but there are no values");
  require_rank(call, ports.value, key.rank());
  return key.rank() == 3 ? MultiHeadForm::Rows : MultiHeadForm::Keys4;
}

void read_packed(const OpCall& call, const MultiHeadPorts& ports, MultiHeadCall& read) {
  HeadSizes& s = read.sizes;
  const bool all = read.form == MultiHeadForm::PackedAll;
  const Shape packed = shape_of(call, all ? ports.query : ports.key);
  if (!packed.has_rank()) return;
  s.batch = same_dim(call, s.batch, packed[0], "the batch");
  read.added = packed[1];
  same_dim(call, s.heads, packed[2], "the number of heads");
  same_dim(call, all ? 3 : 2, packed[3], "the number of packed parts");
  s.depth = same_dim(call, s.depth, packed[4], "the size of a head");
  s.width = s.depth;
  if (all) s.length = packed[1];
}

void read_keys(const OpCall& call, const MultiHeadPorts& ports, MultiHeadCall& read) {
  HeadSizes& s = read.sizes;
  const Shape query = shape_of(call, ports.query);
  if (read.form != MultiHeadForm::PackedAll && query.has_rank()) {
    s.batch = query[0];
    s.length = query[1];
    if (read.form == MultiHeadForm::PackedRows) {
      s.depth = s.width = per_head(call, query[2], 3 * s.heads);
      read.added = s.length;
    } else {
      s.depth = per_head(call, query[2], s.heads);
    }
  }
  if (read.form == MultiHeadForm::PackedAll || read.form == MultiHeadForm::PackedKeys) return read_packed(call, ports, read);
  if (read.form != MultiHeadForm::Rows && read.form != MultiHeadForm::Keys4) return;
  const bool rows = read.form == MultiHeadForm::Rows;
  const auto parts = [&](size_t i) -> std::array<int64_t, 3> {
    const Shape shape = shape_of(call, i);
    if (!shape.has_rank()) return {Shape::unknown, Shape::unknown, Shape::unknown};
    if (rows) return {shape[0], shape[1], per_head(call, shape[2], s.heads)};
    same_dim(call, s.heads, shape[1], "the number of heads");
    return {shape[0], shape[2], shape[3]};
  };
  const auto key = parts(ports.key);
  const auto value = parts(ports.value);
  s.batch = same_dim(call, s.batch, same_dim(call, key[0], value[0], "the batch"), "the batch");
  read.added = same_dim(call, key[1], value[1], "the number of keys");
  s.depth = same_dim(call, s.depth, key[2], "the size of a head");
  s.width = value[2];
}

void read_past(const OpCall& call, const MultiHeadPorts& ports, MultiHeadCall& read) {
  HeadSizes& s = read.sizes;
  if (call.has(ports.past_key) != call.has(ports.past_value)) {
    fail(ErrorKind::InvalidModel, title(call), ": past_key and past_value go together, but only one is given");
  }
  read.shared = call.has(ports.past_key) && call.has(ports.past_length);
  if (call.has(ports.indirection) && !read.shared) {
    fail(ErrorKind::InvalidModel, title(call), ": cache_indirection needs past keys and past_sequence_length");
  }
  if (!call.has(ports.past_key)) return;
  if (read.form == MultiHeadForm::Keys4)
    fail(ErrorKind::InvalidModel, title(call), ": keys of 4 dimensions cannot be added to past ones");
  int64_t rows = Shape::unknown;
  for (const size_t i : {ports.past_key, ports.past_value}) {
    require_rank(call, i, 4);
    const Shape past = shape_of(call, i);
    if (!past.has_rank()) continue;
    s.batch = same_dim(call, s.batch, past[0], "the batch");
    same_dim(call, s.heads, past[1], "the number of heads");
    rows = same_dim(call, rows, past[2], "the past length");
    int64_t& size = i == ports.past_key ? s.depth : s.width;
    size = same_dim(call, size, past[3], "the size of a head");
  }
  read.past = rows;
  if (!read.shared) return;
  read.capacity = rows;
  const auto known = constant_integers(call, ports.past_length);
  read.past = known && known->size() == 1 ? (*known)[0] : Shape::unknown;
  if (known && (known->size() != 1 || read.past < 0 || (rows >= 0 && read.added >= 0 && read.past > rows - read.added))) {
    fail(ErrorKind::InvalidArgument, title(call), ": past_sequence_length ", read.past, " and ", read.added,
         " keys do not fit into ", rows);
  }
}

// Part `at` of values packed along an axis before the last, as rows.
ValueId unpacked(Formula& f, ValueId x, int64_t at, const HeadSizes& s, int64_t length) {
  return sized(f, sliced(f, x, 3, at, at + 1), {s.batch, length, times(s.heads, s.depth)});
}

// The rows of queries, keys and values; keys and values are no_value where they come by heads.
std::array<ValueId, 3> rows_of(Formula& f, const MultiHeadCall& read, const MultiHeadPorts& ports) {
  const HeadSizes& s = read.sizes;
  const ValueId query = f.input(ports.query);
  switch (read.form) {
    case MultiHeadForm::Rows:
      return {query, f.input(ports.key), f.input(ports.value)};
    case MultiHeadForm::Keys4:
      return {query, no_value, no_value};
    case MultiHeadForm::PackedKeys: {
      const ValueId packed = f.input(ports.key);
      return {query, unpacked(f, packed, 0, s, read.added), unpacked(f, packed, 1, s, read.added)};
    }
    case MultiHeadForm::PackedAll:
      return {unpacked(f, query, 0, s, s.length), unpacked(f, query, 1, s, s.length), unpacked(f, query, 2, s, s.length)};
    case MultiHeadForm::PackedRows: {
      const int64_t size = times(s.heads, s.depth);
      return {sliced(f, query, 2, 0, size), sliced(f, query, 2, size, 2 * size), sliced(f, query, 2, 2 * size, 3 * size)};
    }
    case MultiHeadForm::Unknown:
      break;
  }
  fail(ErrorKind::Unsupported, title(f.call()), ": the ranks of its inputs are not known");
}

void add_bias(Formula& f, const MultiHeadCall& read, const MultiHeadPorts& ports, std::array<ValueId, 3>& rows) {
  if (!f.has(ports.bias)) return;
  const HeadSizes& s = read.sizes;
  const std::array<int64_t, 3> sizes{times(s.heads, s.depth), times(s.heads, s.depth), times(s.heads, s.width)};
  int64_t from = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != no_value) rows[i] = f.sum(rows[i], sliced(f, f.input(ports.bias), 0, from, from + sizes[i]));
    from += sizes[i];
  }
}

// Past rows of a beam search, each from the beam that it came from: [batch·beams, heads, past, size].
ValueId redirected(Formula& f, ValueId past, const MultiHeadCall& read, const MultiHeadPorts& ports, int64_t size) {
  const HeadSizes& s = read.sizes;
  const Shape& shape = f.call().input(ports.indirection).shape;
  const int64_t beams = shape[1];
  const ValueId table = f.add("Cast", {sliced(f, f.raw(ports.indirection), 2, 0, read.past)}, {{"to", onnx_number(DType::I64)}});
  const ValueId index =
      f.add("Expand", {sized(f, table, {shape[0], beams, 1, read.past, 1}), f.ints({shape[0], beams, s.heads, read.past, size})});
  const ValueId by_beam = sized(f, past, {shape[0], beams, s.heads, read.past, size});
  return sized(f, f.add("GatherElements", {by_beam, index}, {{"axis", int64_t{1}}}), {s.batch, s.heads, read.past, size});
}

struct Cached {
  ValueId all;      // What is attended to.
  ValueId present;  // What is kept.
};
Cached with_past(Formula& f, ValueId added, size_t port, const MultiHeadCall& read, const MultiHeadPorts& ports, int64_t size) {
  if (!f.has(port)) return {added, added};
  const Attributes along{{"axis", int64_t{2}}};
  if (!read.shared) {
    const ValueId all = f.add("Concat", {f.input(port), added}, along);
    return {all, all};
  }
  if (read.past < 0) fail(ErrorKind::Unsupported, title(f.call()), ": past_sequence_length is not known before it runs");
  const ValueId past = sliced(f, f.input(port), 2, 0, read.past);
  const ValueId rest = sliced(f, f.input(port), 2, read.past + read.added, read.capacity);
  const ValueId before = f.has(ports.indirection) ? redirected(f, past, read, ports, size) : past;
  return {f.add("Concat", {before, added}, along), f.add("Concat", {past, added, rest}, along)};
}

}  // namespace

MultiHeadCall read_multi_head(const OpCall& call, const MultiHeadPorts& ports, bool packs_rows) {
  MultiHeadCall read;
  read.form = form_of(call, ports, packs_rows);
  HeadSizes& s = read.sizes;
  s.heads = s.shared = heads_attribute(call);
  read_keys(call, ports, read);
  read_past(call, ports, read);
  s.total = joined_length(call, read.past, read.added);
  if (!read.shared) read.capacity = s.total;
  if (call.has(ports.bias)) {
    require_rank(call, ports.bias, 1);
    const bool known = s.depth >= 0 && s.width >= 0;
    const Shape bias = shape_of(call, ports.bias);
    if (bias.has_rank() && known) same_dim(call, bias[0], projected_size(call, s), "the size of the bias");
  }
  if (call.has(ports.indirection)) {
    require_rank(call, ports.indirection, 3);
    const Shape table = shape_of(call, ports.indirection);
    const bool known = table.is_known() && s.batch >= 0 && read.capacity >= 0;
    if (known && (Shape{table[0], table[1]}.elements() != s.batch || table[2] != read.capacity)) {
      fail(ErrorKind::InvalidModel, title(call), ": cache_indirection of shape ", table, " does not fit a batch of ", s.batch,
           " with room for ", read.capacity, " keys");
    }
  }
  return read;
}

MultiHeadValues multi_head_values(Formula& f, const MultiHeadCall& read, const MultiHeadPorts& ports) {
  const HeadSizes& s = read.sizes;
  std::array<ValueId, 3> rows = rows_of(f, read, ports);
  add_bias(f, read, ports, rows);
  MultiHeadValues values{};
  values.q = split_heads(f, rows[0], s.batch, s.length, s.heads, s.depth);
  if (read.form == MultiHeadForm::Keys4) {
    values.k = values.present_key = f.input(ports.key);
    values.v = values.present_value = f.input(ports.value);
    return values;
  }
  const Cached k =
      with_past(f, split_heads(f, rows[1], s.batch, read.added, s.heads, s.depth), ports.past_key, read, ports, s.depth);
  const Cached v =
      with_past(f, split_heads(f, rows[2], s.batch, read.added, s.heads, s.width), ports.past_value, read, ports, s.width);
  values.k = k.all;
  values.v = v.all;
  values.present_key = k.present;
  values.present_value = v.present;
  return values;
}

}  // namespace unmoor
