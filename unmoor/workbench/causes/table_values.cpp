#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool has_nan(const Tensor& tensor) {
  for (const double value : doubles(tensor)) {
    if (std::isnan(value)) return true;
  }
  return false;
}

// Every NaN of the inputs replaced by an infinity that loses the comparison.
std::vector<Change> nan_loses(const Situation& at) {
  const bool any = [&at] {
    for (size_t i = 0; i < at.inputs.size(); ++i) {
      if (at.has_floats(i) && has_nan(at.tensor(i))) return true;
    }
    return false;
  }();
  if (!any) return {};
  std::vector<Change> changes;
  for (const double loser : {-infinity, infinity}) {
    Change change = unchanged(at);
    for (size_t i = 0; i < change.inputs.size(); ++i) {
      if (at.has_floats(i))
        change.inputs[i] = mapped(at.tensor(i), [loser](double value) { return std::isnan(value) ? loser : value; });
    }
    change.detail = loser < 0 ? "below every number" : "above every number";
    changes.push_back(std::move(change));
  }
  return changes;
}

double floored(double a, double b) { return b == 0 ? 0 : std::floor(a / b); }

// Quotients of whole numbers rounded down; remainders with the other sign.
std::vector<Change> floored_division(const Situation& at) {
  if (!at.has(0) || !is_integer(at.tensor(0).dtype())) return {};
  if (at.op() == "Mod") return {with_attribute(at, "fmod", 1 - at.call.integer("fmod", 0), "the sign of the remainder")};
  Change change = unchanged(at);
  const auto as_floats = [](const Tensor& tensor) {
    Tensor result(TensorType{DType::F64, tensor.shape()});
    store(result, doubles(tensor));
    return result;
  };
  // The quotient in float64 is exact enough to tell on which side of a whole number it lies, up to 2^53.
  change.inputs = {as_floats(at.tensor(0)), as_floats(at.tensor(1))};
  change.finish = [](std::span<double> values) {
    for (double& value : values) value = std::isfinite(value) ? floored(value, 1) : 0;
  };
  return {change};
}

std::vector<Change> limited_infinity(const Situation& at) {
  const auto limit = [](double value) {
    return std::fabs(value) > float16_format.largest ? std::copysign(float16_format.largest, value) : value;
  };
  std::vector<Change> changes;
  changes.push_back(with_result(
      at,
      [limit](std::span<double> values) {
        for (double& value : values) value = limit(value);
      },
      "in the result"));
  Change inputs = unchanged(at);
  for (size_t i = 0; i < inputs.inputs.size(); ++i) {
    if (at.has_floats(i)) inputs.inputs[i] = mapped(at.tensor(i), limit);
  }
  inputs.detail = "in what goes in";
  changes.push_back(std::move(inputs));
  return changes;
}

std::vector<Change> flushed(const Situation& at) {
  std::vector<Change> changes;
  if (!is_float(at.stored)) return {};
  std::vector<Format> formats{format_of(at.stored)};
  if (at.stored == DType::F32) formats.push_back(float16_format);
  for (const Format& format : formats) {
    const double least = std::ldexp(1.0, format.lowest_exponent);
    const auto flush = [least](double value) { return std::fabs(value) < least ? std::copysign(0.0, value) : value; };
    const std::string which = format == float16_format && at.stored == DType::F32 ? " below float16's range" : "";
    changes.push_back(with_result(
        at,
        [flush](std::span<double> values) {
          for (double& value : values) value = flush(value);
        },
        cat("in the result", which)));
    Change inputs = unchanged(at);
    for (size_t i = 0; i < inputs.inputs.size(); ++i) {
      if (at.has_floats(i)) inputs.inputs[i] = mapped(at.tensor(i), flush);
    }
    inputs.detail = cat("in what goes in", which);
    changes.push_back(std::move(inputs));
  }
  return changes;
}

}  // namespace

void add_value_causes(std::vector<Entry>& table) {
  table.push_back({"nan-as-number",
                   "takes NaN for a number where it compares",
                   "Find where the NaN comes from; the target's minimum and maximum drop it.",
                   1,
                   true,
                   {"Min", "Max", "Relu", "Clip", "LeakyRelu", "ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool",
                    "unmoor:FusedConv", "unmoor:FusedMatMul"},
                   nan_loses});
  table.push_back({"floor-division",
                   "rounds quotients of whole numbers down instead of towards zero",
                   "Divide magnitudes and put the sign back, or use the target's truncating division.",
                   1,
                   true,
                   {"Div", "Mod"},
                   floored_division});
  table.push_back({"float16-infinity",
                   "has ±65504 where an infinity belongs",
                   "Let float16 overflow to infinity, or keep the value in float32.",
                   1,
                   false,
                   {},
                   limited_infinity});
  table.push_back({"denormals-flushed",
                   "takes denormal numbers for 0",
                   "Turn off flush-to-zero, or scale the values up.",
                   1,
                   false,
                   {},
                   flushed});
}

}  // namespace unmoor::causes
