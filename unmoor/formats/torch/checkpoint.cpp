#include <algorithm>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/formats/torch/readers.h"

namespace unmoor {
namespace {

using Kind = Pickle::Kind;

// Those that lie behind the pickles: how long they are is known only from the tensors.
class BehindPickles : public StorageBytes {
 public:
  uint64_t operator()(const std::string& key, uint64_t claimed) const override {
    bytes_[key] = claimed;
    return claimed;
  }
  const std::map<std::string, uint64_t>& bytes() const { return bytes_; }

 private:
  mutable std::map<std::string, uint64_t> bytes_;
};

// torch/serialization.py of PyTorch: what its files began with before 1.6.
constexpr std::string_view magic_number{"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10};
constexpr int64_t protocol = 1001;

Pickle next_pickle(std::span<const std::byte>& rest) {
  Pickle pickle = Pickle::read(rest, is_plain_data);
  rest = rest.subspan(pickle.used());
  return pickle;
}

// Each storage is its length, 8 bytes, and its elements, in the order of the list of keys.
void check_storages(std::span<const std::byte> rest, const Pickle& keys, const std::map<std::string, uint64_t>& bytes) {
  size_t found = 0;
  for (const Pickle::Id id : keys.root().items) {
    const auto known = bytes.find(keys[id].text);
    if (known == bytes.end()) fail(ErrorKind::InvalidModel, "the file has a storage '", keys[id].text.substr(0, 100), "' that no tensor lies in");
    if (rest.size() < 8 || rest.size() - 8 < known->second)
      fail(ErrorKind::InvalidModel, "the file ends in the middle of its weights: storage '", known->first, "' needs ", known->second, " bytes");
    rest = rest.subspan(8 + known->second);
    ++found;
  }
  if (found < bytes.size()) fail(ErrorKind::InvalidModel, "the file holds ", found, " of the ", bytes.size(), " storages of its tensors");
}

}  // namespace

TorchFile read_zip_checkpoint(ZipReader& archive, const std::string& root) {
  TorchFile file;
  file.described = "checkpoint of torch.save";
  const auto bytes = archive.read(*archive.find(cat(root, "data.pkl")), Pickle::most_bytes);
  collect_tensors(Pickle::read(*bytes, is_plain_data), ZipStorages(archive, cat(root, "data/")), file);
  return file;
}

TorchFile read_legacy_checkpoint(std::span<const std::byte> bytes) {
  TorchFile file;
  file.described = "checkpoint of torch.save, in the form before torch 1.6";
  std::span<const std::byte> rest = bytes;
  const Pickle magic = next_pickle(rest);
  if (magic.root().kind != Kind::LongInt || magic.root().text != magic_number)
    fail(ErrorKind::Unsupported, "this is a pickle, but none that torch.save wrote");
  const Pickle version = next_pickle(rest);
  if (version.root().kind != Kind::Int || version.root().number != protocol)
    fail(ErrorKind::Unsupported, "the checkpoint has protocol ", version.root().number, "; ", protocol, " is the only one that torch.save wrote");
  const Pickle system = next_pickle(rest);
  const auto little = std::ranges::find_if(system.root().items, [&](Pickle::Id id) { return system[id].text == "little_endian"; });
  if (little != system.root().items.end() && little + 1 != system.root().items.end() && system[*(little + 1)].number != 1)
    fail(ErrorKind::Unsupported, "the checkpoint is of a big-endian machine");
  const Pickle content = next_pickle(rest);
  const BehindPickles storages;
  collect_tensors(content, storages, file);
  const Pickle keys = next_pickle(rest);
  check_storages(rest, keys, storages.bytes());
  return file;
}

}  // namespace unmoor
