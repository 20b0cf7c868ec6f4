#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/contrib_attention.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {

namespace {

// What ONNX Runtime puts where a later key would be.
constexpr auto lowest = static_cast<double>(std::numeric_limits<float>::lowest());

// Documented: [batch] lengths, [2·batch] ends then starts, [3·batch + 2] lengths then offsets; [batch, total]; [batch, length,
// total]; [batch, 1, most, most].
bool mask_fits(const Shape& mask, const HeadSizes& s, int64_t past) {
  const auto is = [](int64_t dim, int64_t wanted) { return dim < 0 || wanted < 0 || dim == wanted; };
  if (mask.rank() == 1) {
    if (s.batch < 0 || mask[0] < 0) return true;
    return mask[0] == s.batch || (mask[0] % 2 == 0 && mask[0] / 2 == s.batch) || (mask[0] % 3 == 2 && mask[0] / 3 == s.batch);
  }
  if (mask.rank() == 2) return is(mask[0], s.batch) && is(mask[1], s.total);
  if (mask.rank() == 3) return is(mask[0], s.batch) && is(mask[1], s.length) && is(mask[2], s.total);
  if (mask.rank() != 4) return false;
  const bool is_long = mask[2] < 0 || s.length < 0 || past < 0 || mask[2] >= past + s.length;
  return is(mask[0], s.batch) && is(mask[1], 1) && is_long && (mask[3] < 0 || s.total < 0 || mask[3] >= s.total);
}

// Whether keys count, broadcasting to [batch, 1, length, total].
ValueId counting(Formula& f, GraphBuilder& builder, const HeadSizes& s, const ContribBias& bias) {
  const Shape& shape = f.call().input(*bias.mask).shape;
  const ValueId mask = f.add("Cast", {f.raw(*bias.mask)}, {{"to", onnx_number(DType::I64)}});
  if (shape.rank() > 1) {
    const ValueId counts = f.add("Greater", {mask, builder.constant(Tensor::scalar<int64_t>(0))});
    if (shape.rank() == 2) return sized(f, counts, {s.batch, 1, 1, s.total});
    if (shape.rank() == 3) return sized(f, counts, {s.batch, 1, s.length, s.total});
    return sliced(f, sliced(f, counts, 2, bias.past, bias.past + s.length), 3, 0, s.total);
  }
  const ValueId keys = places(builder, 0, s.total, false);
  const auto bounds = [&](int64_t from) {
    return sized(f, shape[0] == s.batch ? mask : sliced(f, mask, 0, from, from + s.batch), {s.batch, 1, 1, 1});
  };
  const ValueId before_end = f.add("Less", {keys, bounds(0)});
  if (shape[0] % 2 != 0 || shape[0] / 2 != s.batch) return before_end;
  return f.add("And", {before_end, f.add("GreaterOrEqual", {keys, bounds(s.batch)})});
}

}  // namespace

ContribBias contrib_bias(const OpCall& call, std::optional<size_t> mask, std::optional<size_t> added, int64_t past) {
  ContribBias bias;
  if (mask && call.has(*mask)) bias.mask = mask;
  if (added && call.has(*added)) bias.added = added;
  bias.filter = call.real("mask_filter_value", -10000);
  bias.causal = call.integer("unidirectional", 0) != 0;
  bias.past = past;
  return bias;
}

void check_contrib_bias(const OpCall& call, const HeadSizes& s, const ContribBias& bias) {
  if (bias.mask && call.input(*bias.mask).shape.has_rank() && !mask_fits(call.input(*bias.mask).shape, s, bias.past)) {
    fail(ErrorKind::InvalidModel, title(call), ": the mask has shape ", call.input(*bias.mask).shape, ", which does not fit ",
         s.batch, " batches of ", s.length, " queries and ", s.total, " keys");
  }
  if (bias.added) require_broadcast_to(call, *bias.added, Shape{s.batch, s.heads, s.length, s.total});
}

ValueId add_contrib_bias(Formula& f, GraphBuilder& builder, const HeadSizes& s, const ContribBias& bias, ValueId lengths) {
  ValueId counts = bias.mask ? counting(f, builder, s, bias) : no_value;
  if (lengths != no_value) counts = f.add("Less", {places(builder, 0, s.total, false), lengths});
  ValueId result = counts == no_value ? no_value : f.add("Where", {counts, f.number(0), f.number(bias.filter)});
  if (bias.causal) {
    const ValueId seen = f.add("LessOrEqual", {places(builder, 0, s.total, false), places(builder, bias.past, s.length, true)});
    result = f.add("Where", {seen, result == no_value ? f.number(0) : result, f.number(lowest)});
  }
  if (!bias.added) return result;
  return result == no_value ? f.input(*bias.added) : f.sum(result, f.input(*bias.added));
}

void require_one_float_dtype(const OpCall& call) {
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (call.has(i) && is_float(call.input(i).dtype) && call.input(i).dtype != call.input(0).dtype) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", call.input(0).dtype);
    }
  }
}

int64_t heads_attribute(const OpCall& call, std::string_view key) {
  const int64_t heads = call.integer(key, 0);
  if (heads < 1 || heads > (int64_t{1} << 31))
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " is ", heads, ", not 1 to 2^31");
  return heads;
}

double contrib_scale(const OpCall& call, int64_t depth) {
  const double scale = call.real("scale", 0);
  return scale == 0 ? usual_scale(depth) : scale;
}

int64_t per_head(const OpCall& call, int64_t size, int64_t heads) {
  if (size >= 0 && (size == 0 || size % heads != 0)) {
    fail(ErrorKind::InvalidModel, title(call), ": a size of ", size, " does not divide into ", heads, " heads");
  }
  return size < 0 ? Shape::unknown : size / heads;
}

int64_t projected_size(const OpCall& call, const HeadSizes& s) {
  const int64_t keys = times(s.heads, times(2, s.depth));
  const int64_t values = times(s.heads, s.width);
  if (keys > (int64_t{1} << 62) - values)
    fail(ErrorKind::InvalidModel, title(call), ": heads of ", s.depth, " elements are too large");
  return keys + values;
}

ValueId sliced(Formula& f, ValueId x, int64_t axis, int64_t from, int64_t to) {
  return f.add("Slice", {x, f.ints({from}), f.ints({to}), f.ints({axis})});
}

}  // namespace unmoor
