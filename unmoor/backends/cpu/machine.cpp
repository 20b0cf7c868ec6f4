#include "unmoor/backends/cpu/machine.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "hwy/highway.h"
#include "unmoor/base/error.h"

namespace unmoor::cpu {

namespace {

constexpr size_t huge_page = size_t{2} << 20;

size_t cache_bytes(int name, size_t otherwise) {
  const long found = ::sysconf(name);
  return found > 0 ? static_cast<size_t>(found) : otherwise;
}

}  // namespace

Machine::Machine()
    : pool_(std::make_unique<ThreadPool>(usable_threads())),
      l2_bytes_(std::clamp<size_t>(cache_bytes(_SC_LEVEL2_CACHE_SIZE, size_t{512} << 10), size_t{256} << 10, size_t{4} << 20)) {}

std::string arch_name() {
  const int64_t targets = hwy::SupportedTargets();
  if ((targets & (HWY_AVX3 | HWY_AVX3_DL)) != 0) {
    return "avx512";
  }
  if ((targets & HWY_AVX2) != 0) {
    return "avx2";
  }
  if ((targets & HWY_SSE4) != 0) {
    return "sse4";
  }
  return (targets & HWY_NEON) != 0 ? "neon" : "scalar";
}

void HostBuffer::Free::operator()(std::byte* data) const { std::free(data); }

HostBuffer::HostBuffer(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)) {
  const bool large = bytes_ >= huge_page / 2;
  const size_t alignment = large ? huge_page : 64;
  const size_t limit = ~size_t{0} - alignment;
  const size_t padded = bytes_ > limit ? 0 : (bytes_ + 63) / 64 * 64;
  void* data = nullptr;
  if (padded == 0 || ::posix_memalign(&data, alignment, padded) != 0) {
    fail(ErrorKind::OutOfMemory, bytes_, " bytes of memory for the cpu device were not to be had");
  }
  if (large) {
    ::madvise(data, padded, MADV_HUGEPAGE);  // Advice: slower without, never wrong.
  }
  data_.reset(static_cast<std::byte*>(data));
}

float* scratch(size_t slot, size_t floats) {
  thread_local std::array<std::unique_ptr<HostBuffer>, 4> slots;
  std::unique_ptr<HostBuffer>& buffer = slots.at(slot);
  if (buffer == nullptr || buffer->bytes() < floats * sizeof(float)) {
    buffer.reset();
    buffer = std::make_unique<HostBuffer>(floats * sizeof(float));
  }
  return buffer->floats();
}

}  // namespace unmoor::cpu
