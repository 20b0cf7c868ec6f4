#include "unmoor/tensor/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"

namespace unmoor {
namespace {

// A small floating format. Formats without infinities keep their largest values finite.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;  // Exponent all ones: infinity and NaN, as IEEE.
  bool unsigned_zero;  // The "uz" formats: NaN is the pattern of minus zero.
  bool has_nan;
};

constexpr Format f16_format{5, 10, 15, true, false, true};
constexpr Format bf16_format{8, 7, 127, true, false, true};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3FN: return {4, 3, 7, false, false, true};
    case DType::F8E4M3FNUZ: return {4, 3, 8, false, true, true};
    case DType::F8E5M2: return {5, 2, 15, true, false, true};
    case DType::F8E5M2FNUZ: return {5, 2, 16, false, true, true};
    case DType::F4E2M1: return {2, 1, 1, false, false, false};
    case DType::F16: return f16_format;
    case DType::BF16: return bf16_format;
    default: fail(ErrorKind::Internal, name(dtype), " is no small floating type");
  }
}

uint32_t sign_bit(const Format& f) { return 1U << (f.exponent_bits + f.mantissa_bits); }

// The pattern of the largest finite value.
uint32_t largest(const Format& f) {
  const uint32_t all = sign_bit(f) - 1;
  if (f.has_infinity) return (((1U << f.exponent_bits) - 1) << f.mantissa_bits) - 1;
  return f.has_nan && !f.unsigned_zero ? all - 1 : all;
}

uint32_t nan_bits(const Format& f) {
  if (f.unsigned_zero) return sign_bit(f);
  const uint32_t all = sign_bit(f) - 1;
  return f.has_infinity ? ((((1U << f.exponent_bits) - 1) << f.mantissa_bits) | (1U << (f.mantissa_bits - 1))) : all;
}

double decode(const Format& f, uint32_t bits) {
  const bool negative = (bits & sign_bit(f)) != 0;
  const uint32_t rest = bits & (sign_bit(f) - 1);
  if (f.unsigned_zero && bits == sign_bit(f)) return std::numeric_limits<double>::quiet_NaN();
  const auto exponent = static_cast<int>(rest >> f.mantissa_bits);
  const uint32_t mantissa = rest & ((1U << f.mantissa_bits) - 1);
  double value = 0;
  if (f.has_infinity && exponent == (1 << f.exponent_bits) - 1) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (!f.has_infinity && f.has_nan && !f.unsigned_zero && rest == sign_bit(f) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1U << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
  }
  return negative ? -value : value;
}

uint32_t overflow(const Format& f, bool saturate, uint32_t sign) {
  if (saturate || !f.has_nan) return sign | largest(f);
  if (f.has_infinity) return sign | (((1U << f.exponent_bits) - 1) << f.mantissa_bits);
  return f.unsigned_zero ? nan_bits(f) : sign | nan_bits(f);
}

// Rounds once, to nearest and ties to even.
uint32_t encode(const Format& f, double value, bool saturate) {
  const uint32_t sign = std::signbit(value) ? sign_bit(f) : 0;
  if (std::isnan(value)) return f.has_nan ? (f.unsigned_zero ? nan_bits(f) : sign | nan_bits(f)) : sign | largest(f);
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return overflow(f, saturate, sign);
  if (magnitude == 0) return f.unsigned_zero ? 0 : sign;
  int exponent = std::ilogb(magnitude);
  exponent = std::max(exponent, 1 - f.bias);
  const double steps = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));  // Exact but for the rounding.
  if (exponent > f.bias + 1) return overflow(f, saturate, sign);
  auto mantissa = static_cast<uint32_t>(steps);
  auto biased = static_cast<uint32_t>(exponent + f.bias);
  if (mantissa < (1U << f.mantissa_bits)) {
    biased = 0;  // Subnormal.
  } else if (mantissa == (2U << f.mantissa_bits)) {
    mantissa >>= 1;
    ++biased;
  }
  const uint32_t bits = (biased << f.mantissa_bits) | (mantissa & ((1U << f.mantissa_bits) - 1));
  if (bits > largest(f)) return overflow(f, saturate, sign);
  return f.unsigned_zero && bits == 0 ? 0 : sign | bits;
}

unsigned packed(const std::byte* bytes, size_t bits, size_t i) {
  const size_t per_byte = 8 / bits;
  return (std::to_integer<unsigned>(bytes[i / per_byte]) >> ((i % per_byte) * bits)) & ((1U << bits) - 1);
}

void set_packed(std::byte* bytes, size_t bits, size_t i, unsigned value) {
  const size_t per_byte = 8 / bits;
  const auto shift = (i % per_byte) * bits;
  const auto mask = static_cast<unsigned>(((1U << bits) - 1) << shift);
  const unsigned old = std::to_integer<unsigned>(bytes[i / per_byte]);
  bytes[i / per_byte] = static_cast<std::byte>((old & ~mask) | ((value << shift) & mask));
}

