#include "unmoor/backends/gpu/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor::gpu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "unmoor kernel 1\n";

// FNV-1a in 64 bits. Every step is a bijection, so a single changed byte always changes the result.
uint64_t checksum(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::string number(uint64_t value) { return fmt::format("{:016x}\n", value); }

// magic, length of the key, length of the binary, checksum of what follows, key, binary.
constexpr size_t header_bytes = magic.size() + 3 * 17;

}  // namespace

BinaryCache::BinaryCache(std::string folder, size_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {
  if (folder_.empty()) return;
  std::error_code problem;
  fs::create_directories(folder_, problem);
  if (problem) folder_.clear();
}

std::string BinaryCache::path_of(const std::string& key) const { return fmt::format("{}/{:016x}.bin", folder_, checksum(key)); }

std::optional<std::vector<std::byte>> BinaryCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const auto path = path_of(key);
  std::error_code problem;
  if (!fs::is_regular_file(path, problem) || fs::file_size(path, problem) > most_bytes_) return std::nullopt;
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error&) {
    return std::nullopt;  // It was removed meanwhile, or is not ours to read.
  }
  if (text.size() < header_bytes + key.size()) return std::nullopt;
  const std::string_view body = std::string_view(text).substr(header_bytes);
  const auto wanted = fmt::format("{}{}{}{}", magic, number(key.size()), number(body.size() - key.size()), number(checksum(body)));
  if (!std::string_view(text).starts_with(wanted) || !body.starts_with(key)) return std::nullopt;
  fs::last_write_time(path, fs::file_time_type::clock::now(), problem);
  const auto binary = body.substr(key.size());
  std::vector<std::byte> result(binary.size());
  std::memcpy(result.data(), binary.data(), binary.size());
  return result;
}

void BinaryCache::store(const std::string& key, std::span<const std::byte> binary) const {
  if (folder_.empty()) return;
  std::string body = key;
  body.append(reinterpret_cast<const char*>(binary.data()), binary.size());
  const auto text = fmt::format("{}{}{}{}{}", magic, number(key.size()), number(binary.size()), number(checksum(body)), body);
  try {
    write_file(path_of(key), text);
  } catch (const Error&) {
    return;
  }
}

void BinaryCache::trim() const {
  struct File {
    fs::path path;
    fs::file_time_type used;
    uintmax_t bytes;
  };
  if (folder_.empty()) return;
  std::vector<File> files;
  uintmax_t total = 0;
  std::error_code problem;
  for (fs::directory_iterator entry(folder_, problem), end; !problem && entry != end; entry.increment(problem)) {
    std::error_code gone;
    File file{entry->path(), entry->last_write_time(gone), entry->file_size(gone)};
    if (gone) continue;
    total += file.bytes;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  for (const auto& file : files) {
    if (total <= most_bytes_) return;
    std::error_code gone;
    fs::remove(file.path, gone);
    total -= file.bytes;
  }
}

}  // namespace unmoor::gpu
