#include "unmoor/ops/onnx_dtype.h"

#include <array>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

// In the order of DType.
constexpr std::array<int64_t, 26> numbers{1, 10, 16, 11, 3,  2,  5,  4,  6,  12, 7,  13, 9,
                                          8, 17, 18, 19, 20, 24, 23, 22, 21, 26, 25, 14, 15};

}  // namespace

int64_t onnx_number(DType dtype) { return numbers[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_numbered(int64_t number) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == number) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_attribute(const OpCall& call, std::string_view key) {
  if (!call.has_attribute(key)) return std::nullopt;
  const int64_t number = call.integer(key, 0);
  const auto dtype = dtype_numbered(number);
  if (!dtype) fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' is ", number, ", which is no element type");
  return dtype;
}

}  // namespace unmoor
