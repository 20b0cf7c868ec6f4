#include "unmoor/formats/onnx/write_tensor.h"

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/types.h"

namespace unmoor::onnx {

void write_tensor(protozero::pbf_writer writer, const Tensor& tensor, std::string_view name) {
  size_t size = tensor.bytes().size();
  if (tensor.dtype() == DType::String) {
    for (const auto& text : tensor.strings()) size += text.size();
  }
  if (size > most_bytes) {
    fail(ErrorKind::Unsupported, "tensor '", name, "' of ", size, " bytes is more than the 2 GiB that protobuf can hold");
  }
  const auto& dims = tensor.shape().dims();
  writer.add_packed_int64(tensor_field::dims, dims.begin(), dims.end());
  writer.add_int32(tensor_field::data_type, static_cast<int32_t>(code_of(tensor.dtype())));
  if (tensor.dtype() == DType::String) {
    for (const auto& text : tensor.strings()) writer.add_bytes(tensor_field::string_data, text);
  }
  writer.add_string(tensor_field::name, name.data(), name.size());
  if (tensor.dtype() != DType::String) {
    const auto bytes = tensor.bytes();
    writer.add_bytes(tensor_field::raw_data, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

}  // namespace unmoor::onnx
