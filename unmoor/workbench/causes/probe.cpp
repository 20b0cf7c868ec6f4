#include "unmoor/workbench/causes/probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/arithmetic.h"

namespace unmoor {
namespace {

using causes::Random;
// Values for a tensor whose last axis has `width` elements.
using Fill = std::function<void(std::span<double> values, size_t width, Random& random)>;

template <class Rule>
Fill each(Rule rule) {
  return [rule](std::span<double> values, size_t, Random& random) {
    for (double& value : values) value = rule(random);
  };
}

double wide(Random& random) { return random.normal() * std::exp2(20 * random.spread()); }
// About float16's greatest number, and about its least: half of each.
double at_limits(Random& random) {
  const double around = 0.9 + 0.2 * random.unit();
  const double limit = random.unit() < 0.5 ? 65504 : std::exp2(-14 - 10 * random.unit());
  return std::copysign(limit * around, random.spread());
}
// Halves and quarters, so that many quotients lie between two steps; zeros of both signs among them.
double tied(Random& random) {
  if (random.unit() < 0.1) return random.unit() < 0.5 ? 0.0 : -0.0;
  return std::floor(random.spread() * 40) / 4;
}
double denormal(Random& random) {
  return random.unit() < 0.5 ? random.normal() : random.spread() * std::exp2(-127 - 15 * random.unit());
}
double negative(Random& random) { return -std::fabs(random.normal()) * 3; }
double with_nan(Random& random) { return random.unit() < 0.15 ? std::numeric_limits<double>::quiet_NaN() : random.normal(); }

// Rows with a mean of 30 to 300 deviations, and one in four that hardly varies at all.
void far_from_zero(std::span<double> values, size_t width, Random& random) {
  for (size_t first = 0; first < values.size(); first += width) {
    const bool is_flat = random.unit() < 0.25;
    const double deviation = is_flat ? 1e-5 : 1;
    const double mean = is_flat ? 0 : std::copysign(30 * std::exp2(3.3 * random.unit()), random.spread());
    for (size_t i = first; i < std::min(first + width, values.size()); ++i) values[i] = mean + deviation * random.normal();
  }
}

// Large numbers, of which e^x alone overflows, and in each row some that are shut out; in one row of eight all of them.
void masked(std::span<double> values, size_t width, Random& random) {
  for (size_t first = 0; first < values.size(); first += width) {
    const double share = random.unit() < 0.125 ? 1 : 0.4;
    const double mean = random.unit() < 0.3 ? 95 : 0;
    for (size_t i = first; i < std::min(first + width, values.size()); ++i) {
      values[i] = random.unit() < share ? -std::numeric_limits<double>::infinity() : mean + 3 * random.normal();
    }
  }
}

// A mask to add: 0 and -infinity.
void mask_alone(std::span<double> values, size_t width, Random& random) {
  masked(values, width, random);
  for (double& value : values) value = std::isinf(value) ? value : 0;
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, op) != names.end();
}

bool compares(std::string_view op) {
  return is_one_of(op, {"Min", "Max", "Relu", "Clip", "LeakyRelu", "ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool",
                        "unmoor:FusedConv", "unmoor:FusedMatMul"});
}

bool has_softmax(std::string_view op) { return is_one_of(op, {"Softmax", "LogSoftmax"}); }
bool is_attention(std::string_view op) { return op.ends_with("Attention"); }

// Whether an input after the first may take any value: not a scale, a variance, a table or a bound.
bool takes_anything(const OpCall& call, size_t i) {
  if (i == 0) return true;
  const Op* const op = all_ops().find(call.node.op);
  if (op == nullptr) return false;
  if (is_attention(call.node.op)) return i <= 2;
  if (op->category == Category::Matrix || op->category == Category::Convolution) return true;
  return is_one_of(call.node.op, {"Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Mean", "SwiGLU", "Where", "Concat"});
}

bool can_vary(const OpCall& call, std::span<const Data> recorded, size_t i) {
  const bool is_float_tensor = i < recorded.size() && recorded[i].is_tensor() && is_float(recorded[i].tensor().dtype()) &&
                               bits_of(recorded[i].tensor().dtype()) >= 16;
  return is_float_tensor && call.constant(i) == nullptr && takes_anything(call, i);
}

Data filled(const Tensor& like, const Fill& fill, Random& random) {
  Tensor result(like.type());
  std::vector<double> values(like.elements());
  const Shape& shape = like.shape();
  const size_t width = shape.rank() == 0 ? 1 : static_cast<size_t>(std::max<int64_t>(shape[shape.rank() - 1], 1));
  fill(values, width, random);
  store(result, values);
  return result;
}

std::vector<Fill> fills_for(std::string_view op) {
  std::vector<Fill> fills{each([](Random& random) { return random.normal(); }),
                          each(wide),
                          each(at_limits),
                          each(tied),
                          each(denormal),
                          each(negative),
                          far_from_zero};
  if (has_softmax(op) || op == "Add") fills.emplace_back(masked);
  if (compares(op)) fills.push_back(each(with_nan));
  return fills;
}

// Where attention takes a mask to add, one of -infinities as well.
std::optional<std::vector<Data>> with_mask(const OpCall& call, std::span<const Data> recorded, Random& random) {
  if (!is_attention(call.node.op)) return std::nullopt;
  std::vector<Data> set(recorded.begin(), recorded.end());
  bool any = false;
  for (size_t i = 3; i < set.size() && i < 6; ++i) {
    if (!set[i].is_tensor() || !is_float(set[i].tensor().dtype()) || call.constant(i) != nullptr) continue;
    set[i] = filled(set[i].tensor(), mask_alone, random);
    any = true;
    break;
  }
  if (!any) return std::nullopt;
  return set;
}

}  // namespace

std::vector<std::vector<Data>> probing_inputs(const OpCall& call, std::span<const Data> recorded, uint64_t seed) {
  std::vector<std::vector<Data>> sets;
  uint64_t number = 0;
  for (const Fill& fill : fills_for(call.node.op)) {
    Random random(seed * 4096 + ++number);
    std::vector<Data> set(recorded.begin(), recorded.end());
    bool any = false;
    for (size_t i = 0; i < set.size(); ++i) {
      if (!can_vary(call, recorded, i)) continue;
      set[i] = filled(set[i].tensor(), fill, random);
      any = true;
    }
    if (any) sets.push_back(std::move(set));
  }
  Random random(seed * 4096);
  if (auto set = with_mask(call, recorded, random)) sets.push_back(std::move(*set));
  return sets;
}

}  // namespace unmoor
