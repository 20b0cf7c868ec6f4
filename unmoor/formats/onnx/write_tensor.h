#pragma once

#include <protozero/pbf_writer.hpp>
#include <string_view>

#include "unmoor/tensor/tensor.h"

namespace unmoor::onnx {

// What protobuf can hold, less some room.
constexpr size_t most_bytes = (size_t{1} << 31) - (size_t{1} << 20);

// A TensorProto with raw data; strings as string_data. Fails with Unsupported if that is more than protobuf can hold.
void write_tensor(protozero::pbf_writer writer, const Tensor& tensor, std::string_view name);

}  // namespace unmoor::onnx
