#include "unmoor/workbench/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/ops/real.h"
#include "unmoor/workbench/both.h"
#include "unmoor/workbench/noise/excess.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

// The step from |value| to the next number of the dtype.
double unit_of(DType dtype, double value) {
  int digits = 24;
  int lowest = -149;
  switch (dtype) {
    case DType::F64:
      digits = 53;
      lowest = -1074;
      break;
    case DType::F16:
      digits = 11;
      lowest = -24;
      break;
    case DType::BF16:
      digits = 8;
      lowest = -133;
      break;
    default:
      break;
  }
  if (value == 0) return std::ldexp(1.0, lowest);
  const int exponent = std::isnormal(value) ? static_cast<int>((std::bit_cast<uint64_t>(value) >> 52) & 0x7ff) - 1023 : std::ilogb(value);
  const int power = std::max(exponent + 1 - digits, lowest);
  return power >= -1022 ? std::bit_cast<double>(static_cast<uint64_t>(power + 1023) << 52) : std::ldexp(1.0, power);
}

// Root mean square of the values of smaller magnitude than `limit`.
double root_mean_square(std::span<const double> values, double limit) {
  double sum = 0;
  size_t count = 0;
  for (const double value : values) {
    if (!(std::fabs(value) < limit)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

// The size of what is expected, without a mask in it, whose size says nothing about the rest.
double size_of(std::span<const double> expected) { return root_mean_square(expected, mask_size(expected)); }

// How far two integers are apart; exact also where a double is not.
double distance(int64_t a, int64_t b, bool is_unsigned) {
  const bool above = is_unsigned ? static_cast<uint64_t>(a) > static_cast<uint64_t>(b) : a > b;
  const uint64_t apart = static_cast<uint64_t>(above ? a : b) - static_cast<uint64_t>(above ? b : a);
  return static_cast<double>(apart);
}

Metrics compare_exactly(const std::vector<int64_t>& expected, const std::vector<int64_t>& actual, bool is_unsigned = false) {
  Metrics metrics;
  metrics.elements = expected.size();
  size_t different = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == actual[i]) continue;
    const double error = distance(expected[i], actual[i], is_unsigned);
    if (error > metrics.max_abs) metrics.worst = i;
    metrics.max_abs = std::max(metrics.max_abs, error);
    ++different;
  }
  metrics.frac_over = expected.empty() ? 0 : static_cast<double>(different) / static_cast<double>(expected.size());
  metrics.over = different == 0 ? 0 : std::numeric_limits<double>::infinity();
  metrics.sqnr_db = std::numeric_limits<double>::infinity();
  return metrics;
}

// What lies at the end of the dtype's range may be infinite in it.
bool same_class(double expected, double actual, DType stored) {
  const bool overflows = std::isfinite(expected) && std::isinf(actual) && std::isinf(rounded(stored, 1.001 * expected));
  if (overflows) return std::signbit(expected) == std::signbit(actual);

  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return expected == actual;
  return true;
}

struct Sums {
  double error = 0, relative = 0, squares = 0, expected = 0, actual = 0, product = 0, signed_error = 0, units = 0;
  size_t count = 0, relatives = 0, over = 0, over_1e3 = 0;
};

// ln Σ e^x over a row, its largest taken out.
double log_sum(std::span<const double> row) {
  const double top = *std::ranges::max_element(row);
  double sum = 0;
  for (const double x : row) sum += std::exp(x - top);
  return top + std::log(sum);
}

// The metric kl. Rows with elements that are not finite are left out.
double divergence(std::span<const double> expected, std::span<const double> actual, const Shape& shape) {
  const size_t length = shape.rank() == 0 ? 0 : static_cast<size_t>(shape[shape.rank() - 1]);
  if (length < 2) return 0;
  double sum = 0;
  size_t rows = 0;
  for (size_t at = 0; at + length <= expected.size(); at += length) {
    const auto e = expected.subspan(at, length);
    const auto a = actual.subspan(at, length);
    const auto finite = [](double x) { return std::isfinite(x); };
    if (!std::ranges::all_of(e, finite) || !std::ranges::all_of(a, finite)) continue;
    const double of_e = log_sum(e);
    const double of_a = log_sum(a);
    for (size_t i = 0; i < length; ++i) sum += std::exp(e[i] - of_e) * ((e[i] - of_e) - (a[i] - of_a));
    ++rows;
  }
  return rows == 0 ? 0 : std::max(0.0, sum / static_cast<double>(rows));
}

// Gathers the sums over all elements, and what the metrics hold of single ones.
Sums summed(std::span<const double> expected, std::span<const double> actual, DType stored, Tolerance tolerance, Metrics& metrics) {
  const double absolute = tolerance.absolute * (tolerance.scaled ? size_of(expected) : 1);
  Sums sums;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = expected[i];
    const double a = actual[i];
    if (!same_class(e, a, stored)) {
      ++metrics.class_mismatch;
      metrics.mismatched.resize(expected.size());
      metrics.mismatched[i] = true;
    }
    if (!std::isfinite(e) || !std::isfinite(a)) continue;
    const double error = std::fabs(a - e);
    const double allowed = absolute + tolerance.relative * std::fabs(e);
    const double over = error == 0 ? 0 : error / std::max(allowed, std::numeric_limits<double>::min());
    if (over > metrics.over) {
      metrics.over = over;
      metrics.worst = i;
    }
    if (over > 1) ++sums.over;
    if (error > 1e-3 * std::fabs(e)) ++sums.over_1e3;
    metrics.max_abs = std::max(metrics.max_abs, error);
    const double units = error == 0 ? 0 : error / unit_of(stored, e);
    metrics.ulp_max = std::max(metrics.ulp_max, units);
    sums.units += units;
    if (e != 0) {
      metrics.max_rel = std::max(metrics.max_rel, error / std::fabs(e));
      sums.relative += error / std::fabs(e);
      ++sums.relatives;
    }
    sums.error += error;
    sums.signed_error += a - e;
    sums.squares += error * error;
    sums.expected += e * e;
    sums.actual += a * a;
    sums.product += a * e;
    ++sums.count;
  }
  return sums;
}

