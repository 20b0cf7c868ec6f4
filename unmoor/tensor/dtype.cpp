#include "unmoor/tensor/dtype.h"

#include <array>

namespace unmoor {
namespace {

enum class Kind : uint8_t { Float, Signed, Unsigned, Other };

struct Row {
  std::string_view name;
  std::string_view short_name;
  size_t bits;
  Kind kind;
};

// In the order of DType.
constexpr std::array<Row, 26> rows{{
    {"float32", "f32", 32, Kind::Float},
    {"float16", "f16", 16, Kind::Float},
    {"bfloat16", "bf16", 16, Kind::Float},
    {"float64", "f64", 64, Kind::Float},
    {"int8", "i8", 8, Kind::Signed},
    {"uint8", "u8", 8, Kind::Unsigned},
    {"int16", "i16", 16, Kind::Signed},
    {"uint16", "u16", 16, Kind::Unsigned},
    {"int32", "i32", 32, Kind::Signed},
    {"uint32", "u32", 32, Kind::Unsigned},
    {"int64", "i64", 64, Kind::Signed},
    {"uint64", "u64", 64, Kind::Unsigned},
    {"bool", "bool", 8, Kind::Other},
    {"string", "string", 0, Kind::Other},
    {"float8e4m3fn", "f8e4m3fn", 8, Kind::Float},
    {"float8e4m3fnuz", "f8e4m3fnuz", 8, Kind::Float},
    {"float8e5m2", "f8e5m2", 8, Kind::Float},
    {"float8e5m2fnuz", "f8e5m2fnuz", 8, Kind::Float},
    {"float8e8m0", "f8e8m0", 8, Kind::Float},
    {"float4e2m1", "f4e2m1", 4, Kind::Float},
    {"int4", "i4", 4, Kind::Signed},
    {"uint4", "u4", 4, Kind::Unsigned},
    {"int2", "i2", 2, Kind::Signed},
    {"uint2", "u2", 2, Kind::Unsigned},
    {"complex64", "c64", 64, Kind::Other},
    {"complex128", "c128", 128, Kind::Other},
}};

const Row& row(DType dtype) { return rows[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }
std::string_view short_name(DType dtype) { return row(dtype).short_name; }

std::optional<DType> dtype_named(std::string_view either_name) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == either_name || rows[i].short_name == either_name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

size_t bits_of(DType dtype) { return row(dtype).bits; }
size_t bytes_of(DType dtype, size_t elements) {
  const size_t bits = bits_of(dtype);
  return bits >= 8 ? elements * (bits / 8) : (elements * bits + 7) / 8;
}
bool is_float(DType dtype) { return row(dtype).kind == Kind::Float; }
bool is_signed(DType dtype) { return row(dtype).kind == Kind::Signed; }
bool is_integer(DType dtype) { return row(dtype).kind == Kind::Signed || row(dtype).kind == Kind::Unsigned; }

}  // namespace unmoor
