#include "unmoor/base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

// What the control group allows, of either version; no limit if it does not say.
size_t control_group_bytes() {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    size_t bytes = 0;
    if (file >> bytes && bytes > 0) return bytes;
  }
  return std::numeric_limits<size_t>::max();
}

size_t machine_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  const size_t all = pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : std::numeric_limits<size_t>::max() / 2;
  return std::min(all, control_group_bytes());
}

size_t first_limit() {
  const char* const wanted = std::getenv("UNMOOR_MEMORY_LIMIT");
  return wanted != nullptr && *wanted != '\0' ? parse_memory(wanted) : machine_bytes();
}

std::atomic<size_t>& limit() {
  static std::atomic<size_t> bytes{first_limit()};
  return bytes;
}

std::atomic<size_t> in_use{0};

std::string readable(size_t bytes) {
  const auto exact = static_cast<double>(bytes);
  if (exact < 1024.0 * 1024) return cat(bytes, " bytes");
  const bool large = exact >= 1024.0 * 1024 * 1024;
  return cat(std::round(exact / (large ? 1024.0 * 1024 * 1024 : 1024.0 * 1024) * 10) / 10, large ? " GiB" : " MiB");
}

[[noreturn]] void refuse(size_t bytes, size_t used) {
  fail(ErrorKind::OutOfMemory, readable(bytes), " of memory were asked for; ", readable(used), " are in use and ", readable(limit()),
       " are allowed (UNMOOR_MEMORY_LIMIT changes that)");
}

}  // namespace

size_t memory_limit() { return limit(); }
void set_memory_limit(size_t bytes) { limit() = bytes; }
size_t memory_in_use() { return in_use; }

size_t parse_memory(std::string_view text) {
  constexpr std::string_view units = "KMGT";
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const size_t power = unit.empty() ? 0 : units.find(unit.front()) + 1;
  const double bytes = number * std::pow(1024.0, static_cast<double>(power));
  if (problem != std::errc() || unit.size() > 1 || (!unit.empty() && power == 0) || !(bytes >= 1) || bytes > 9e18) {
    fail(ErrorKind::InvalidArgument, "'", text, "' is no amount of memory; write it as 1500000, 512M or 1.5G");
  }
  return static_cast<size_t>(bytes);
}

void check_memory(size_t bytes) {
  const size_t used = in_use;
  const size_t allowed = limit();
  if (bytes > allowed || used > allowed - bytes) refuse(bytes, used);
}

TakenMemory::TakenMemory(size_t bytes) {
  const size_t allowed = limit();
  size_t used = in_use;
  do {
    if (bytes > allowed || used > allowed - bytes) refuse(bytes, used);
  } while (!in_use.compare_exchange_weak(used, used + bytes));
  bytes_ = bytes;
}

TakenMemory::~TakenMemory() { in_use -= bytes_; }

TakenMemory& TakenMemory::operator=(TakenMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace unmoor
