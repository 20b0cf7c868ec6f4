#include "unmoor/backends/cpu/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "hwy/highway.h"
#include "unmoor/backends/cpu/packed_cache.h"
#include "unmoor/base/file_pages.h"
#include "unmoor/hal/host.h"

namespace unmoor::cpu {

namespace {

size_t cache_bytes(int name, size_t otherwise) {
  const long found = ::sysconf(name);
  return found > 0 ? static_cast<size_t>(found) : otherwise;
}

}  // namespace

Machine::Machine(std::shared_ptr<ThreadPool> pool)
    : pool_(pool != nullptr ? std::move(pool) : std::make_shared<ThreadPool>(usable_threads())),
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

PackedWeights::PackedWeights() = default;
PackedWeights::~PackedWeights() = default;

void PackedWeights::set_cache(std::shared_ptr<PackedCache> cache) {
  const std::lock_guard lock(mutex_);
  cache_ = std::move(cache);
  fresh_.clear();
}

std::shared_ptr<PackedCache> PackedWeights::cache() const {
  const std::lock_guard lock(mutex_);
  return cache_;
}

Packed PackedWeights::get(const Tensor& constant, const std::string& kind, size_t floats,
                          const std::function<void(float*)>& pack) const {
  const std::lock_guard lock(mutex_);
  auto& known = entries_[{constant.bytes().data(), constant.bytes().size(), kind}];
  std::shared_ptr<const Entry> entry = known.lock();
  if (entry != nullptr) return {entry, entry->packed.get()};
  PackedCache::Answer answer;
  if (cache_ != nullptr) answer = cache_->find(constant.bytes(), kind, floats * sizeof(float));
  const bool is_new = answer.packed == nullptr;
  if (is_new) {
    answer.packed = pack_buffer(floats);
    pack(floats_of(answer.packed));
  }
  release_file_pages(constant.bytes());
  entry = std::make_shared<const Entry>(Entry{constant, std::move(answer.packed), answer.key});
  known = entry;
  if (is_new && answer.key) fresh_.emplace_back(entry);
  std::erase_if(entries_, [](const auto& item) { return item.second.expired(); });
  return {entry, entry->packed.get()};
}

void PackedWeights::finish() const {
  const std::lock_guard lock(mutex_);
  std::vector<PackedCache::Item> items;
  for (const auto& weak : fresh_) {
    if (auto entry = weak.lock()) items.push_back({*entry->key, Packed(entry, entry->packed.get())});
  }
  fresh_.clear();
  if (cache_ != nullptr) cache_->keep(std::move(items));
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
