#include "unmoor/formats/zip_reader.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"

namespace unmoor {
namespace {

// Deflate shrinks at most about 1032 times; an entry that claims more lies.
constexpr uint64_t most_shrinking = 1040;

struct Close {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

}  // namespace

void ZipReader::Discard::operator()(zip* archive) const { zip_discard(archive); }

ZipReader::~ZipReader() = default;

ZipReader::ZipReader(const std::string& path) : path_(path) {
  int code = 0;
  archive_.reset(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!archive_) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    const bool is_broken = code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS;
    fail(is_broken ? ErrorKind::InvalidModel : ErrorKind::Io, "cannot open '", path, "' as a zip file: ", reason);
  }
  std::error_code problem;
  room_ = std::filesystem::file_size(path, problem);
  if (problem) fail(ErrorKind::Io, "cannot read '", path, "': ", problem.message());
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* const raw_name = zip_get_name(archive_.get(), index, ZIP_FL_ENC_RAW);
    Entry entry{raw_name == nullptr ? "" : raw_name, 0, 0};
    zip_stat_t status;
    if (zip_stat_index(archive_.get(), index, 0, &status) != 0)
      fail(ErrorKind::InvalidModel, "'", path, "': entry '", entry.name, "' cannot be read");
    if ((status.valid & ZIP_STAT_SIZE) == 0 || (status.valid & ZIP_STAT_COMP_SIZE) == 0 ||
        status.size / most_shrinking > status.comp_size) {
      fail(ErrorKind::InvalidModel, "'", path, "': entry '", entry.name, "' says it is ", status.size, " bytes long, which its ",
           status.comp_size, " cannot hold");
    }
    entry.bytes = status.size;
    entry.stored = status.comp_size;
    places_.emplace(entry.name, entries_.size());
    entries_.push_back(std::move(entry));
  }
}

const size_t* ZipReader::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &found->second;
}

std::shared_ptr<const ZipBytes> ZipReader::read(size_t place, uint64_t most) {
  const Entry& entry = entries_.at(place);
  const auto broken = [&](const auto&... what) { fail(ErrorKind::InvalidModel, "'", path_, "': entry '", entry.name, "' ", what...); };
  if (entry.bytes > most) broken("has ", entry.bytes, " bytes, which is more than the ", most, " that are read");
  if (entry.stored > room_) broken("shares its bytes with others");
  room_ -= entry.stored;
  check_memory(entry.bytes);
  const std::unique_ptr<zip_file_t, Close> file(zip_fopen_index(archive_.get(), place, 0));
  if (!file) broken("cannot be read: ", zip_strerror(archive_.get()));
  // Grows with what really comes out.
  auto bytes = std::make_shared<ZipBytes>();
  constexpr size_t step = size_t{1} << 20;
  while (true) {
    const size_t held = bytes->size();
    bytes->resize(held + std::min<uint64_t>(step, entry.bytes - held + 1));
    const zip_int64_t count = zip_fread(file.get(), bytes->data() + held, bytes->size() - held);
    if (count < 0) broken("is damaged");
    bytes->resize(held + static_cast<size_t>(count));
    if (count == 0) break;
    if (bytes->size() > entry.bytes) broken("is longer than it says");
  }
  if (bytes->size() != entry.bytes) broken("is shorter than it says: ", bytes->size(), " bytes, not ", entry.bytes);
  bytes->shrink_to_fit();
  return bytes;
}

}  // namespace unmoor
