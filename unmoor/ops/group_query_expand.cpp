#include <array>

#include "unmoor/base/error.h"
#include "unmoor/ops/group_query.h"
#include "unmoor/ops/onnx_dtype.h"

// GroupQueryAttention as operators: for caches that neither slide nor are quantised, and a known total_sequence_length.
namespace unmoor::group_query {

namespace {

class Expansion {
 public:
  explicit Expansion(GraphBuilder& builder) : builder_(builder), f_(builder), read_(read(builder.call())), s_(read_.sizes) {
    const OpCall& call = builder.call();
    if (read_.code != Code::Plain || read_.slides) {
      fail(ErrorKind::Unsupported, title(call), ": a cache that slides or is quantised has no form in other operators");
    }
    if (read_.total < 0) fail(ErrorKind::Unsupported, title(call), ": total_sequence_length is not known before it runs");
    const ValueId one = builder.constant(Tensor::scalar<int64_t>(1));
    keys_ = f_.sum(vector(LastKeys), one);
    pads_ = s_.length > 1 || f_.has(QueryLengths);
    queries_ = f_.has(QueryLengths) ? vector(QueryLengths)
               : pads_              ? f_.add("Min", {keys_, builder.constant(Tensor::scalar<int64_t>(s_.length))})
                                    : one;
    first_ = f_.difference(keys_, queries_);
    if (pads_) valid_ = f_.add("Less", {places(builder, 0, s_.length, true), queries_});
  }

  void run() {
    std::array<ValueId, 3> rows = heads();
    const ValueId k = cached(PastKey, rows[1]);
    const ValueId v = cached(PastValue, rows[2]);
    if (f_.call().wants_output(1)) f_.output(1, k);
    if (f_.call().wants_output(2)) f_.output(2, v);
    const ValueId seen = visible();
    AttentionRule how = rule(f_.call(), read_);
    how.sizes.total = read_.capacity;
    std::optional<AttentionStage> keep;
    if (f_.call().wants_output(3)) keep = read_.output == 2 ? AttentionStage::Weights : AttentionStage::Biased;
    const AttendedValues result =
        add_attention(f_, how, {.q = rows[0], .k = k, .v = v, .bias = bias(seen), .sinks = sinks()}, keep);
    f_.output(0, join_heads(f_, without_padding(result.y), s_.batch, s_.heads, s_.length, s_.depth));
    if (keep) f_.output(3, scores(result.stage, seen));
  }

 private:
  // An int32 input of one number a batch, as int64 [batch, 1, 1, 1].
  ValueId vector(size_t i) {
    return sized(f_, f_.add("Cast", {f_.raw(i)}, {{"to", onnx_number(DType::I64)}}), {s_.batch, 1, 1, 1});
  }

  ValueId without_padding(ValueId x) { return pads_ ? f_.add("Where", {valid_, x, f_.number(0)}) : x; }

  // Queries, keys and values, [batch, heads, length, depth], ready to meet; keys and values are no_value if there are no new
  // ones.
  std::array<ValueId, 3> heads() {
    std::array<ValueId, 3> rows{f_.input(Query), no_value, no_value};
    const int64_t queries = s_.heads * s_.depth;
    const int64_t keys = s_.shared * s_.depth;
    if (read_.packed) {
      rows = {sliced(f_, rows[0], 2, 0, queries), sliced(f_, rows[0], 2, queries, queries + keys),
              sliced(f_, rows[0], 2, queries + keys, queries + 2 * keys)};
    } else if (read_.added > 0) {
      rows = {rows[0], f_.input(Key), f_.input(Value)};
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != no_value) rows[i] = split_heads(f_, rows[i], s_.batch, s_.length, i == 0 ? s_.heads : s_.shared, s_.depth);
    }
    const OpCall& call = f_.call();
    const double epsilon = call.real("qk_norm_epsilon", static_cast<double>(1e-6F));
    rows[0] = turned(normalized(rows[0], QueryNorm, call.real("q_norm_epsilon", epsilon)));
    rows[1] = turned(normalized(rows[1], KeyNorm, call.real("k_norm_epsilon", epsilon)));
    return rows;
  }

  ValueId normalized(ValueId x, size_t weight, double epsilon) {
    if (x == no_value || !f_.has(weight)) return x;
    const ValueId mean = f_.reduce("ReduceMean", f_.square(x), {-1});
    return f_.product(f_.quotient(x, f_.add("Sqrt", {f_.sum(mean, f_.number(epsilon))})), f_.input(weight));
  }

  ValueId turned(ValueId x) {
    if (x == no_value || read_.rotation.half == 0) return x;
    if (cos_ == no_value) {
      const ValueId at = positions();
      cos_ = f_.add("Gather", {f_.input(Cos), at}, {{"axis", int64_t{0}}});
      sin_ = f_.add("Gather", {f_.input(Sin), at}, {{"axis", int64_t{0}}});
    }
    return add_rotation(builder_, x, cos_, sin_, s_.depth, read_.rotation);
  }

