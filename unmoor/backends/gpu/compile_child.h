#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unmoor/backends/gpu/driver.h"

namespace unmoor::gpu {

// What a child compiles for.
struct CompileTarget {
  std::string vendor;
  size_t device_index = 0;
  std::string fingerprint;  // Of the driver: a child that sees another one compiles nothing.
  std::string device_name;  // For errors.
};

// Kernels that are compiled together, as one program.
using KernelGroup = std::vector<KernelSource>;

struct CompileFailure {
  KernelSource kernel;
  std::string words;
};

// Compiles in child processes, since vendor compilers crash, and gives each program to `take`, on the calling thread. A group that fails is
// compiled again kernel by kernel, to find which it is; what a crash leaves untried is in no failure.
using TakeProgram = std::function<void(const KernelGroup& group, std::span<const std::byte> binary)>;
std::vector<CompileFailure> compile_in_child(const CompileTarget& target, std::vector<KernelGroup> groups, const TakeProgram& take);

// The child's side: reads a request on standard input, compiles, writes each result. What `unmoor --worker-compile` runs.
// Returns the exit status.
int compile_worker();

}  // namespace unmoor::gpu
