#pragma once

#include <protozero/pbf_writer.hpp>
#include <string_view>

#include "unmoor/tensor/tensor.h"

namespace unmoor::onnx {

// A TensorProto with raw data; strings as string_data.
void write_tensor(protozero::pbf_writer writer, const Tensor& tensor, std::string_view name);

}  // namespace unmoor::onnx
