#include <algorithm>
#include <cmath>

#include "unmoor/ops/compose.h"
#include "unmoor/ops/quantize.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

// A quantisation taken apart: x / scale and the zero point, for each element, and what it is stored as.
struct Parts {
  std::vector<double> quotient, zero;
  TensorType type;
};

// The tensor's scale or zero point beside each element of x, through DequantizeLinear of ones.
std::vector<double> beside(const Situation& at, const Tensor& values) {
  Tensor ones(TensorType{DType::I32, at.tensor(0).shape()});
  for (int32_t& one : ones.writable_span<int32_t>()) one = 1;
  Tensor scale(TensorType{DType::F64, values.shape()});
  store(scale, doubles(values));
  Attributes attributes;
  for (const char* const key : {"axis", "block_size"}) {
    if (at.call.has_attribute(key)) attributes[key] = at.call.integer(key, 0);
  }
  return doubles(result_by(at.call, "DequantizeLinear", {ones, scale}, attributes));
}

std::optional<Parts> parts_of(const Situation& at, const std::function<double(double)>& scale_rule = {}) {
  if (at.output != 0 || !at.has_floats(0)) return std::nullopt;
  const auto& type = std::get<TensorType>(at.call.outputs.at(0));
  if (!is_integer(type.dtype)) return std::nullopt;
  Parts parts{doubles(at.tensor(0)), {}, type};
  std::vector<double> scale;
  if (at.op() == "DynamicQuantizeLinear") {
    const ByteScale range = byte_scale_of(parts.quotient, DType::F32);
    scale.assign(parts.quotient.size(), range.scale);
    parts.zero.assign(parts.quotient.size(), range.zero);
  } else {
    scale = beside(at, at.tensor(1));
    parts.zero = at.has(2) ? beside(at, at.tensor(2)) : std::vector<double>(parts.quotient.size(), 0.0);
  }
  for (size_t i = 0; i < scale.size(); ++i) {
    const double divisor = scale_rule ? scale_rule(scale[i]) : scale[i];
    // Kernels divide in float32: what is a tie there is one.
    parts.quotient[i] = divisor == 0 ? 0 : rounded(DType::F32, parts.quotient[i] / divisor);
  }
  return parts;
}

