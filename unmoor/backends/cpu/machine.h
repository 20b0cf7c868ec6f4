#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "unmoor/base/fast_hash.h"
#include "unmoor/base/threads.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::cpu {

class PackedCache;

// Packed weights, shared by the copies of a prepared kernel's function and by all kernels that packed the same.
using Packed = std::shared_ptr<Buffer>;
Packed pack_buffer(size_t floats);
inline float* floats_of(const Packed& packed) { return reinterpret_cast<float*>(packed->host()); }

// What kernels packed, by the constant and by how it was packed: plans and sessions of one model share it. Lives as long as a
// kernel holds it, and keeps its constant alive, so that the constant's memory names it. Any thread: one packs, the others wait.
class PackedWeights {
 public:
  PackedWeights();
  ~PackedWeights();
  // Where to look before packing, and to keep what was packed; null for nowhere. Shared with its thread that writes.
  void set_cache(std::shared_ptr<PackedCache> cache);
  std::shared_ptr<PackedCache> cache() const;
  // `kind` says how: the layout with every size that decides it. Calls pack(to) for new ones, with `floats` floats of memory. The
  // result is not to be written to: it may be a file. Pages of the model's file that were packed leave this process's memory.
  Packed get(const Tensor& constant, const std::string& kind, size_t floats, const std::function<void(float* to)>& pack) const;
  // Gives the cache what was packed since the last time and still lives.
  void finish() const;
  size_t bytes() const;  // Of all that live.

 private:
  struct Entry {
    Tensor constant;
    Packed packed;
    std::optional<FastHash> key;  // In the cache; none where it keeps nothing of the kind.
  };
  using Key = std::tuple<const std::byte*, size_t, std::string>;  // The constant's bytes, and the kind.

  mutable std::mutex mutex_;  // Held while packing.
  mutable std::map<Key, std::weak_ptr<const Entry>> entries_;
  mutable std::vector<std::weak_ptr<const Entry>> fresh_;  // Packed, and not yet given to the cache.
  std::shared_ptr<PackedCache> cache_;
};

// What kernels need of the processor: its threads and its caches; and the device's packed weights. Any thread.
class Machine {
 public:
  // With threads of its own, one a processor, or with the program's.
  explicit Machine(std::shared_ptr<ThreadPool> pool);
  ThreadPool& pool() const { return *pool_; }
  const std::shared_ptr<ThreadPool>& shared_pool() const { return pool_; }
  size_t threads() const { return pool_->size(); }
  size_t l2_bytes() const { return l2_bytes_; }
  const PackedWeights& weights() const { return weights_; }
  PackedWeights& weights() { return weights_; }

 private:
  std::shared_ptr<ThreadPool> pool_;  // Shared with the program, if it is the program's.
  size_t l2_bytes_;
  PackedWeights weights_;
};

// The opened device as kernels see it: `prepare` is only called with one of these.
class CpuDevice : public Device {
 public:
  explicit CpuDevice(std::shared_ptr<ThreadPool> pool) : machine_(std::move(pool)) {}
  const Machine& machine() const { return machine_; }

 protected:
  Machine machine_;
};

inline const Machine& machine_of(Device& device) { return static_cast<CpuDevice&>(device).machine(); }

// "avx512", "avx2", "sse4", "neon", "scalar": the instruction set that kernels prepared now will use.
std::string arch_name();

// A constant's floats, at any alignment: only for functions that read bytes, as packing does.
inline const float* unaligned_floats(const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.bytes().data()); }

// Scratch memory of the calling thread: 64-byte aligned, valid until the thread's next call with the same slot. It grows to the
// largest size asked for and stays.
float* scratch(size_t slot, size_t floats);

}  // namespace unmoor::cpu
