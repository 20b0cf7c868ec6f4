#include "unmoor/formats/torch/torch_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/torch/readers.h"

namespace unmoor {
namespace {

enum class Form : uint8_t { None, Zip, Pickle, Safetensors, Tar };

// By the first bytes: ONNX begins with a protobuf field and is none of these.
Form form_of(std::string_view start, uint64_t file_bytes) {
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return Form::Zip;
  // A pickle of protocol 2 or later; what torch.save wrote is a number of 10 bytes.
  if (start.size() > 2 && start[0] == '\x80' && (start[1] == '\x02' || start[1] == '\x03' || start[1] == '\x04' || start[1] == '\x05')) return Form::Pickle;
  if (start.size() > 262 && start.substr(257, 5) == "ustar") return Form::Tar;
  if (start.size() < 9 || start[8] != '{') return Form::None;
  uint64_t header = 0;
  for (size_t i = 0; i < 8; ++i) header |= uint64_t{static_cast<unsigned char>(start[i])} << (8 * i);
  return header < file_bytes ? Form::Safetensors : Form::None;
}

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// What all entries of PyTorch's zip files lie in: "model/", named after the file.
std::string root_of(const ZipReader& archive) {
  if (archive.entries().empty()) return "";
  const std::string& first = archive.entries()[0].name;
  return first.substr(0, first.find('/') + 1);
}

TorchFile read_zip(const std::string& path) {
  ZipReader archive(path);
  const std::string root = root_of(archive);
  const auto has = [&](std::string_view name) { return archive.find(cat(root, name)) != nullptr; };
  const auto any_in = [&](std::string_view folder) {
    return std::ranges::any_of(archive.entries(), [&](const auto& entry) { return entry.name.starts_with(cat(root, folder)); });
  };
  if (has("archive_format") && any_in("models/")) return read_exported_program(archive, root);
  if (has("constants.pkl") && has("data.pkl") && any_in("code/")) return read_torchscript(archive, root);
  if (has("data.pkl")) return read_zip_checkpoint(archive, root);
  if (archive.find("serialized_exported_program.json") != nullptr)
    fail(ErrorKind::Unsupported, "this program was exported by a torch before 2.8, whose layout is another; load it there and save it with a newer one");
  fail(ErrorKind::Unsupported, "this is a zip file, but none of torch.export, TorchScript or torch.save: it has neither models/ nor data.pkl");
}

}  // namespace

bool is_torch_file(const std::string& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) return false;  // Opening a pipe would wait for its other end.
  const auto size = std::filesystem::file_size(path, problem);
  std::ifstream file(path, std::ios::binary);
  std::string start(300, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return !problem && form_of(start, size) != Form::None;
}

TorchFile read_torch_file(const std::string& path) {
  const auto mapped = MappedFile::open(path);
  const auto bytes = mapped->bytes();
  try {
    switch (form_of(text_of(bytes.first(std::min<size_t>(bytes.size(), 300))), bytes.size())) {
      case Form::Zip:
        return read_zip(path);
      case Form::Pickle:
        return read_legacy_checkpoint(bytes);
      case Form::Safetensors:
        return read_safetensors(bytes);
      case Form::Tar:
        fail(ErrorKind::Unsupported, "this is a tar file, as torch.save wrote it before 0.1.10: load it in PyTorch and save it anew");
      case Form::None:
        break;
    }
  } catch (Error& error) {
    error.note(cat("in '", path, "'"));
    throw;
  }
  fail(ErrorKind::InvalidModel, "'", path, "' is no file of PyTorch: no zip file, no pickle of torch.save and no safetensors");
}

}  // namespace unmoor
