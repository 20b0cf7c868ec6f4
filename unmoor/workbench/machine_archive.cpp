#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/workbench/machine.h"

namespace unmoor {
namespace {

// Fields of a header of the ustar format (POSIX.1-1988): offset and width in a block of 512 bytes.
struct Field {
  size_t at;
  size_t width;
};
constexpr size_t block_bytes = 512;
constexpr Field name_field{0, 100};
constexpr Field size_field{124, 12};
constexpr Field sum_field{148, 8};
constexpr Field prefix_field{345, 155};
constexpr size_t type_at = 156;
using Block = std::array<char, block_bytes>;

class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), file_(nullptr, &::gzclose) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) fail(ErrorKind::Io, "cannot read '", path, "': there is no such file");
    file_.reset(::gzopen(path.c_str(), "rb"));
    if (file_ == nullptr) fail(ErrorKind::Io, "cannot read '", path, "': it cannot be opened");
  }

  template <class... Parts>
  [[noreturn]] void broken(const Parts&... parts) const {
    fail(ErrorKind::InvalidArgument, "'", path_, "' is no archive of a machine: ", parts...);
  }

  // False at the end of the file.
  bool read(Block& block) {
    const int got = ::gzread(file_.get(), block.data(), block_bytes);
    if (got < 0) broken("it cannot be unpacked");
    if (got != 0 && got != static_cast<int>(block_bytes)) broken("it ends inside of a block");
    return got != 0;
  }

  std::string content(size_t bytes) {
    std::string text;
    Block block{};
    while (text.size() < bytes) {
      if (!read(block)) broken("it ends inside of a file");
      text.append(block.data(), std::min(block_bytes, bytes - text.size()));
    }
    return text;
  }

 private:
  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

std::string text_of(const Block& block, Field field) {
  const std::string_view all(block.data() + field.at, field.width);
  return std::string(all.substr(0, all.find('\0')));
}

// Octal digits between spaces; nothing if there are other characters.
std::optional<size_t> number_of(const Block& block, Field field) {
  size_t number = 0;
  bool digits = false;
  for (const char each : text_of(block, field)) {
    if (each == ' ') continue;
    if (each < '0' || each > '7') return std::nullopt;
    number = number * 8 + static_cast<size_t>(each - '0');
    digits = true;
  }
  return digits ? std::optional(number) : std::nullopt;
}

// The sum of a header's bytes, with its own field as spaces.
size_t sum_of(const Block& block) {
  size_t sum = 0;
  for (size_t i = 0; i < block_bytes; ++i) {
    const bool own = i >= sum_field.at && i < sum_field.at + sum_field.width;
    sum += own ? size_t{' '} : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

// "./a/b" as "/a/b". Empty if it leaves its folder or is a path of its own.
std::string inner_path(std::string name) {
  if (name.starts_with("./")) name.erase(0, 2);
  const std::string inside = cat("/", name, "/");
  const bool leaves = name.starts_with("/") || inside.find("/../") != std::string::npos || inside.find("//") != std::string::npos;
  return leaves || name.empty() ? std::string() : cat("/", name);
}

}  // namespace

std::map<std::string, std::string, std::less<>> read_tar(const std::string& path, size_t most_bytes, size_t most_files) {
  Archive archive(path);
  std::map<std::string, std::string, std::less<>> files;
  size_t bytes = 0;
  size_t entries = 0;
  for (Block header{}; archive.read(header) && header[0] != '\0';) {
    const auto size = number_of(header, size_field);
    if (number_of(header, sum_field) != sum_of(header) || !size) archive.broken("a header of it is damaged, or it is no tar");
    bytes += *size;
    if (bytes > most_bytes || ++entries > most_files)
      archive.broken("it holds more than ", most_bytes >> 20U, " MiB or ", most_files, " files");
    const std::string prefix = text_of(header, prefix_field);
    const std::string name = inner_path(cat(prefix, prefix.empty() ? "" : "/", text_of(header, name_field)));
    std::string content = archive.content(*size);
    const bool is_file = header[type_at] == '0' || header[type_at] == '\0';
    if (!is_file) continue;
    if (name.empty()) archive.broken("'", text_of(header, name_field), "' lies outside of it");
    files[name] = std::move(content);
  }
  return files;
}

}  // namespace unmoor