template <class T>
T read(const std::byte* bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write(std::byte* bytes, size_t i, T value) {
  std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
}

int64_t extended(unsigned value, unsigned bits) {
  const auto limit = 1U << (bits - 1);
  return static_cast<int64_t>(value) - (value >= limit ? static_cast<int64_t>(2 * limit) : 0);
}

double number(DType dtype, const std::byte* at, size_t i) {
  switch (dtype) {
    case DType::F32: return static_cast<double>(read<float>(at, i));
    case DType::F64: return read<double>(at, i);
    case DType::F16: return decode(f16_format, read<uint16_t>(at, i));
    case DType::BF16: return static_cast<double>(from_bf16(read<uint16_t>(at, i)));
    case DType::F8E8M0: return static_cast<double>(from_f8(dtype, read<uint8_t>(at, i)));
    case DType::F8E4M3FN:
    case DType::F8E4M3FNUZ:
    case DType::F8E5M2:
    case DType::F8E5M2FNUZ: return decode(format_of(dtype), read<uint8_t>(at, i));
    case DType::F4E2M1: return decode(format_of(dtype), packed(at, 4, i));
    default: fail(ErrorKind::InvalidArgument, "elements of ", dtype, " are no real numbers");
  }
}

int64_t whole(DType dtype, const std::byte* at, size_t i) {
  switch (dtype) {
    case DType::I8: return read<int8_t>(at, i);
    case DType::U8: return read<uint8_t>(at, i);
    case DType::Bool: return read<uint8_t>(at, i) != 0;
    case DType::I16: return read<int16_t>(at, i);
    case DType::U16: return read<uint16_t>(at, i);
    case DType::I32: return read<int32_t>(at, i);
    case DType::U32: return read<uint32_t>(at, i);
    case DType::I64: return read<int64_t>(at, i);
    case DType::U64: return static_cast<int64_t>(read<uint64_t>(at, i));
    case DType::I4: return extended(packed(at, 4, i), 4);
    case DType::U4: return packed(at, 4, i);
    case DType::I2: return extended(packed(at, 2, i), 2);
    case DType::U2: return packed(at, 2, i);
    default: fail(ErrorKind::InvalidArgument, "elements of ", dtype, " are no integers");
  }
}

// Toward zero; NaN is 0; what int64 cannot hold saturates.
int64_t truncated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (value <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

void set_number(DType dtype, std::byte* at, size_t i, double value) {
  switch (dtype) {
    case DType::F32: return write(at, i, static_cast<float>(value));
    case DType::F64: return write(at, i, value);
    case DType::F16: return write(at, i, to_f16(value));
    case DType::BF16: return write(at, i, to_bf16(value));
    case DType::F4E2M1: return set_packed(at, 4, i, to_f4(value));
    default: return write(at, i, to_f8(dtype, value, true));
  }
}

void set_whole(DType dtype, std::byte* at, size_t i, int64_t value) {
  switch (dtype) {
    case DType::Bool: return write(at, i, static_cast<uint8_t>(value != 0));
    case DType::I8:
    case DType::U8: return write(at, i, static_cast<uint8_t>(value));
    case DType::I16:
    case DType::U16: return write(at, i, static_cast<uint16_t>(value));
    case DType::I32:
    case DType::U32: return write(at, i, static_cast<uint32_t>(value));
    case DType::I64:
    case DType::U64: return write(at, i, value);
    case DType::I4:
    case DType::U4: return set_packed(at, 4, i, static_cast<unsigned>(value) & 15U);
    case DType::I2:
    case DType::U2: return set_packed(at, 2, i, static_cast<unsigned>(value) & 3U);
    default: fail(ErrorKind::InvalidArgument, "integers cannot be stored as ", dtype);
  }
}

// float16 by the bits of a float32 whose exponent is 112 too small: exact, also below the normal numbers.
double from_half(uint16_t bits) {
  const uint32_t rest = (bits & 0x7fffU) << 13;
  const bool finite = (bits & 0x7c00U) != 0x7c00U;
  const float size = finite ? std::bit_cast<float>(rest) * 0x1p112F : std::bit_cast<float>(rest | 0x7f800000U);
  return static_cast<double>((bits & 0x8000U) != 0 ? -size : size);
}

// The numbers read_one(i) as a range: a vector made of it is filled as it is allocated, not zeroed before.
template <class Read>
struct Reading {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = double;
  using difference_type = std::ptrdiff_t;
  using pointer = const double*;
  using reference = double;

  const Read* read_one;
  size_t i;

  double operator*() const { return (*read_one)(i); }
  Reading& operator++() { return ++i, *this; }
  Reading& operator+=(std::ptrdiff_t by) { return i += static_cast<size_t>(by), *this; }
  std::ptrdiff_t operator-(const Reading& other) const { return static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(other.i); }
  bool operator==(const Reading& other) const { return i == other.i; }
  bool operator!=(const Reading& other) const { return i != other.i; }
};

template <class Read>
std::vector<double> read_all(size_t count, const Read& read_one) {
  return std::vector<double>(Reading<Read>{&read_one, 0}, Reading<Read>{&read_one, count});
}

// The most frequent dtypes without a decision for each element. Nothing: it is none of them.
std::optional<std::vector<double>> read_floats(DType dtype, const std::byte* at, size_t count) {
  switch (dtype) {
    case DType::F64: return read_all(count, [at](size_t i) { return read<double>(at, i); });
    case DType::F32: return read_all(count, [at](size_t i) { return static_cast<double>(read<float>(at, i)); });
    case DType::F16: return read_all(count, [at](size_t i) { return from_half(read<uint16_t>(at, i)); });
    case DType::BF16: return read_all(count, [at](size_t i) { return static_cast<double>(from_bf16(read<uint16_t>(at, i))); });
    default: return std::nullopt;
  }
}

bool write_floats(DType dtype, std::byte* at, std::span<const double> values) {
  const auto each = [&](auto&& converted) {
    for (size_t i = 0; i < values.size(); ++i) write(at, i, converted(values[i]));
    return true;
  };
  if (dtype == DType::F64) return each([](double value) { return value; });
  return dtype == DType::F32 && each([](double value) { return static_cast<float>(value); });
}

void check_count(const Tensor& tensor, size_t count) {
  if (tensor.elements() != count) fail(ErrorKind::Internal, count, " values were to fill a tensor of ", tensor.type());
}

}  // namespace

float from_f16(uint16_t bits) { return static_cast<float>(decode(f16_format, bits)); }
uint16_t to_f16(double value) { return static_cast<uint16_t>(encode(f16_format, value, false)); }
float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t to_bf16(double value) { return static_cast<uint16_t>(encode(bf16_format, value, false)); }
float from_f4(uint8_t bits) { return static_cast<float>(decode(format_of(DType::F4E2M1), bits & 15U)); }
uint8_t to_f4(double value) { return static_cast<uint8_t>(encode(format_of(DType::F4E2M1), value, true)); }

float from_f8(DType dtype, uint8_t bits) {
  if (dtype == DType::F8E8M0) return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, bits - 127);
  return static_cast<float>(decode(format_of(dtype), bits));
}

