#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/compose.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/qlinear.h"

namespace unmoor {
namespace {

constexpr double masked_for_good = -std::numeric_limits<float>::max();  // What a later token adds to an earlier one's score.

// Inputs: input, weight, bias, input_scale, weight_scale, mask_index, input_zero_point, weight_zero_point, past.
struct Heads {
  int64_t batch = Shape::unknown, steps = Shape::unknown, past = 0, hidden = Shape::unknown, heads = 1, size = Shape::unknown;
  int64_t total() const { return past < 0 || steps < 0 ? Shape::unknown : past + steps; }
};

Heads heads_of(const OpCall& call) {
  for (const char* key : {"do_rotary", "past_present_share_buffer"}) {
    if (call.integer(key, 0) != 0) fail(ErrorKind::Unsupported, title(call), ": the attribute '", key, "' is not supported");
  }
  Heads heads;
  heads.heads = call.integer("num_heads", 0);
  if (heads.heads < 1) fail(ErrorKind::InvalidModel, title(call), ": num_heads is ", heads.heads);
  const auto dim = [&call](size_t i, size_t rank, size_t axis) {
    require_rank(call, i, rank);
    return call.input(i).shape.has_rank() ? call.input(i).shape[axis] : Shape::unknown;
  };
  heads.batch = dim(0, 3, 0);
  heads.steps = dim(0, 3, 1);
  same_dim(call, dim(0, 3, 2), dim(1, 2, 0), "the size of the input's rows");
  const int64_t columns = same_dim(call, dim(1, 2, 1), dim(2, 1, 0), "three times the hidden size");
  if (columns >= 0) {
    if (columns % 3 != 0 || columns / 3 % heads.heads != 0) {
      fail(ErrorKind::InvalidModel, title(call), ": ", columns, " columns of weights are not three times ", heads.heads,
           " heads");
    }
    heads.hidden = columns / 3;
    heads.size = heads.hidden / heads.heads;
  }
  if (!call.has(8)) return heads;
  same_dim(call, dim(8, 5, 0), 2, "the number of key and value");
  heads.batch = same_dim(call, heads.batch, dim(8, 5, 1), "the batch");
  same_dim(call, dim(8, 5, 2), heads.heads, "the number of heads");
  heads.past = dim(8, 5, 3);
  heads.size = same_dim(call, heads.size, dim(8, 5, 4), "the size of a head");
  return heads;
}

// What the mask says: nothing, how long each item is, where each ends and then where each starts, or a 0 or 1 for each key.
enum class Mask { None, Ends, EndsAndStarts, Keys, Pairs };

Mask mask_of(const OpCall& call, const Heads& heads) {
  if (!call.has(5) || !call.input(5).shape.has_rank()) return Mask::None;
  const Shape& shape = call.input(5).shape;
  const auto meets = [](int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; };
  if (shape.rank() == 1 && meets(shape[0], heads.batch)) return Mask::Ends;
  if (shape.rank() == 1 && (shape[0] < 0 || shape[0] % 2 == 0) && meets(shape[0] < 0 ? shape[0] : shape[0] / 2, heads.batch))
    return Mask::EndsAndStarts;
  if (shape.rank() == 2 && meets(shape[0], heads.batch) && meets(shape[1], heads.total())) return Mask::Keys;
  // One value for a whole row changes nothing.
  if (shape.rank() == 2 && shape[1] == 1 && (shape[0] == 1 || meets(shape[0], heads.batch))) return Mask::None;
  if (shape.rank() == 3 && meets(shape[0], heads.batch) && meets(shape[1], heads.steps) && meets(shape[2], heads.total())) {
    return Mask::Pairs;
  }
  fail(ErrorKind::InvalidModel, title(call), ": a mask of shape ", shape, " does not fit a batch of ", heads.batch, " with ",
       heads.steps, " new and ", heads.total(), " tokens in all");
}

std::vector<Type> infer_qattention(const OpCall& call) {
  const Heads heads = heads_of(call);
  mask_of(call, heads);
  const DType dtype = call.input(2).dtype;
  for (const size_t i : {size_t{3}, size_t{4}, size_t{8}}) {
    if (!call.has(i) || call.input(i).dtype == dtype) continue;
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", dtype);
  }
  for (const size_t i : {size_t{3}, size_t{6}}) require_single(call, i);
  for (const size_t i : {size_t{4}, size_t{7}}) {
    if (call.has(i) && call.input(i).shape.is_known() && call.input(i).shape.elements() != 1) {
      same_dim(call, call.input(i).shape.elements(), heads.hidden < 0 ? Shape::unknown : 3 * heads.hidden,
               "the number of columns");
    }
  }
  return {TensorType{dtype, Shape{heads.batch, heads.steps, heads.hidden}},
          TensorType{dtype, Shape{2, heads.batch, heads.heads, heads.total(), heads.size}}};
}

double scale_of(const OpCall& call, const Heads& heads) {
  const double scale = call.real("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(heads.size));
}

// One item's attention, in float64.
class Item {
 public:
  Item(const OpCall& call, const Heads& heads, std::span<const Data> in, size_t item)
      : heads_(heads), kind_(mask_of(call, heads)), mask_(integers_at(in, 5)), item_(item) {
    filter_ = call.real("mask_filter_value", -10000);
    causal_ = call.integer("unidirectional", 0) != 0;
    scale_ = scale_of(call, heads);
  }

  // `query` is one token's, [size]; key and value are [total, size]. Adds to `result`, [size].
  void attend(size_t step, const double* query, const double* key, const double* value, double* result) const {
    const auto total = static_cast<size_t>(heads_.total());
    const auto size = static_cast<size_t>(heads_.size);
    std::vector<double> scores(total);
    for (size_t t = 0; t < total; ++t) {
      double sum = 0;
      for (size_t h = 0; h < size; ++h) sum += query[h] * key[t * size + h];
      scores[t] = sum * scale_ + added(step, t);
    }
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (size_t t = 0; t < total; ++t) {
      for (size_t h = 0; h < size; ++h) result[h] += scores[t] / sum * value[t * size + h];
    }
  }

 private:
  double added(size_t step, size_t t) const {
    if (causal_ && static_cast<int64_t>(t) > heads_.past + static_cast<int64_t>(step)) return masked_for_good;
    const auto at = static_cast<int64_t>(t);
    const auto total = static_cast<size_t>(heads_.total());
    switch (kind_) {
      case Mask::None:
        return 0;
      case Mask::Ends:
        return at < mask_[item_] ? 0 : filter_;
      case Mask::EndsAndStarts:
        return at < mask_[item_] && at >= mask_[item_ + static_cast<size_t>(heads_.batch)] ? 0 : filter_;
      case Mask::Keys:
        return mask_[item_ * total + t] > 0 ? 0 : filter_;
      case Mask::Pairs:
        return mask_[(item_ * static_cast<size_t>(heads_.steps) + step) * total + t] > 0 ? 0 : filter_;
    }
    return 0;
  }

  const Heads& heads_;
  Mask kind_;
  std::vector<int64_t> mask_;
  size_t item_;
  double filter_ = 0, scale_ = 0;
  bool causal_ = false;
};

// Key and value of all tokens, [2, batch, heads, total, size]: the past, then the new ones out of `projected`, [batch, steps,
// 3·hidden].
std::vector<double> present_of(const Heads& heads, const std::vector<double>& projected, const std::vector<double>& past) {
  const auto hidden = static_cast<size_t>(heads.hidden);
  const auto size = static_cast<size_t>(heads.size);
  const auto old = static_cast<size_t>(heads.past);
  const auto steps = static_cast<size_t>(heads.steps);
  const auto count = static_cast<size_t>(heads.heads);
  const auto batch = static_cast<size_t>(heads.batch);
  std::vector<double> present(2 * batch * count * (old + steps) * size);
  for (size_t plane = 0; plane < 2 * batch * count; ++plane) {
    const size_t head = plane % count;
    const size_t item = plane / count % batch;
    const size_t part = plane / (count * batch) + 1;  // 1 for keys, 2 for values.
    const auto to = present.begin() + static_cast<std::ptrdiff_t>(plane * (old + steps) * size);
    if (old > 0) std::copy_n(past.begin() + static_cast<std::ptrdiff_t>(plane * old * size), old * size, to);
    for (size_t step = 0; step < steps; ++step) {
      const size_t from = (item * steps + step) * 3 * hidden + part * hidden + head * size;
      std::copy_n(projected.begin() + static_cast<std::ptrdiff_t>(from), size,
                  to + static_cast<std::ptrdiff_t>((old + step) * size));
    }
  }
  return present;
}

std::vector<double> projected_of(const OpCall& call, std::span<const Data> in) {
  std::vector<Tensor> inputs;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{3}, size_t{4}, size_t{6}, size_t{7}, size_t{2}}) {
    const Tensor* tensor = tensor_at(in, i);
    inputs.push_back(tensor == nullptr ? Tensor() : is_float(tensor->dtype()) ? as_float64(*tensor) : *tensor);
  }
  return doubles(result_by(call, "com.microsoft:MatMulIntegerToFloat", inputs));
}

void run_qattention(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Heads heads = heads_of(call);
  const std::vector<double> projected = projected_of(call, in);
  const std::vector<double> present = present_of(heads, projected, doubles_at(in, 8));
  const auto hidden = static_cast<size_t>(heads.hidden);
  const auto size = static_cast<size_t>(heads.size);
  const auto steps = static_cast<size_t>(heads.steps);
  const auto count = static_cast<size_t>(heads.heads);
  const auto batch = static_cast<size_t>(heads.batch);
  const size_t plane = static_cast<size_t>(heads.total()) * size;
  std::vector<double> y(batch * steps * hidden);
  for (size_t item = 0; item < batch; ++item) {
    const Item attention(call, heads, in, item);
    for (size_t step = 0; step < steps; ++step) {
      for (size_t head = 0; head < count; ++head) {
        const double* const key = present.data() + (item * count + head) * plane;
        const double* const query = projected.data() + (item * steps + step) * 3 * hidden + head * size;
        attention.attend(step, query, key, key + batch * count * plane, y.data() + (item * steps + step) * hidden + head * size);
      }
    }
  }
  put(call, out, 0, std::span<const double>(y));
  if (call.wants_output(1)) put(call, out, 1, std::span<const double>(present));
}

// The mask as numbers to add to the scores, or no_value.
ValueId mask_values(Formula& f, const Heads& heads) {
  const Mask kind = mask_of(f.call(), heads);
  ValueId open = no_value;
  if (kind == Mask::Keys || kind == Mask::Pairs) {
    const ValueId zero = f.add("Cast", {f.number(0)}, {{"to", int64_t{6}}});  // int32
    open = f.reshaped(f.add("Greater", {f.raw(5), zero}), {heads.batch, 1, kind == Mask::Pairs ? heads.steps : 1, heads.total()});
  } else if (kind != Mask::None) {
    std::vector<int64_t> places(static_cast<size_t>(heads.total()));
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
    const ValueId at = f.ints(std::move(places));
    const ValueId all = f.add("Cast", {f.raw(5)}, {{"to", int64_t{7}}});  // int64
    const auto bound = [&](int64_t from) {
      return f.reshaped(f.add("Slice", {all, f.ints({from}), f.ints({from + heads.batch})}), {heads.batch, 1, 1, 1});
    };
    open = f.add("Less", {at, bound(0)});
    if (kind == Mask::EndsAndStarts) open = f.add("And", {open, f.add("GreaterOrEqual", {at, bound(heads.batch)})});
  }
  const bool causal = f.call().integer("unidirectional", 0) != 0;
  ValueId values = f.number(0);
  if (open != no_value) values = f.add("Where", {open, values, f.number(f.call().real("mask_filter_value", -10000))});
  if (!causal) return open == no_value ? no_value : values;
  Tensor earlier(TensorType{DType::Bool, Shape{heads.steps, heads.total()}});
  const auto bits = earlier.writable_span<uint8_t>();
  for (size_t i = 0; i < bits.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / heads.total();
    bits[i] = static_cast<int64_t>(i) % heads.total() <= heads.past + row ? 1 : 0;
  }
  return f.add("Where", {f.builder().constant(std::move(earlier)), values, f.number(masked_for_good)});
}

void expand_qattention(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  const Heads heads = heads_of(call);
  if (heads.batch < 0 || heads.total() < 0 || heads.hidden < 0) {
    fail(ErrorKind::Unsupported, title(call), " cannot be expanded: its shapes are not known");
  }
  const DType dtype = call.output(0).dtype;
  Formula f(builder, dtype == DType::F64 ? DType::F64 : DType::F32);
  const auto wide = [&f](size_t i) { return f.has(i) ? f.input(i) : no_value; };
  const ValueId projected =
      f.add("com.microsoft:MatMulIntegerToFloat", {f.raw(0), f.raw(1), wide(3), wide(4), f.raw(6), f.raw(7), wide(2)});
  const auto parts = builder.add_many("Split", {projected}, {{"axis", int64_t{2}}, {"num_outputs", int64_t{3}}}, 3);
  const auto by_head = [&](size_t i) {
    return f.add("Transpose", {f.reshaped(parts[i], {heads.batch, heads.steps, heads.heads, heads.size})},
                 {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  };
  const auto with_past = [&](size_t i) {
    const ValueId fresh = by_head(i);
    if (!f.has(8)) return fresh;
    const ValueId which = f.reshaped(f.ints({static_cast<int64_t>(i) - 1}), {});
    const ValueId past = f.add("Gather", {f.input(8), which}, {{"axis", int64_t{0}}});
    return f.add("Concat", {past, fresh}, {{"axis", int64_t{2}}});
  };
  const ValueId key = with_past(1);
  const ValueId value = with_past(2);
  const ValueId flipped = f.add("Transpose", {key}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  ValueId scores = f.product(f.add("MatMul", {by_head(0), flipped}), f.number(scale_of(call, heads)));
  const ValueId mask = mask_values(f, heads);
  if (mask != no_value) scores = f.sum(scores, mask);
  const ValueId mixed = f.add("MatMul", {f.add("Softmax", {scores}, {{"axis", int64_t{-1}}}), value});
  const ValueId joined = f.add("Transpose", {mixed}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  f.output(0, f.reshaped(joined, {heads.batch, heads.steps, heads.hidden}));
  if (!call.wants_output(1)) return;
  const auto front = [&](ValueId x) { return f.add("Unsqueeze", {x, f.ints({0})}); };
  f.output(1, f.add("Concat", {front(key), front(value)}, {{"axis", int64_t{0}}}));
}

Cost qattention_cost(const OpCall& call) {
  const Heads heads = heads_of(call);
  if (heads.batch < 0 || heads.total() < 0 || heads.hidden < 0 || !call.input(0).shape.is_known()) return {0, bytes_moved(call)};
  const double rows = static_cast<double>(heads.batch) * static_cast<double>(heads.steps) * static_cast<double>(heads.hidden);
  const auto width = static_cast<double>(call.input(0).shape[2]);
  return {rows * (6 * width + 4 * static_cast<double>(heads.total())), bytes_moved(call)};
}

}  // namespace

void add_quantized_attention_op(OpSet& ops) {
  const std::vector<DType> bytes{DType::U8, DType::I8};
  Op op;
  op.name = "com.microsoft:QAttention";
  op.summary = "Self attention of many heads whose projections are products of bytes.";
  op.inputs = {required("input", bytes),
               required("weight", bytes),
               required("bias", float_types()),
               required("input_scale", float_types()),
               required("weight_scale", float_types()),
               optional("mask_index", {DType::I32}),
               optional("input_zero_point", bytes),
               optional("weight_zero_point", bytes),
               optional("past", float_types())};
  op.outputs = {required("output", float_types()), optional("present", float_types())};
  op.attributes = {{"do_rotary", int64_t{0}},
                   {"mask_filter_value", -10000.0F},
                   {"past_present_share_buffer", int64_t{0}},
                   {"scale", 0.0F},
                   {"unidirectional", int64_t{0}}};
  op.infer = infer_qattention;
  op.reference = run_qattention;
  op.expand = expand_qattention;
  op.cost = qattention_cost;
  op.rounding = Rounding::Function;
  op.category = Category::Attention;
  const std::string start = "u8[2,3,4] i8[4,12]! T[12]~small! T[]{0.02} ";
  op.cases = {cat(start, "T[]{0.01} - u8[]{128} num_heads=2 unidirectional=0,1"),
              cat(start, "T[12]~unit! - u8[1]{120} i8[12]! num_heads=1,2"),
              cat(start, "T[]{0.01} i32[2]{2,3} u8[]{128} num_heads=2 unidirectional=0,1"),
              cat(start, "T[]{0.01} i32[4]{2,3,1,0} u8[]{128} num_heads=2"),
              cat(start, "T[]{0.01} i32[2,3]{1,1,0,1,0,1} u8[]{128} num_heads=2 unidirectional=0,1"),
              cat(start, "T[]{0.01} i32[2,3]{0,0,0,1,0,1} u8[]{128} num_heads=2 mask_filter_value=-3"),
              cat(start, "T[]{0.01} i32[2,3,3]{1,0,0,1,1,0,1,1,1,1,1,1,0,1,0,1,1,0} u8[]{128} num_heads=2"),
              cat(start, "T[]{0.01} i32[2,1]{1,0} u8[]{128} num_heads=2 scale=0.7"),
              cat(start, "T[]{0.01} - u8[]{128} i8[]{2} T[2,2,2,5,2]~small num_heads=2 outputs=2 unidirectional=0,1"),
              cat(start, "T[]{0.01} i32[2,8]~index:2 u8[]{128} i8[]{2} T[2,2,2,5,2]~small num_heads=2 outputs=2"),
              cat(start, "T[]{0.01} - - - T[2,2,2,0,2] num_heads=2 outputs=2"),
              "i8[1,1,8] u8[8,24]! f32[24]! f32[]{0.02} f32[]{0.01} - i8[]{1} u8[]{128} num_heads=4 outputs=2",
              "u8[0,3,4] i8[4,12]! f32[12]! f32[]{0.02} f32[]{0.01} num_heads=2"};
  ops.add(std::move(op));
}

}  // namespace unmoor
