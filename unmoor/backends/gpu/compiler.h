#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "unmoor/backends/gpu/cache.h"
#include "unmoor/backends/gpu/compile_child.h"
#include "unmoor/backends/gpu/driver.h"

namespace unmoor::gpu {

// A program on the device, in which the kernels lie that were compiled together.
class LoadedProgram {
 public:
  LoadedProgram(std::shared_ptr<Driver> driver, std::span<const std::byte> binary) : driver_(std::move(driver)), module_(driver_->load(binary)) {}
  ~LoadedProgram() { driver_->release(module_); }
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;
  Module module() const { return module_; }

 private:
  std::shared_ptr<Driver> driver_;  // Shared: programs may outlive the device.
  Module module_;
};

// A kernel that is compiled when it is first needed. Any thread.
class CompiledKernel {
 public:
  CompiledKernel(std::shared_ptr<Driver> driver, KernelSource source) : driver_(std::move(driver)), source_(std::move(source)) {}
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  const KernelSource& source() const { return source_; }
  bool is_loaded();
  // `entry` is its name in the program.
  void load(std::shared_ptr<LoadedProgram> program, const std::string& entry);
  // Fails with Internal if it is not loaded.
  void launch(Queue queue, std::array<uint32_t, 3> groups, std::span<const Argument> arguments);

 private:
  std::shared_ptr<Driver> driver_;  // Shared: kernels may outlive the device that made them.
  KernelSource source_;
  std::mutex mutex_;  // Setting arguments and launching is one step.
  std::shared_ptr<LoadedProgram> program_;  // Shared by the kernels in it.
  Function function_{};
};

// Turns sources into loaded kernels: from the disk cache, or compiled by child processes. Any thread.
class Compiler {
 public:
  Compiler(std::shared_ptr<Driver> driver, std::string vendor, size_t device_index);

  // The kernel for this source; equal sources share one. It is compiled by `compile_missing`.
  std::shared_ptr<CompiledKernel> kernel(const KernelSource& source);
  // Compiles and loads all kernels that are not loaded. Fails with Device, naming the kernel, with the compiler's last words; the others that
  // could be compiled are loaded then, and those that were not tried wait for the next call.
  void compile_missing();
  // All that was asked for so far.
  std::vector<KernelSource> sources();

 private:
  std::string key_of(const KernelSource& source) const;
  bool load_from_cache(CompiledKernel& kernel);
  std::shared_ptr<LoadedProgram> cached_program(const std::string& digest);
  std::vector<CompileFailure> compile(const std::vector<KernelSource>& missing) const;
  void take(const KernelGroup& group, std::span<const std::byte> binary) const;

  std::shared_ptr<Driver> driver_;
  CompileTarget target_;
  BinaryCache cache_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<CompiledKernel>> kernels_;  // By key. Shared with the plans that use them.
  std::map<std::string, std::weak_ptr<LoadedProgram>> programs_;    // From the cache, by digest.
};

}  // namespace unmoor::gpu