template <class Rule>
Change quantised(const Situation& at, const Parts& parts, Limits limits, std::string detail, Rule rule) {
  Tensor result(parts.type);
  std::vector<double> values(parts.quotient.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::clamp(rule(parts.quotient[i], parts.zero[i]), limits.low, limits.high);
  store(result, values);
  Change change = unchanged(at);
  change.compute = [result] { return std::vector<Data>{result}; };
  change.detail = std::move(detail);
  return change;
}

double half_away(double value) { return std::copysign(std::floor(std::fabs(value) + 0.5), value); }

std::vector<Change> away_from_zero(const Situation& at) {
  if (at.op() == "Round") {
    Change change = unchanged(at);
    const Tensor values = mapped(at.tensor(0), half_away);
    change.compute = [values] { return std::vector<Data>{values}; };
    return {change};
  }
  const auto parts = parts_of(at);
  if (!parts) return {};
  return {quantised(at, *parts, limits_of(parts->type.dtype), "", [](double q, double z) { return half_away(q) + z; })};
}

std::vector<Change> zero_point_first(const Situation& at) {
  const auto parts = parts_of(at);
  if (!parts) return {};
  return {quantised(at, *parts, limits_of(parts->type.dtype), "", [](double q, double z) { return std::nearbyint(q + z); })};
}

std::vector<Change> other_limits(const Situation& at) {
  const auto parts = parts_of(at);
  if (!parts) return {};
  const Limits own = limits_of(parts->type.dtype);
  const double half = (own.high - own.low + 1) / 2;
  std::vector<Change> changes;
  const auto rule = [](double q, double z) { return std::nearbyint(q) + z; };
  const auto add = [&](Limits limits, std::string detail) {
    changes.push_back(quantised(at, *parts, limits, std::move(detail), rule));
  };
  if (own.low < 0) add({own.low + 1, own.high}, "the same on both sides of 0");
  add({own.low + 1, own.high - 1}, "one less at both ends");
  add({own.low / 2, std::floor(own.high / 2)}, "one bit less");
  if (own.low == 0) add({0, half - 1}, "as the signed type has it");
  // No limits at all: what does not fit wraps around.
  changes.push_back(quantised(at, *parts, {-1e18, 1e18}, "wrapping around", rule));
  return changes;
}

// A scale in float16; and, where the scale is what is multiplied by, its reciprocal in float16.
std::vector<Change> narrow_scale(const Situation& at) {
  const auto narrow = [](double value) { return rounded(DType::F16, value); };
  if (at.op() != "QuantizeLinear") {
    if (!at.has_floats(1)) return {};
    return {with_input(at, 1, mapped(at.tensor(1), narrow))};
  }
  std::vector<Change> changes;
  const auto rule = [](double q, double z) { return std::nearbyint(q) + z; };
  if (const auto parts = parts_of(at, narrow)) changes.push_back(quantised(at, *parts, limits_of(parts->type.dtype), "", rule));
  const auto reciprocal = [narrow](double value) { return 1 / narrow(1 / value); };
  if (const auto parts = parts_of(at, reciprocal)) {
    changes.push_back(quantised(at, *parts, limits_of(parts->type.dtype), "its reciprocal", rule));
  }
  return changes;
}

// Quantised values, whole numbers and 16-bit results that lose their fraction instead of being rounded.
std::vector<Change> cut_off(const Situation& at) {
  std::vector<Change> changes;
  if (at.op() == "QuantizeLinear" || at.op() == "DynamicQuantizeLinear") {
    const auto parts = parts_of(at);
    if (!parts) return {};
    const Limits limits = limits_of(parts->type.dtype);
    changes.push_back(quantised(at, *parts, limits, "towards zero", [](double q, double z) { return std::trunc(q) + z; }));
    changes.push_back(quantised(at, *parts, limits, "downwards", [](double q, double z) { return std::floor(q) + z; }));
    return changes;
  }
  if (at.op() == "Round")
    return {with_input(at, 0, mapped(at.tensor(0), [](double value) { return std::trunc(value); }), "towards zero")};
  // In float32 the error of cutting off is within what rounding explains: only its lean towards zero shows (see systematic.h).
  if (at.stored != DType::F16 && at.stored != DType::BF16) return {};
  const Format format = format_of(at.stored);
  changes.push_back(with_result(at, [format](std::span<double> values) {
    for (double& value : values) value = on_grid(format, value, Cut::TowardZero);
  }));
  return changes;
}

}  // namespace

void add_quantise_causes(std::vector<Entry>& table) {
  const std::vector<std::string_view> ops{"QuantizeLinear", "DynamicQuantizeLinear"};
  table.push_back({"zero-point-order",
                   "adds the zero point before it rounds",
                   "Use even zero points, or the target's rounding before the offset.",
                   1,
                   true,
                   {"QuantizeLinear", "DynamicQuantizeLinear"},
                   zero_point_first});
  table.push_back({"saturation", "limits quantised values to other bounds",
                   "Check the quantised type and whether the target uses its whole range.", 1, true, ops, other_limits});
  table.push_back({"scale-float16",
                   "holds the scale in float16",
                   "Keep quantisation scales in float32, or make them powers of two.",
                   2,
                   true,
                   {"QuantizeLinear", "DequantizeLinear"},
                   narrow_scale});
  table.push_back({"half-away",
                   "rounds halves away from zero instead of to even",
                   "Set the target's rounding to nearest even.",
                   1,
                   true,
                   {"QuantizeLinear", "DynamicQuantizeLinear", "Round"},
                   away_from_zero});
  table.push_back({"truncated",
                   "cuts results off instead of rounding them",
                   "Set the target's conversion to round to nearest even.",
                   2,
                   true,
                   {},
                   cut_off});
}

}  // namespace unmoor::causes
