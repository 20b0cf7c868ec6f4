#include "unmoor/workbench/task/oddities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

constexpr size_t enough = 8;  // Samples from which it is known what is usual.

bool is_real(const Data& data) { return data.is_tensor() && is_float(data.tensor().dtype()); }

void count_classes(const std::vector<double>& values, size_t& nan, size_t& infinite) {
  for (const double x : values) {
    nan += std::isnan(x) ? 1 : 0;
    infinite += std::isinf(x) ? 1 : 0;
  }
}

struct Fence {
  double middle = 0, low = 0, high = 0;
};

// The median, and the quartiles less and more three times their distance (Tukey, "Exploratory data analysis", 1977: far out).
Fence fence_of(const std::vector<SampleTraits>& all, const std::function<double(const SampleTraits&)>& number) {
  std::vector<double> values;
  for (const SampleTraits& each : all) values.push_back(number(each));
  std::ranges::sort(values);
  const double first = values[values.size() / 4];
  const double third = values[values.size() - 1 - values.size() / 4];
  const double least = 1e-6 * std::max(std::fabs(first), std::fabs(third));
  const double apart = 3 * std::max(third - first, least);
  return {values[values.size() / 2], first - apart, third + apart};
}

}  // namespace

SampleTraits traits_of(const NamedData& inputs, const NamedData& outputs) {
  SampleTraits traits;
  double squares = 0;
  size_t finite = 0;
  traits.constant = std::ranges::any_of(inputs, [](const auto& each) { return is_real(each.second); });
  for (const auto& [name, data] : inputs) {
    if (!data.is_tensor()) continue;
    traits.elements += data.tensor().elements();
    if (!is_real(data)) continue;
    const auto values = doubles(data.tensor());
    count_classes(values, traits.nan, traits.infinite);
    traits.constant = traits.constant && std::ranges::all_of(values, [&](double x) { return x == values[0]; }) && values.size() > 1;
    for (const double x : values) {
      if (!std::isfinite(x)) continue;
      traits.low = finite == 0 ? x : std::min(traits.low, x);
      traits.high = finite == 0 ? x : std::max(traits.high, x);
      traits.largest = std::max(traits.largest, std::fabs(x));
      squares += x * x;
      ++finite;
    }
  }
  traits.rms = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
  for (const auto& [name, data] : outputs) {
    if (is_real(data)) count_classes(doubles(data.tensor()), traits.output_nan, traits.output_infinite);
  }
  return traits;
}

std::vector<std::string> oddities(const SampleTraits& sample, const std::vector<SampleTraits>& all) {
  std::vector<std::string> odd;
  const auto told = [&odd](size_t count, const char* what) {
    if (count > 0) odd.push_back(fmt::format("{} {}", count, what));
  };
  told(sample.nan, "NaN in its inputs");
  told(sample.infinite, "infinities in its inputs");
  told(sample.output_nan, "NaN in the target's outputs");
  told(sample.output_infinite, "infinities in the target's outputs");
  if (sample.constant) odd.push_back(sample.largest == 0 ? "nothing but zeros" : fmt::format("nothing but {}", short_number(sample.low)));
  if (all.size() < enough) return odd;
  const auto beyond = [&](const char* what, const std::function<double(const SampleTraits&)>& number) {
    const Fence fence = fence_of(all, number);
    const double value = number(sample);
    if (value >= fence.low && value <= fence.high) return;
    odd.push_back(fmt::format("{} {}, where {} is usual", what, short_number(value), short_number(fence.middle)));
  };
  beyond("its length is", [](const SampleTraits& each) { return static_cast<double>(each.elements); });
  beyond("its largest number is", [](const SampleTraits& each) { return each.largest; });
  beyond("its root mean square is", [](const SampleTraits& each) { return each.rms; });
  beyond("its range is", [](const SampleTraits& each) { return each.high - each.low; });
  return odd;
}

}  // namespace unmoor
