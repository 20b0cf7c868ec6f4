#include "unmoor/ops/onnx_dtype.h"

#include <array>

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

}  // namespace unmoor
