#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "unmoor/backends/gpu/cache.h"
#include "unmoor/backends/gpu/driver.h"

namespace unmoor::gpu {

// A kernel that is compiled when it is first needed. Any thread.
class CompiledKernel {
 public:
  CompiledKernel(std::shared_ptr<Driver> driver, KernelSource source) : driver_(std::move(driver)), source_(std::move(source)) {}
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  const KernelSource& source() const { return source_; }
  bool is_loaded();
  void load(std::span<const std::byte> binary);
  // Fails with Internal if it is not loaded.
  void launch(Queue queue, std::array<uint32_t, 3> groups, std::span<const Argument> arguments);

 private:
  std::shared_ptr<Driver> driver_;  // Shared: kernels may outlive the device that made them.
  KernelSource source_;
  std::mutex mutex_;  // Setting arguments and launching is one step.
  Module module_{};
  Function function_{};
};

// Turns sources into loaded kernels: from the disk cache, or compiled by child processes, since vendor compilers crash. Any thread.
class Compiler {
 public:
  Compiler(std::shared_ptr<Driver> driver, std::string vendor, size_t device_index);

  // The kernel for this source; equal sources share one. It is compiled by `compile_missing`.
  std::shared_ptr<CompiledKernel> kernel(const KernelSource& source);
  // Compiles and loads all kernels that are not loaded. Fails with Device, naming the kernel, with the compiler's last words.
  void compile_missing();
  // All that was asked for so far.
  std::vector<KernelSource> sources();

 private:
  std::string key_of(const KernelSource& source) const;
  bool load_from_cache(CompiledKernel& kernel) const;
  void compile(const std::vector<std::shared_ptr<CompiledKernel>>& missing) const;
  void compile_in_child(const std::vector<std::shared_ptr<CompiledKernel>>& kernels, size_t first, size_t step) const;

  std::shared_ptr<Driver> driver_;
  std::string vendor_;
  size_t device_index_;
  BinaryCache cache_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<CompiledKernel>> kernels_;  // By key. Shared with the plans that use them.
};

// The child's side: reads a request on standard input, compiles, writes each result. What `unmoor --worker-compile` runs.
// Returns the exit status.
int compile_worker();

}  // namespace unmoor::gpu
