#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/formats/torch/readers.h"

namespace unmoor {
namespace {

using nlohmann::json;

// A header of JSON behind its length, 8 bytes; then the bytes that its offsets are about. As huggingface/safetensors documents it.
constexpr uint64_t most_header = 100'000'000;

TorchTensor read_entry(const std::string& name, const json& entry, uint64_t data_bytes) {
  const auto broken = [&](const auto&... what) { fail(ErrorKind::InvalidModel, "tensor '", name, "' of the safetensors file ", what...); };
  const bool is_whole = entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() && entry.contains("shape") &&
                        entry["shape"].is_array() && entry.contains("data_offsets") && entry["data_offsets"].is_array() &&
                        entry["data_offsets"].size() == 2;
  if (!is_whole) broken("lacks its dtype, shape or data_offsets");
  TorchTensor tensor{name, "", {}, name, 0};
  const auto dtype = torch_dtype(entry["dtype"].get<std::string>());
  if (dtype.bits == 0) broken("has the element type '", entry["dtype"].get<std::string>(), "', which is none");
  tensor.dtype = dtype.name;
  double elements = 1;
  for (const json& each : entry["shape"]) {
    if (!each.is_number_unsigned() || each.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) broken("has a size that is no number");
    tensor.shape.push_back(each.get<int64_t>());
    elements *= static_cast<double>(tensor.shape.back());
  }
  const json& offsets = entry["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) broken("has offsets that are no numbers");
  const auto begin = offsets[0].get<uint64_t>();
  const auto end = offsets[1].get<uint64_t>();
  tensor.bytes = elements * static_cast<double>(dtype.bits) / 8;
  if (begin > end || end > data_bytes) broken("ends at byte ", end, " of the ", data_bytes, " that the file has");
  if (static_cast<double>(end - begin) != tensor.bytes) broken("has ", end - begin, " bytes, not the ", tensor.bytes, " of its shape");
  return tensor;
}

}  // namespace

TorchFile read_safetensors(std::span<const std::byte> bytes) {
  TorchFile file;
  file.kind = TorchFile::Kind::Safetensors;
  file.described = "safetensors";
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i) header_bytes |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  if (bytes.size() < 8 || header_bytes > bytes.size() - 8 || header_bytes > most_header)
    fail(ErrorKind::InvalidModel, "the safetensors file has ", bytes.size(), " bytes and says that its header has ", header_bytes, " (at most ", most_header,
         ")");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header_bytes);
  const json header = read_torch_json(text, "the header of the safetensors file");
  if (!header.is_object()) fail(ErrorKind::InvalidModel, "the header of the safetensors file is no JSON object");
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    file.tensors.push_back(read_entry(name, entry, bytes.size() - 8 - header_bytes));
    places.emplace_back(entry["data_offsets"][0].get<uint64_t>(), entry["data_offsets"][1].get<uint64_t>());
    file.stored_bytes += file.tensors.back().bytes;
  }
  std::ranges::sort(places);
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].first < places[i - 1].second) fail(ErrorKind::InvalidModel, "two tensors of the safetensors file share bytes, at ", places[i].first);
  }
  return file;
}

}  // namespace unmoor
