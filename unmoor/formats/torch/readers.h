#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>

#include "unmoor/formats/torch/pickle.h"
#include "unmoor/formats/torch/torch_file.h"
#include "unmoor/formats/zip_reader.h"

namespace unmoor {

// JSON of a file. Fails with InvalidModel, naming `from`, on what is none or nests deeper than any of PyTorch's does, with OutOfMemory
// as check_memory does.
nlohmann::json read_torch_json(std::string_view text, const std::string& from);

// The parts of read_torch_file. They fail as it does.
TorchFile read_exported_program(ZipReader& archive, const std::string& root);
TorchFile read_torchscript(ZipReader& archive, const std::string& root);
TorchFile read_zip_checkpoint(ZipReader& archive, const std::string& root);
TorchFile read_legacy_checkpoint(std::span<const std::byte> bytes);
TorchFile read_safetensors(std::span<const std::byte> bytes);

// What a checkpoint, or the pickle of a TorchScript, may name: plain data of Python and PyTorch.
bool is_plain_data(std::string_view module, std::string_view name);

// The tensors that a pickle holds, by their path in it ("model.fc.weight"), each value walked once. `bytes_of_storage` gives the bytes
// that the file has for a storage's key, and fails if it has none. Fails with InvalidModel on a tensor that is larger than its storage.
class StorageBytes {
 public:
  virtual ~StorageBytes() = default;
  virtual uint64_t operator()(const std::string& key, uint64_t claimed) const = 0;
};
// Storages that are entries of a zip file: `folder` and the key.
class ZipStorages : public StorageBytes {
 public:
  ZipStorages(const ZipReader& archive, std::string folder) : archive_(archive), folder_(std::move(folder)) {}
  uint64_t operator()(const std::string& key, uint64_t claimed) const override;

 private:
  const ZipReader& archive_;
  std::string folder_;
};
void collect_tensors(const Pickle& pickle, const StorageBytes& bytes_of_storage, TorchFile& into);

}  // namespace unmoor
