#include <zip.h>

#include <memory>
#include <vector>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/npy.h"
#include "unmoor/formats/npy_header.h"
#include "unmoor/formats/zip_reader.h"

namespace unmoor {
namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

Archive create(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail(ErrorKind::Io, "cannot write '", path, "' as a zip file: ", reason);
}

}  // namespace

std::map<std::string, Tensor, std::less<>> read_npz(const std::string& path) {
  ZipReader archive(path);
  std::map<std::string, Tensor, std::less<>> tensors;
  for (size_t i = 0; i < archive.entries().size(); ++i) {
    std::string name = archive.entries()[i].name;
    const auto bytes = archive.read(i);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    try {
      if (!tensors.emplace(name, npy_from_bytes(*bytes, bytes)).second) fail(ErrorKind::InvalidModel, "there are two of this name");
    } catch (Error& error) {
      error.note(cat("in entry '", name, "' of '", path, "'"));
      throw;
    }
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
  Archive archive = create(made.beside());
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
