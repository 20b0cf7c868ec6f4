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

Packed PackedWeights::get(const Tensor& constant, const std::string& kind, size_t floats, const std::function<void(float*)>& pack) const {
  const std::lock_guard lock(mutex_);
  auto& known = entries_[{constant.bytes().data(), constant.bytes().size(), kind}];
  std::shared_ptr<const Entry> entry = known.lock();
  if (entry == nullptr) {
    const Packed packed = pack_buffer(floats);
    pack(floats_of(packed));
    entry = std::make_shared<const Entry>(Entry{constant, packed});
    known = entry;
    std::erase_if(entries_, [](const auto& item) { return item.second.expired(); });
  }
  return {entry, entry->packed.get()};
}

size_t PackedWeights::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [key, weak] : entries_) {
    if (const auto entry = weak.lock()) sum += entry->packed->bytes();
  }
  return sum;
}

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
