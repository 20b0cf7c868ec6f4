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

// Packed weights, shared by the copies of a prepared kernel's function.
using Packed = std::shared_ptr<Buffer>;
Packed pack_buffer(size_t floats);
inline float* floats_of(const Packed& packed) { return reinterpret_cast<float*>(packed->host()); }

// A constant's floats, at any alignment: only for functions that read bytes, as packing does.
inline const float* unaligned_floats(const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.bytes().data()); }

// Scratch memory of the calling thread: 64-byte aligned, valid until the thread's next call with the same slot. It grows to the
// largest size asked for and stays.
float* scratch(size_t slot, size_t floats);

}  // namespace unmoor::cpu
