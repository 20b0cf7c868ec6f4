#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "unmoor/ops/op.h"

namespace unmoor {

// The number of a dtype in ONNX's TensorProto.DataType, as attributes such as Cast's `to` hold it.
int64_t onnx_number(DType dtype);
// Empty if ONNX has no such type.
std::optional<DType> dtype_numbered(int64_t number);
// The dtype that an attribute of the call names by number; empty where there is none. Fails with InvalidModel on a number that is no dtype.
std::optional<DType> dtype_attribute(const OpCall& call, std::string_view key);

}  // namespace unmoor
