#include "unmoor/backends/cpu/packed_cache_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "unmoor/base/descriptor.h"
#include "unmoor/base/error.h"

namespace unmoor::cpu {
namespace {

constexpr std::array<char, 8> magic{'u', 'n', 'm', 'o', 'o', 'r', 'p', 'w'};
constexpr uint64_t version = 1;
constexpr uint64_t page = 4096;
constexpr size_t piece = size_t{1} << 20;
constexpr uint64_t most_weights = 1 << 20;  // In one file.

struct Header {
  std::array<char, 8> name = magic;
  uint64_t format = version;
  FastHash kind;
  uint64_t file_bytes = 0;
  uint64_t count = 0;
  FastHash check;  // Of the header with this left empty, and the table.
};
static_assert(sizeof(Header) == 64 && sizeof(PackedFile::Weights) == 48, "they are written as they lie in memory");

uint64_t rounded(uint64_t bytes) { return (bytes + page - 1) / page * page; }

FastHash check_of(Header header, std::span<const PackedFile::Weights> table) {
  header.check = {};
  return fast_hash(std::as_bytes(table), fast_hash(std::as_bytes(std::span(&header, 1))));
}

std::string system_reason() { return std::generic_category().message(errno); }

bool read_at(int file, std::span<std::byte> to, uint64_t offset) {
  while (!to.empty()) {
    const ssize_t got = ::pread(file, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool write_at(int file, std::span<const std::byte> from, uint64_t offset) {
  while (!from.empty()) {
    const ssize_t put = ::pwrite(file, from.data(), from.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from = from.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return true;
}

std::string refusal(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "is no regular file";
  if (status.st_uid != ::geteuid()) return "belongs to somebody else";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "may be written by others";
  return static_cast<uint64_t>(status.st_size) < sizeof(Header) ? "is cut short" : "";
}

// The table, or nothing and why.
std::string read_table(int file, uint64_t size, FastHash kind, std::vector<PackedFile::Weights>& table) {
  Header header;
  if (!read_at(file, std::as_writable_bytes(std::span(&header, 1)), 0)) return "cannot be read";
  if (header.name != magic || header.format != version) return "is of another version";
  if (header.kind != kind) return "is of another build";
  if (header.file_bytes != size) return "is cut short";
  if (header.count > most_weights || header.count * sizeof(PackedFile::Weights) > size - sizeof(Header)) return "is damaged";
  table.resize(header.count);
  if (!read_at(file, std::as_writable_bytes(std::span(table)), sizeof(Header))) return "cannot be read";
  const bool inside = std::ranges::all_of(table, [&](const auto& each) {
    return each.offset % page == 0 && each.offset <= size && each.bytes <= size - each.offset;
  });
  return inside && check_of(header, table) == header.check ? "" : "is damaged";
}

}  // namespace

FastHash hash_in_pieces(std::span<const std::byte> bytes, ThreadPool* pool) {
  std::vector<FastHash> pieces((bytes.size() + piece - 1) / piece);
  const auto hash_one = [&](size_t i) {
    pieces[i] = fast_hash(bytes.subspan(i * piece, std::min(piece, bytes.size() - i * piece)));
  };
  if (pool != nullptr) {
    pool->each(pieces.size(), hash_one);
  } else {
    for (size_t i = 0; i < pieces.size(); ++i) hash_one(i);
  }
  return fast_hash(std::as_bytes(std::span(pieces)));
}

std::shared_ptr<const PackedFile> PackedFile::open(const std::string& path, FastHash kind, std::string& problem) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) {
    problem = cat("cannot be opened: ", system_reason());
    return nullptr;
  }
  problem = refusal(status);
  if (!problem.empty()) return nullptr;
  const auto size = static_cast<size_t>(status.st_size);
  std::shared_ptr<PackedFile> opened(new PackedFile);
  opened->path_ = path;
  problem = read_table(file.number(), size, kind, opened->table_);
  if (!problem.empty()) return nullptr;
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (at == MAP_FAILED) {
    problem = cat("cannot be mapped: ", system_reason());
    return nullptr;
  }
  opened->mapped_ = {static_cast<const std::byte*>(at), size};
  return opened;
}

PackedFile::~PackedFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

std::span<const std::byte> PackedFile::read(const Weights& weights, ThreadPool& pool) const {
  const auto bytes = mapped_.subspan(weights.offset, weights.bytes);
  return hash_in_pieces(bytes, &pool) == weights.check ? bytes : std::span<const std::byte>();
}

uint64_t packed_file_bytes(std::span<const WeightsToWrite> weights) {
  uint64_t bytes = rounded(sizeof(Header) + weights.size() * sizeof(PackedFile::Weights));
  for (const auto& each : weights) bytes += rounded(each.bytes.size());
  return bytes;
}

std::string write_packed_file(const std::string& path, FastHash kind, std::span<const WeightsToWrite> weights,
                              const std::function<bool()>& goes_on) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.number() < 0) return system_reason();
  Header header{.kind = kind, .file_bytes = packed_file_bytes(weights), .count = weights.size(), .check = {}};
  const auto undone = [&](std::string why) {
    ::unlink(path.c_str());
    return why;
  };
  // All of it at once, so that a full disk is known before anything is written; where a file system cannot, the writes will tell.
  if (::fallocate(file.number(), 0, 0, static_cast<off_t>(header.file_bytes)) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    return undone(system_reason());
  }
  std::vector<PackedFile::Weights> table;
  uint64_t offset = rounded(sizeof(Header) + weights.size() * sizeof(PackedFile::Weights));
  for (const auto& [key, bytes] : weights) {
    for (size_t at = 0; at < bytes.size(); at += piece) {
      if (!goes_on()) return undone("there was no time");
      if (!write_at(file.number(), bytes.subspan(at, std::min(piece, bytes.size() - at)), offset + at))
        return undone(system_reason());
    }
    table.push_back({key, offset, bytes.size(), hash_in_pieces(bytes, nullptr)});
    offset += rounded(bytes.size());
  }
  header.check = check_of(header, table);
  const bool whole = ::ftruncate(file.number(), static_cast<off_t>(header.file_bytes)) == 0 &&
                     write_at(file.number(), std::as_bytes(std::span(table)), sizeof(Header)) &&
                     write_at(file.number(), std::as_bytes(std::span(&header, 1)), 0);
  return whole ? "" : undone(system_reason());
}

}  // namespace unmoor::cpu
