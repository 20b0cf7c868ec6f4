#pragma once

#include <cstdint>
#include <optional>

#include "unmoor/tensor/dtype.h"

namespace unmoor {

// The number of a dtype in ONNX's TensorProto.DataType, as attributes such as Cast's `to` hold it.
int64_t onnx_number(DType dtype);
// Empty if ONNX has no such type.
std::optional<DType> dtype_numbered(int64_t number);

}  // namespace unmoor