uint8_t to_f8(DType dtype, double value, bool saturate) {
  if (dtype != DType::F8E8M0) return static_cast<uint8_t>(encode(format_of(dtype), value, saturate));
  if (std::isnan(value)) return 255;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return saturate ? 254 : 255;
  if (magnitude == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // In [0.5, 1).
  int power = exponent - 1 + (fraction >= 0.75 ? 1 : 0);     // To the nearest power of two, ties up.
  power = std::max(power, -127);
  if (power > 127) return saturate ? 254 : 255;
  return static_cast<uint8_t>(power + 127);
}

std::vector<double> doubles(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  const size_t count = tensor.elements();
  const std::byte* const at = tensor.bytes().data();
  check_memory(count * sizeof(double));
  if (auto read = read_floats(dtype, at, count)) return std::move(*read);
  std::vector<double> values(count);
  if (dtype == DType::U64) {
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<double>(read<uint64_t>(at, i));
  } else if (is_float(dtype)) {
    for (size_t i = 0; i < count; ++i) values[i] = number(dtype, at, i);
  } else {
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<double>(whole(dtype, at, i));
  }
  return values;
}

std::vector<int64_t> integers(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  const std::byte* const at = tensor.bytes().data();
  check_memory(tensor.elements() * sizeof(int64_t));
  std::vector<int64_t> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = is_float(dtype) ? truncated(number(dtype, at, i)) : whole(dtype, at, i);
  return values;
}

void store(Tensor& tensor, std::span<const double> values) {
  check_count(tensor, values.size());
  const DType dtype = tensor.dtype();
  std::byte* const at = tensor.writable_bytes().data();
  if (write_floats(dtype, at, values)) return;
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_float(dtype)) {
      set_number(dtype, at, i, values[i]);
    } else if (dtype == DType::Bool) {
      set_whole(dtype, at, i, values[i] != 0 ? 1 : 0);
    } else if (dtype == DType::U64 && values[i] >= 9223372036854775808.0) {
      write(at, i, values[i] >= 18446744073709551616.0 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(values[i]));
    } else {
      set_whole(dtype, at, i, truncated(values[i]));
    }
  }
}

void store(Tensor& tensor, std::span<const int64_t> values) {
  check_count(tensor, values.size());
  const DType dtype = tensor.dtype();
  std::byte* const at = tensor.writable_bytes().data();
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_float(dtype)) {
      set_number(dtype, at, i, static_cast<double>(values[i]));
    } else {
      set_whole(dtype, at, i, values[i]);
    }
  }
}

double rounded(DType dtype, double value) {
  if (dtype == DType::F64) return value;
  if (dtype == DType::F32) return static_cast<double>(static_cast<float>(value));
  if (dtype == DType::F8E8M0) return static_cast<double>(from_f8(dtype, to_f8(dtype, value, true)));
  const auto format = format_of(dtype);
  return decode(format, encode(format, value, dtype != DType::F16 && dtype != DType::BF16));
}

}  // namespace unmoor
