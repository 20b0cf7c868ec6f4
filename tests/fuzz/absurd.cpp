#include "tests/fuzz/absurd.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace unmoor::fuzz {
namespace {

constexpr std::array<int64_t, 32> integers{0,         1,         -1,         2,          3,    -2,   4,     7,     8,         -3,        10,
                                           16,        31,        64,         127,        128,  255,  -128,  1000,  -1000,     65536,     INT32_MAX,
                                           INT32_MIN, 1LL << 31, 1LL << 40,  1LL << 62,  -1LL << 62, 1LL << 53, -5,  INT64_MAX, INT64_MIN, INT64_MAX - 1};
constexpr std::array<float, 16> reals{0.0F,  1.0F,    -1.0F,   0.5F,     2.0F,  1e-3F, std::numeric_limits<float>::quiet_NaN(), 1e30F, -1e30F,
                                      1e-30F, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 1e-45F, -0.0F, 3.4e38F, 1e10F};
constexpr std::array<const char*, 24> words{"",        "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "constant", "reflect", "edge",
                                            "wrap",    "linear",     "cubic",      "none",  "mean",   "sum",      "add",     "max",
                                            "reverse", "tanh",       "bilinear",   "a",     "NHWC",   "ij,jk->ik", "...ij->", "\xff\xfe%s\n"};
constexpr std::array<int64_t, 24> dims{1, 2, 3, 4, 5, 0, 7, 8, 13, 16, 17, 31, 32, 33, 64, 6, 100, 127, 256, 257, 1024, 4096, 1LL << 40, INT64_MAX};

template <class T, class Make>
std::vector<T> absurd_list(Bytes& bytes, std::vector<T> list, Make make) {
  switch (bytes.below(6)) {
    case 0: break;
    case 1: list.clear(); break;
    case 2: list.push_back(make(bytes)); break;
    case 3:
      if (!list.empty()) list.pop_back();
      break;
    case 4: list.assign(1 + bytes.below(9), make(bytes)); break;
    default: std::ranges::reverse(list);
  }
  const size_t changes = list.empty() ? 0 : bytes.below(3);
  for (size_t i = 0; i < changes; ++i) list[bytes.below(list.size())] = make(bytes);
  return list;
}

Attribute of_another_kind(Bytes& bytes) {
  switch (bytes.below(7)) {
    case 0: return absurd_integer(bytes);
    case 1: return absurd_real(bytes);
    case 2: return absurd_text(bytes);
    case 3: return absurd_list(bytes, std::vector<int64_t>{1, 1}, absurd_integer);
    case 4: return absurd_list(bytes, std::vector<float>{1, 2}, absurd_real);
    case 5: return absurd_list(bytes, std::vector<std::string>{"a"}, absurd_text);
    default: return Tensor(TensorType{any_dtype(bytes), cheap(Shape{absurd_dim(bytes)})});
  }
}

// Its bits as they lie in memory.
uint64_t absurd_bits(Bytes& bytes, DType dtype, size_t size) {
  if (dtype == DType::F32) return std::bit_cast<uint32_t>(absurd_real(bytes));
  if (dtype == DType::F64) return std::bit_cast<uint64_t>(static_cast<double>(absurd_real(bytes)));
  return bytes.once_in(3) ? bytes.number(size) : static_cast<uint64_t>(absurd_integer(bytes));
}

}  // namespace

int64_t absurd_integer(Bytes& bytes) { return bytes.one_of(integers); }
float absurd_real(Bytes& bytes) { return bytes.one_of(reals); }
std::string absurd_text(Bytes& bytes) { return bytes.one_of(words); }
DType any_dtype(Bytes& bytes) { return static_cast<DType>(bytes.below(static_cast<size_t>(DType::C128) + 1)); }
int64_t absurd_dim(Bytes& bytes) { return bytes.one_of(dims); }

Attribute absurd_attribute(Bytes& bytes, const Attribute& like) {
  if (bytes.once_in(8)) return of_another_kind(bytes);
  if (std::holds_alternative<int64_t>(like)) return absurd_integer(bytes);
  if (std::holds_alternative<float>(like)) return absurd_real(bytes);
  if (std::holds_alternative<std::string>(like)) return absurd_text(bytes);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&like)) return absurd_list(bytes, *list, absurd_integer);
  if (const auto* list = std::get_if<std::vector<float>>(&like)) return absurd_list(bytes, *list, absurd_real);
  if (const auto* list = std::get_if<std::vector<std::string>>(&like)) return absurd_list(bytes, *list, absurd_text);
  if (const auto* tensor = std::get_if<Tensor>(&like)) {
    Tensor other(TensorType{bytes.once_in(4) ? any_dtype(bytes) : tensor->dtype(), cheap(Shape{absurd_dim(bytes)})});
    spoil(bytes, other);
    return other;
  }
  return like;
}

Shape cheap(Shape shape) {
  if (std::ranges::count(shape.dims(), 0) > 0) return shape;
  const auto large = [&] {
    double product = 1;
    for (const int64_t dim : shape.dims()) product *= static_cast<double>(dim);
    return product > static_cast<double>(most_elements);
  };
  while (large()) shape.set(static_cast<size_t>(std::ranges::max_element(shape.dims()) - shape.dims().begin()), 1);
  return shape;
}

void spoil(Bytes& bytes, Tensor& tensor) {
  const size_t count = tensor.elements();
  const size_t changes = count == 0 ? 0 : bytes.below(4);
  for (size_t i = 0; i < changes; ++i) {
    const size_t at = bytes.below(count);
    if (tensor.dtype() == DType::String) {
      tensor.writable_strings()[at] = absurd_text(bytes);
      continue;
    }
    const size_t size = std::clamp<size_t>(bits_of(tensor.dtype()) / 8, 1, 8);
    const auto raw = tensor.writable_bytes();
    const size_t from = std::min(at * size, raw.size() - size);
    const uint64_t bits = absurd_bits(bytes, tensor.dtype(), size);
    for (size_t k = 0; k < size; ++k) raw[from + k] = static_cast<std::byte>(bits >> (8 * k));
  }
}

}  // namespace unmoor::fuzz
