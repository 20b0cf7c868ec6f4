#include <zip.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/memory.h"
#include "unmoor/formats/npy.h"
#include "unmoor/formats/npy_header.h"

namespace unmoor {
namespace {

// Deflate shrinks at most about 1032 times; an entry that claims more lies.
constexpr uint64_t most_shrinking = 1040;

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Entry = std::unique_ptr<zip_file_t, Discard>;

Archive open(const std::string& path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  const bool is_broken = code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS;
  fail(is_broken ? ErrorKind::InvalidModel : ErrorKind::Io, "cannot open '", path, "' as a zip file: ", reason);
}

using Bytes = std::vector<std::byte>;

// `room` is what the entries that are left may take in the file: less for each that is read, so that entries which share their bytes
// cannot multiply them.
std::shared_ptr<const Bytes> read_entry(zip_t* archive, zip_uint64_t i, const std::string& name, uint64_t& room) {
  zip_stat_t status;
  if (zip_stat_index(archive, i, 0, &status) != 0) fail(ErrorKind::InvalidModel, "entry '", name, "' cannot be read");
  if ((status.valid & ZIP_STAT_SIZE) == 0 || (status.valid & ZIP_STAT_COMP_SIZE) == 0 ||
      status.size / most_shrinking > status.comp_size) {
    fail(ErrorKind::InvalidModel, "entry '", name, "' says it is ", status.size, " bytes long, which its ", status.comp_size,
         " cannot hold");
  }
  if (status.comp_size > room) fail(ErrorKind::InvalidModel, "entry '", name, "' shares its bytes with others");
  room -= status.comp_size;
  check_memory(status.size);
  const Entry entry(zip_fopen_index(archive, i, 0));
  if (!entry) fail(ErrorKind::InvalidModel, "entry '", name, "' cannot be read: ", zip_strerror(archive));
  // Grows with what really comes out.
  auto bytes = std::make_shared<Bytes>();
  constexpr size_t step = size_t{1} << 20;
  while (true) {
    const size_t held = bytes->size();
    bytes->resize(held + step);
    const zip_int64_t count = zip_fread(entry.get(), bytes->data() + held, step);
    if (count < 0) fail(ErrorKind::InvalidModel, "entry '", name, "' is damaged");
    bytes->resize(held + static_cast<size_t>(count));
    if (count == 0) break;
    if (bytes->size() > status.size) fail(ErrorKind::InvalidModel, "entry '", name, "' is longer than it says");
  }
  bytes->shrink_to_fit();
  return bytes;
}

}  // namespace

std::map<std::string, Tensor, std::less<>> read_npz(const std::string& path) {
  const Archive archive = open(path, ZIP_RDONLY | ZIP_CHECKCONS);
  std::error_code problem;
  uint64_t room = std::filesystem::file_size(path, problem);
  if (problem) fail(ErrorKind::Io, "cannot read '", path, "': ", problem.message());
  std::map<std::string, Tensor, std::less<>> tensors;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  try {
    for (zip_int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<zip_uint64_t>(i);
      const char* const raw_name = zip_get_name(archive.get(), index, ZIP_FL_ENC_RAW);
      std::string name = raw_name == nullptr ? "" : raw_name;
      const auto bytes = read_entry(archive.get(), index, name, room);
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      try {
        if (!tensors.emplace(name, npy_from_bytes(*bytes, bytes)).second) fail(ErrorKind::InvalidModel, "there are two of this name");
      } catch (Error& error) {
        error.note(cat("in entry '", name, "'"));
        throw;
      }
    }
  } catch (Error& error) {
    error.note(cat("in '", path, "'"));
    throw;
  }
  return tensors;
}

void write_npz(const std::map<std::string, Tensor, std::less<>>& tensors, const std::string& path) {
  if (tensors.empty()) {
    // libzip writes no file for an archive without entries; this is one.
    write_file(path, cat("PK\x05\x06", std::string(18, '\0')));
    return;
  }
  NewFile made(path);
  Archive archive = open(made.beside(), ZIP_CREATE | ZIP_TRUNCATE);
  std::vector<std::string> contents;  // libzip reads them when it closes.
  contents.reserve(tensors.size());
  const auto check = [&](bool is_good) {
    if (!is_good) fail(ErrorKind::Io, "cannot write '", path, "': ", zip_strerror(archive.get()));
  };
  for (const auto& [name, tensor] : tensors) {
    const NpyParts parts = npy_parts(tensor);
    const auto bytes = parts.elements.bytes();
    contents.push_back(cat(parts.header, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
    zip_source_t* const source = zip_source_buffer(archive.get(), contents.back().data(), contents.back().size(), 0);
    check(source != nullptr);
    const zip_int64_t index = zip_file_add(archive.get(), cat(name, ".npy").c_str(), source, ZIP_FL_ENC_UTF_8 | ZIP_FL_OVERWRITE);
    if (index < 0) zip_source_free(source);
    check(index >= 0);
    check(zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) == 0);
  }
  check(zip_close(archive.get()) == 0);
  (void)archive.release();  // zip_close freed it.
  made.finish();
}

}  // namespace unmoor
