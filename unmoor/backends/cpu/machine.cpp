#include "unmoor/backends/cpu/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "hwy/highway.h"
#include "unmoor/hal/host.h"

namespace unmoor::cpu {

namespace {

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

Packed pack_buffer(size_t floats) { return make_host_buffer(floats * sizeof(float)); }

float* scratch(size_t slot, size_t floats) {
  thread_local std::array<Packed, 4> slots;
  Packed& buffer = slots.at(slot);
  if (buffer == nullptr || buffer->bytes() < floats * sizeof(float)) {
    buffer.reset();
    buffer = pack_buffer(floats);
  }
  return floats_of(buffer);
}

}  // namespace unmoor::cpu
