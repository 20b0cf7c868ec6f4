#include "unmoor/workbench/statistics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/sha256.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

using nlohmann::json;

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t hashed(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::string hash_of(const Tensor& tensor) {
  Sha256 hash;
  if (tensor.dtype() == DType::String) {
    for (const std::string& text : tensor.strings()) {
      const std::string framed = cat(text.size(), ":", text);
      hash.add(std::as_bytes(std::span(framed)));
    }
  } else {
    hash.add(tensor.bytes());
  }
  return hash.finish();
}

bool is_number(DType dtype) { return dtype != DType::String && dtype != DType::C64 && dtype != DType::C128; }

double real(const json& from, const char* key) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_number()) fail(ErrorKind::InvalidModel, "statistics lack the number '", key, "'");
  return found->get<double>();
}

size_t count(const json& from, const char* key) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_number_unsigned()) fail(ErrorKind::InvalidModel, "statistics lack the count '", key, "'");
  return found->get<size_t>();
}

TensorType type_from(const json& from) {
  const auto dtype = from.find("dtype");
  const auto known = dtype != from.end() && dtype->is_string() ? dtype_named(dtype->get<std::string>()) : std::nullopt;
  const auto shape = from.find("shape");
  const auto is_size = [](const json& each) { return each.is_number_unsigned() && each.get<uint64_t>() < (uint64_t{1} << 40); };
  if (!known || shape == from.end() || !shape->is_array() || !std::ranges::all_of(*shape, is_size))
    fail(ErrorKind::InvalidModel, "statistics lack a dtype and a shape");
  double elements = 1;
  for (const auto& each : *shape) elements *= each.get<double>();
  if (elements >= 0x1p60) fail(ErrorKind::InvalidModel, "statistics are of a shape with ", elements, " elements, which no memory holds");
  return {*known, Shape(shape->get<std::vector<int64_t>>())};
}

}  // namespace

ValueStatistics value_statistics(const Tensor& tensor) {
  ValueStatistics result{tensor.type()};
  result.hash = hash_of(tensor);
  if (!is_number(tensor.dtype())) return result;
  result.sketch.resize(sketch_size);
  size_t finite = 0;
  double sum = 0;
  double squares = 0;
  const std::vector<double> values = doubles(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    result.nan += std::isnan(x) ? 1 : 0;
    if (std::isinf(x)) ++(x > 0 ? result.positive_infinite : result.negative_infinite);
    if (!std::isfinite(x)) continue;
    const uint64_t h = hashed(i);
    result.sketch[h % sketch_size] += (h >> 63) != 0 ? -x : x;
    result.low = finite == 0 ? x : std::min(result.low, x);
    result.high = finite == 0 ? x : std::max(result.high, x);
    sum += x;
    squares += x * x;
    ++finite;
  }
  const auto n = static_cast<double>(std::max<size_t>(finite, 1));
  result.mean = sum / n;
  result.rms = std::sqrt(squares / n);
  return result;
}

double estimated_distance(const ValueStatistics& a, const ValueStatistics& b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.sketch.size(), b.sketch.size()); ++i) sum += (a.sketch[i] - b.sketch[i]) * (a.sketch[i] - b.sketch[i]);
  return std::sqrt(sum / static_cast<double>(std::max<int64_t>(a.type.shape.elements(), 1)));
}

json statistics_json(const ValueStatistics& s) {
  return {{"dtype", name(s.type.dtype)}, {"shape", s.type.shape.dims()}, {"nan", s.nan}, {"positive_inf", s.positive_infinite},
          {"negative_inf", s.negative_infinite}, {"min", s.low}, {"max", s.high}, {"mean", s.mean}, {"rms", s.rms}, {"sketch", s.sketch},
          {"sha256", s.hash}};
}

ValueStatistics statistics_from(const json& from) {
  if (!from.is_object()) fail(ErrorKind::InvalidModel, "statistics are no object");
  ValueStatistics s{type_from(from)};
  s.nan = count(from, "nan");
  s.positive_infinite = count(from, "positive_inf");
  s.negative_infinite = count(from, "negative_inf");
  s.low = real(from, "min");
  s.high = real(from, "max");
  s.mean = real(from, "mean");
  s.rms = real(from, "rms");
  const auto sketch = from.find("sketch");
  const auto is_real = [](const json& each) { return each.is_number(); };
  if (sketch == from.end() || !sketch->is_array() || !std::ranges::all_of(*sketch, is_real))
    fail(ErrorKind::InvalidModel, "statistics lack the list of numbers 'sketch'");
  s.sketch = sketch->get<std::vector<double>>();
  const size_t wanted = is_number(s.type.dtype) ? sketch_size : 0;
  if (s.sketch.size() != wanted) fail(ErrorKind::InvalidModel, "a sketch has ", s.sketch.size(), " numbers, not ", wanted);
  const auto hash = from.find("sha256");
  if (hash == from.end() || !hash->is_string()) fail(ErrorKind::InvalidModel, "statistics lack the text 'sha256'");
  s.hash = hash->get<std::string>();
  return s;
}

}  // namespace unmoor
