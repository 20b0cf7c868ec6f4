#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unmoor::onnx {

// Where a tensor lies outside of the model file.
struct ExternalPlace {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

// One StringStringEntryProto of TensorProto.external_data. Keys other than location, offset and length are passed over.
void read_external_entry(std::string_view bytes, ExternalPlace& place);

// The path of the file at `location`, which must lie in the folder of the model (of the link to it, or of what it links to).
// Fails with InvalidModel on anything that leaves it, with Io if there is no such file.
std::string external_path(const std::string& model_path, const std::string& location);

}  // namespace unmoor::onnx
