#pragma once

#include <protozero/pbf_writer.hpp>
#include <string_view>

#include "unmoor/formats/onnx/wire.h"
#include "unmoor/tensor/shape.h"

namespace unmoor::onnx {

// TensorProto.DataType. An unknown code fails with InvalidModel, one that Unmoor lacks with Unsupported.
DType dtype_of(int64_t code);
int64_t code_of(DType dtype);

// A TypeProto. Dimensions without a number are unknown: no value, a name, "?" or a negative number.
Type read_type(std::string_view bytes);
void write_type(protozero::pbf_writer writer, const Type& type);

}  // namespace unmoor::onnx
