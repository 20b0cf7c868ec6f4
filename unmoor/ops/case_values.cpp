#include "unmoor/ops/case_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014). Only integer arithmetic and exact sums, so every machine makes the same inputs.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Close to normal: the sum of twelve uniform numbers (Irwin and Hall).
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += unit();
    return sum;
  }
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

// Both zeros, ties, denormals of float32 and float16, and values near the limits of 16-bit floats.
constexpr std::array<double, 14> sprinkles{-0.0, 0.5, 60000, -2.5, 6e-8, 1e-40, 1.5, -65504, 0.0, -0.5, 2.5, -1.5, 6.1e-5, -3e-6};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::array<double, 5> specials{infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0, 3.4e38};

template <size_t count>
void sprinkle(std::vector<double>& values, const std::array<double, count>& items, Random& random) {
  const size_t wanted = std::min(count, values.size() / 6);
  for (size_t i = 0; i < wanted; ++i) values[random.next() % values.size()] = items[i];
}

std::vector<double> floats(const std::string& generator, size_t count, Random& random) {
  std::vector<double> values(count);
  for (double& value : values) {
    if (generator == "positive") {
      value = 0.1 + 3.9 * random.unit();
    } else if (generator == "unit") {
      value = random.unit();
    } else {
      value = random.normal();
    }
  }
  if (generator.empty() || generator == "special") sprinkle(values, sprinkles, random);
  if (generator == "special") sprinkle(values, specials, random);
  return values;
}

// Eight bits and fewer: the whole range. Wider: small numbers, and some that no float32 holds.
std::vector<int64_t> integers_of(DType dtype, const std::string& generator, size_t count, Random& random) {
  const int bits = static_cast<int>(bits_of(dtype));
  const bool has_sign = is_signed(dtype);
  const int64_t top = bits > 8 ? 100 : (int64_t{1} << (has_sign ? bits - 1 : bits)) - 1;
  std::vector<int64_t> values(count);
  for (int64_t& value : values) {
    if (generator == "positive") {
      value = random.integer(1, std::min<int64_t>(top, 20));
    } else if (generator == "unit") {
      value = random.integer(0, 1);
    } else if (generator == "small") {
      value = random.integer(has_sign ? -std::min<int64_t>(top, 10) : 0, std::min<int64_t>(top, 10));
    } else {
      value = random.integer(has_sign ? (bits > 8 ? -top : -top - 1) : 0, top);
    }
  }
  if (generator.empty() && bits >= 32 && count >= 8) values[random.next() % count] = (1 << 24) + 1;
  return values;
}

// The N of "index:N".
int64_t bound_of(const std::string& generator) {
  const size_t colon = generator.find(':') + 1;
  int64_t bound = 0;
  const char* const end = generator.data() + generator.size();
  const auto result = std::from_chars(generator.data() + colon, end, bound);
  if (result.ec != std::errc() || result.ptr != end || bound < 1 || bound > (int64_t{1} << 40)) {
    fail(ErrorKind::InvalidArgument, "generator '", generator, "' needs a positive number after the colon");
  }
  return bound;
}

std::vector<int64_t> indices(const std::string& generator, size_t count, Random& random) {
  const int64_t bound = bound_of(generator);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = random.integer(generator.starts_with("signed_") ? -bound : 0, bound - 1);
  return values;
}

void store_mask(Tensor& tensor, Random& random) {
  const Shape& shape = tensor.shape();
  const size_t row = shape.rank() == 0 ? 1 : static_cast<size_t>(std::max<int64_t>(shape[shape.rank() - 1], 1));
  const bool additive = is_float(tensor.dtype());
  std::vector<double> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    const bool open = random.next() % 3 != 0 || i % row == 0;
    values[i] = additive ? (open ? 0 : -infinity) : (open ? 1 : 0);
  }
  store(tensor, values);
}

