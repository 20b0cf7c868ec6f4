#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unmoor {

// Element types: all of ONNX's TensorProto.DataType, and complex.
enum class DType : uint8_t {
  F32, F16, BF16, F64, I8, U8, I16, U16, I32, U32, I64, U64, Bool, String,
  F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1, I4, U4, I2, U2, C64, C128,
};

std::string_view name(DType dtype);        // "float32", "bfloat16", "int64", "bool": as users and NumPy spell it.
std::string_view short_name(DType dtype);  // "f32", "bf16", "i64": as case texts spell it.
std::optional<DType> dtype_named(std::string_view either_name);
inline std::string to_text(DType dtype) { return std::string(name(dtype)); }

size_t bits_of(DType dtype);  // 4 for I4; 0 for String.
// Bytes that `elements` take, sub-byte types packed. 0 for String.
size_t bytes_of(DType dtype, size_t elements);

bool is_float(DType dtype);    // Every floating type, the 8- and 4-bit ones included.
bool is_signed(DType dtype);   // Signed integers.
bool is_integer(DType dtype);  // Signed or unsigned; not Bool.

}  // namespace unmoor