Metrics compare_floats(std::span<const double> expected, std::span<const double> actual, const Shape& shape, DType stored,
                       Tolerance tolerance) {
  Metrics metrics;
  metrics.elements = expected.size();
  Sums sums;
  double kl = 0;
  both([&] { sums = summed(expected, actual, stored, tolerance, metrics); },
       [&] { kl = std::ranges::equal(expected, actual) ? 0 : divergence(expected, actual, shape); });
  const auto count = static_cast<double>(std::max<size_t>(sums.count, 1));
  metrics.mean_abs = sums.error / count;
  metrics.mean_rel = sums.relatives == 0 ? 0 : sums.relative / static_cast<double>(sums.relatives);
  metrics.bias = sums.signed_error / count;
  metrics.rmse = std::sqrt(sums.squares / count);
  metrics.ulp_mean = sums.units / count;
  metrics.frac_over = static_cast<double>(sums.over) / count;
  metrics.frac_over_1e3 = static_cast<double>(sums.over_1e3) / count;
  metrics.kl = sums.squares == 0 ? 0 : kl;
  metrics.rel_l2 = sums.squares == 0 ? 0 : std::sqrt(sums.squares / std::max(sums.expected, std::numeric_limits<double>::min()));
  metrics.nmse = metrics.rel_l2 * metrics.rel_l2;
  metrics.sqnr_db = metrics.rel_l2 == 0 ? std::numeric_limits<double>::infinity() : -20 * std::log10(metrics.rel_l2);
  const double norms = std::sqrt(sums.expected) * std::sqrt(sums.actual);
  metrics.cosine = norms > 0 ? std::min(1.0, sums.product / norms) : (sums.squares == 0 ? 1 : 0);
  return metrics;
}

Metrics compare_strings(const Tensor& expected, const Tensor& actual) {
  const std::vector<int64_t> zeros(expected.elements());
  std::vector<int64_t> differs(expected.elements());
  for (size_t i = 0; i < differs.size(); ++i) differs[i] = expected.strings()[i] == actual.strings()[i] ? 0 : 1;
  return compare_exactly(zeros, differs);
}

// The worse of two, for the items of sequences: of the item that is furthest off, with the largest errors of any.
Metrics worse(const Metrics& a, const Metrics& b) {
  if (!a.problem.empty()) return a;
  if (!b.problem.empty()) return b;
  Metrics result = b.over > a.over ? b : a;
  result.max_abs = std::max(a.max_abs, b.max_abs);
  result.rel_l2 = std::max(a.rel_l2, b.rel_l2);
  result.frac_over = std::max(a.frac_over, b.frac_over);
  result.elements = a.elements + b.elements;
  result.class_mismatch = a.class_mismatch + b.class_mismatch;
  result.mismatched.clear();
  return result;
}

Metrics problem(std::string text) {
  Metrics metrics;
  metrics.problem = std::move(text);
  return metrics;
}

Metrics compare_tensors(const Tensor& expected, const Tensor& actual, DType stored, const std::optional<Tolerance>& tolerance) {
  if (expected.shape() != actual.shape()) return problem(cat("the shape is ", actual.shape(), ", not ", expected.shape()));
  const bool both_float = is_float(expected.dtype()) && is_float(actual.dtype());
  if (!both_float && expected.dtype() != actual.dtype())
    return problem(cat("the dtype is ", actual.dtype(), ", not ", expected.dtype()));
  if (expected.dtype() == DType::String) return compare_strings(expected, actual);
  if (expected.dtype() == DType::C64 || expected.dtype() == DType::C128) {
    const DType part = expected.dtype() == DType::C64 ? DType::F32 : DType::F64;
    const auto parts = [part](const Tensor& tensor) {
      Shape shape = tensor.shape();
      shape.push_back(2);
      return Tensor::view({part, shape}, tensor.bytes(), std::make_shared<Tensor>(tensor));
    };
    return compare_floats(doubles(parts(expected)), doubles(parts(actual)), expected.shape(), part,
                          tolerance.value_or(default_tolerance(part)));
  }
  if (!both_float) return compare_exactly(integers(expected), integers(actual), expected.dtype() == DType::U64);
  return compare_floats(RealInput(expected).numbers(), RealInput(actual).numbers(), expected.shape(), stored,
                        tolerance.value_or(default_tolerance(stored)));
}

}  // namespace