Tensor strings(const Shape& shape, Random& random) {
  constexpr std::array<const char*, 7> words{"alpha", "Beta", "", "the quick fox", "\xc3\xa9t\xc3\xa9", "12", "beta"};
  std::vector<std::string> values(static_cast<size_t>(shape.elements()));
  for (auto& value : values) value = words[random.next() % words.size()];
  return Tensor::of_strings(shape, std::move(values));
}

// The nearest int64, 0 for NaN; for uint64 the one of the same bits.
int64_t whole(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  if (dtype == DType::U64 && value >= 0x1p63)
    return static_cast<int64_t>(value >= 0x1p64 ? UINT64_MAX : static_cast<uint64_t>(value));
  if (value >= 0x1p63) return INT64_MAX;
  return value <= -0x1p63 ? INT64_MIN : static_cast<int64_t>(value);
}

Tensor given(const Case::Input& input) {
  if (input.type.dtype == DType::String) return Tensor::of_strings(input.type.shape, input.texts);
  Tensor tensor(input.type);
  if (is_float(input.type.dtype)) {
    store(tensor, input.values);
    return tensor;
  }
  std::vector<int64_t> values;
  for (const double value : input.values) values.push_back(whole(input.type.dtype, value));
  store(tensor, values);
  return tensor;
}

Tensor complex_numbers(const TensorType& type, Random& random) {
  Tensor tensor(type);
  Tensor parts(TensorType{type.dtype == DType::C64 ? DType::F32 : DType::F64, Shape{2 * type.shape.elements()}});
  store(parts, floats("small", parts.elements(), random));
  std::ranges::copy(parts.bytes(), tensor.writable_bytes().begin());
  return tensor;
}

bool is_known_generator(const std::string& generator) {
  for (const char* known : {"", "positive", "unit", "small", "special", "mask"}) {
    if (generator == known) return true;
  }
  return generator.starts_with("index:") || generator.starts_with("signed_index:");
}

}  // namespace

Tensor make_input(const Case::Input& input, uint64_t seed) {
  if (!is_known_generator(input.generator))
    fail(ErrorKind::InvalidArgument, "there is no input generator '", input.generator, "'");
  if (!input.values.empty() || !input.texts.empty()) return given(input);
  const DType dtype = input.type.dtype;
  Random random(seed);
  if (dtype == DType::String) return strings(input.type.shape, random);
  if (dtype == DType::C64 || dtype == DType::C128) return complex_numbers(input.type, random);
  Tensor tensor(input.type);
  const size_t count = tensor.elements();
  if (input.generator == "mask") {
    store_mask(tensor, random);
  } else if (input.generator.find(':') != std::string::npos) {
    store(tensor, indices(input.generator, count, random));
  } else if (is_float(dtype)) {
    store(tensor, floats(input.generator, count, random));
  } else if (dtype == DType::Bool) {
    store(tensor, integers_of(DType::U8, "unit", count, random));
  } else {
    store(tensor, integers_of(dtype, input.generator, count, random));
  }
  return tensor;
}

Map make_map(const Case::Input& input) {
  const Tensor values = given(input);
  Map map;
  if (input.key == DType::String) {
    map.keys = Tensor::of_strings(input.type.shape, input.keys);
  } else {
    std::vector<int64_t> numbers;
    for (const std::string& key : input.keys) {
      int64_t number = 0;
      const auto result = std::from_chars(key.data(), key.data() + key.size(), number);
      if (result.ec != std::errc() || result.ptr != key.data() + key.size()) fail(ErrorKind::InvalidArgument, "the key '", key, "' is no whole number");
      numbers.push_back(number);
    }
    map.keys = Tensor::from<int64_t>(input.type.shape, numbers);
  }
  for (size_t i = 0; i < input.keys.size(); ++i) {
    Tensor value(TensorType{input.type.dtype, Shape()});
    ElementCopy(values, value)(static_cast<int64_t>(i), 0);
    map.values.emplace_back(std::move(value));
  }
  return map;
}

Type map_type(const Case::Input& input) {
  return MapType{input.key.value_or(DType::I64), std::make_shared<const Type>(TensorType{input.type.dtype, Shape()})};
}

}  // namespace unmoor
