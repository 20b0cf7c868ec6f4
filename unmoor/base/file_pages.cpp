#include "unmoor/base/file_pages.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <map>
#include <mutex>

namespace unmoor {
namespace {

constexpr int64_t second = 1000000000;
constexpr int64_t fresh = 2 * second;  // The coarsest time stamps in use (FAT's) count in two seconds.

int64_t nanoseconds(const timespec& time) { return time.tv_sec * second + time.tv_nsec; }

struct Mapping {
  size_t bytes = 0;
  FileIdentity file = {};
  bool is_fresh = false;
};

// What is mapped in this process, by where it starts: views of a file do not know their file.
struct Mappings {
  std::mutex mutex;
  std::map<const std::byte*, Mapping> all;
};

Mappings& mappings() {
  static Mappings* const made = new Mappings;  // Never freed: files may be unmapped while the program ends.
  return *made;
}

}  // namespace

FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

std::optional<FilePlace> place_in_file(std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  Mappings& known = mappings();
  const std::lock_guard lock(known.mutex);
  auto found = known.all.upper_bound(bytes.data());
  if (found == known.all.begin()) return std::nullopt;
  --found;
  const auto offset = static_cast<size_t>(bytes.data() - found->first);
  const Mapping& mapping = found->second;
  if (offset > mapping.bytes || bytes.size() > mapping.bytes - offset) return std::nullopt;
  return FilePlace{mapping.file, offset, mapping.is_fresh};
}

void release_file_pages(std::span<const std::byte> bytes) {
  if (!place_in_file(bytes)) return;
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t last = (start + bytes.size()) / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(bytes.data() + (first - start)), last - first, MADV_DONTNEED);
}

void note_mapping(std::span<const std::byte> bytes, const FileIdentity& file) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  Mappings& known = mappings();
  const std::lock_guard lock(known.mutex);
  known.all[bytes.data()] = {bytes.size(), file, file.changed_ns > nanoseconds(now) - fresh};
}

void forget_mapping(std::span<const std::byte> bytes) {
  Mappings& known = mappings();
  const std::lock_guard lock(known.mutex);
  known.all.erase(bytes.data());
}

}  // namespace unmoor
