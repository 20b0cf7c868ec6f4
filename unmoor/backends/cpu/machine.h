#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "unmoor/base/threads.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::cpu {

// What kernels need of the processor: its threads and its caches. Any thread.
class Machine {
 public:
  Machine();
  ThreadPool& pool() const { return *pool_; }
  size_t threads() const { return pool_->size(); }
  size_t l2_bytes() const { return l2_bytes_; }

 private:
  std::unique_ptr<ThreadPool> pool_;
  size_t l2_bytes_;
};

// The opened device as kernels see it: `prepare` is only called with one of these.
class CpuDevice : public Device {
 public:
  const Machine& machine() const { return machine_; }

 protected:
  Machine machine_;
};

inline const Machine& machine_of(Device& device) { return static_cast<CpuDevice&>(device).machine(); }

// "avx512", "avx2", "sse4", "neon", "scalar": the instruction set that kernels prepared now will use.
std::string arch_name();

// Memory of this process at 64 bytes' alignment, in huge pages where it is large. Fails with OutOfMemory.
class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(size_t bytes);
  size_t bytes() const override { return bytes_; }
  std::byte* host() override { return data_.get(); }
  float* floats() const { return reinterpret_cast<float*>(data_.get()); }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

// Packed weights, shared by the copies of a prepared kernel's function.
using Packed = std::shared_ptr<const HostBuffer>;

// Scratch memory of the calling thread: 64-byte aligned, valid until the thread's next call with the same slot. It grows to the
// largest size asked for and stays.
float* scratch(size_t slot, size_t floats);

}  // namespace unmoor::cpu