Tolerance default_tolerance(DType stored) {
  switch (stored) {
    case DType::F64:
      return {1e-12, 1e-12, true};
    case DType::F32:
      return {2e-5, 2e-5, true};
    case DType::F16:
      return {2e-3, 2e-3, true};
    case DType::BF16:
      return {1.6e-2, 1.6e-2, true};
    default:
      return {0.15, 0.15, true};
  }
}

Metrics compare(const Data& expected, const Data& actual, DType stored, const std::optional<Tolerance>& tolerance) {
  if (expected.is_tensor() && actual.is_tensor()) return compare_tensors(expected.tensor(), actual.tensor(), stored, tolerance);
  if (expected.is_sequence() && actual.is_sequence()) {
    const auto& e = expected.sequence().items;
    const auto& a = actual.sequence().items;
    if (e.size() != a.size()) return problem(cat("the sequence has ", a.size(), " items, not ", e.size()));
    Metrics metrics;
    for (size_t i = 0; i < e.size(); ++i) metrics = worse(metrics, compare(e[i], a[i], stored, tolerance));
    return metrics;
  }
  if (expected.is_map() && actual.is_map()) {
    Metrics metrics = compare(expected.map().keys, actual.map().keys, stored, tolerance);
    if (expected.map().values.size() != actual.map().values.size()) return problem("the maps differ in size");
    for (size_t i = 0; i < expected.map().values.size(); ++i) {
      metrics = worse(metrics, compare(expected.map().values[i], actual.map().values[i], stored, tolerance));
    }
    return metrics;
  }
  return !expected && !actual ? Metrics{} : problem("one is there and the other is not, or their kinds differ");
}

nlohmann::json metrics_json(const Metrics& m) {
  if (!m.problem.empty()) return {{"problem", m.problem}, {"excess_e", nullptr}, {"excess_p", nullptr}};
  const auto optional = [](const std::optional<double>& value) { return value ? measured(*value) : nlohmann::json(nullptr); };
  // A cosine near 1 has its meaning in the digits that its distance from 1 keeps.
  const nlohmann::json cosine = std::isfinite(m.cosine) ? nlohmann::json(std::round(m.cosine * 1e9) / 1e9) : number(m.cosine);
  return {{"max_abs", measured(m.max_abs)},
          {"mean_abs", measured(m.mean_abs)},
          {"max_rel", measured(m.max_rel)},
          {"mean_rel", measured(m.mean_rel)},
          {"cosine", cosine},
          {"rel_l2", measured(m.rel_l2)},
          {"rmse", measured(m.rmse)},
          {"nmse", measured(m.nmse)},
          {"sqnr_db", measured(m.sqnr_db)},
          {"kl", measured(m.kl)},
          {"ulp_max", measured(m.ulp_max)},
          {"ulp_mean", measured(m.ulp_mean)},
          {"frac_over", measured(m.frac_over)},
          {"frac_over_1e-3", measured(m.frac_over_1e3)},
          {"bias", measured(m.bias)},
          {"over", measured(m.over)},
          {"worst", m.worst},
          {"elements", m.elements},
          {"class_mismatch", m.class_mismatch},
          {"excess_e", optional(m.excess_e)},
          {"excess_p", optional(m.excess_p)},
          {"shrink", optional(m.shrink)},
          {"smooth", optional(m.smooth)},
          {"edge", optional(m.edge)}};
}

bool within_steps(const Metrics& metrics, double steps) {
  return metrics.problem.empty() && metrics.class_mismatch == 0 && metrics.ulp_max <= steps;
}

bool agrees_as_quantised(const Metrics& metrics) {
  return metrics.problem.empty() && metrics.class_mismatch == 0 && metrics.frac_over <= 0.02 && metrics.max_abs <= 1;
}

bool all_finite(const Data& data) {
  if (data.is_map()) return std::ranges::all_of(data.map().values, all_finite);
  if (data.is_sequence()) return std::ranges::all_of(data.sequence().items, all_finite);
  if (!data.is_tensor() || !is_float(data.tensor().dtype())) return true;
  return std::ranges::all_of(RealInput(data.tensor()).numbers(), [](double value) { return std::isfinite(value); });
}

bool has_nan(const Data& data) {
  if (data.is_map()) return std::ranges::any_of(data.map().values, has_nan);
  if (data.is_sequence()) return std::ranges::any_of(data.sequence().items, has_nan);
  if (!data.is_tensor() || !is_float(data.tensor().dtype())) return false;
  return std::ranges::any_of(RealInput(data.tensor()).numbers(), [](double value) { return std::isnan(value); });
}

}  // namespace unmoor