  // [batch or 1, 1, length]. Padding is at 0.
  ValueId positions() {
    const ValueId steps = places(builder_, 0, s_.length, false);
    ValueId at = f_.sum(sized(f_, first_, {s_.batch, 1, 1}), steps);
    if (f_.has(Positions) && is_prompt(f_.call(), read_)) {
      const int64_t count = Shape(f_.call().input(Positions).shape).elements();
      at = f_.sum(sliced(f_, sized(f_, f_.raw(Positions), {count}), 0, 0, 1), sized(f_, steps, {1, 1, s_.length}));
    } else if (f_.has(Positions)) {
      at = sized(f_, f_.raw(Positions), {s_.batch, 1, s_.length});
    }
    if (!pads_) return at;
    return f_.add("Where", {sized(f_, valid_, {s_.batch, 1, s_.length}), at, builder_.constant(Tensor::scalar<int64_t>(0))});
  }

  // The cache with this call's rows in it.
  ValueId cached(size_t port, ValueId added) {
    const auto zeros = [&](int64_t rows) {
      return builder_.constant(Tensor(TensorType{f_.dtype(), Shape{s_.batch, s_.shared, rows, s_.depth}}));
    };
    const auto lengthened = [&](ValueId x, int64_t rows) {
      return rows >= read_.capacity ? x : f_.add("Concat", {x, zeros(read_.capacity - rows)}, {{"axis", int64_t{2}}});
    };
    const ValueId past = read_.past == 0 && added != no_value ? f_.number(0) : lengthened(f_.input(port), read_.past);
    if (added == no_value) return past;
    const ValueId rows = places(builder_, 0, read_.capacity, true);
    if (s_.length == 1) {
      const ValueId is_new = f_.add("Equal", {rows, first_});
      return f_.add("Where", {pads_ ? f_.add("And", {is_new, valid_}) : is_new, added, past});
    }
    // The first prompt needs no places; padding leaves what was there.
    const ValueId all = read_.past == 0
                            ? lengthened(added, s_.length)
                            : f_.add("TensorScatter", {past, added, sized(f_, first_, {s_.batch})}, {{"axis", int64_t{2}}});
    return f_.add("Where", {f_.add("Less", {rows, keys_}), all, past});
  }

  // [batch, 1, length or 1, capacity].
  ValueId visible() {
    const ValueId keys = places(builder_, 0, read_.capacity, false);
    ValueId seen = f_.add("Less", {keys, keys_});
    if (!read_.causal) return seen;
    const auto queries = [&](int64_t by) { return f_.sum(first_, places(builder_, by, s_.length, true)); };
    seen = f_.add("And", {seen, f_.add("LessOrEqual", {keys, queries(0)})});
    if (read_.window < 1) return seen;
    return f_.add("And", {seen, f_.add("Greater", {keys, queries(-std::min(read_.window, int64_t{1} << 40))})});
  }

  ValueId bias(ValueId seen) {
    const ValueId shut = shut_out_unless(f_, seen);
    if (!f_.has(Added)) return shut;
    const Shape& shape = f_.call().input(Added).shape;
    const int64_t columns = shape[shape.rank() - 1];
    ValueId added = f_.input(Added);
    if (columns == read_.total && columns < read_.capacity) {
      added = f_.add("Pad", {added, f_.ints({0, read_.capacity - columns}), f_.number(0), f_.ints({-1})});
    }
    return f_.sum(shut, added);
  }

  ValueId sinks() {
    if (f_.has(Sinks)) return sized(f_, f_.input(Sinks), {1, s_.heads, 1, 1});
    if (f_.call().integer("smooth_softmax", -1) != 1) return no_value;
    return builder_.constant(Tensor(TensorType{f_.dtype(), Shape{1, s_.heads, 1, 1}}));
  }

  // The fourth output: 0 where keys are out of sight.
  ValueId scores(ValueId stage, ValueId seen) {
    if (read_.output == 0) return builder_.constant(Tensor(f_.call().output(3)));
    if (read_.output == 1) stage = f_.add("Where", {seen, stage, f_.number(0)});
    return sliced(f_, without_padding(stage), 3, 0, read_.total);
  }

  GraphBuilder& builder_;
  Formula f_;
  Call read_;
  HeadSizes s_;
  bool pads_ = false;
  ValueId keys_, queries_,
      first_;  // By batch, [batch, 1, 1, 1]: keys there will be, queries that are no padding, the first one's place.
  ValueId valid_ = no_value;  // [batch, 1, length, 1]: which queries are no padding.
  ValueId cos_ = no_value, sin_ = no_value;
};

}  // namespace

void expand(GraphBuilder& builder) { Expansion(builder).run(); }

}  // namespace unmoor::group_query
