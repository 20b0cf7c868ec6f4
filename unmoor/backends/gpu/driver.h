#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unmoor/hal/device.h"

namespace unmoor::gpu {

// What a driver hands out. Only the driver knows what they stand for; 0 is none.
enum class Memory : uintptr_t {};
enum class Queue : uintptr_t {};
enum class Mark : uintptr_t {};
enum class Module : uintptr_t {};
enum class Function : uintptr_t {};

// Work-items in a work-group, of every kernel: a launch with another size would compile again in some drivers.
constexpr uint32_t group_size = 64;
// Work-groups along one axis at most: below the limits of CUDA's y and z, and of PoCL's specialisation for small grids.
constexpr uint32_t most_groups = 32768;

// One argument of a launch: a memory (which may be none) or the bytes of a number.
struct Argument {
  bool is_memory = false;
  Memory memory{};
  uint8_t size = 0;
  std::array<std::byte, 8> bytes{};
};

// A kernel to compile. `signature` has a letter an argument: m memory, i int32, l int64, f float32. The compiler launches it once
// with every number 0, so kernels must do nothing then.
struct KernelSource {
  std::string entry;
  std::string text;
  std::string signature;
};

// What kernels need to know of a device.
struct Abilities {
  bool float64 = false;
  size_t largest_allocation = 0;
};

// One vendor's interface to one opened device. Any thread; a queue one thread at a time. Every call fails with Device, naming the
// function and the error, or with OutOfMemory. Destroyed after everything it handed out was released.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual Abilities abilities() const = 0;
  // What a compiled module depends on besides its source: device, driver and compiler versions.
  virtual std::string fingerprint() const = 0;

  virtual Memory allocate(size_t bytes) = 0;
  virtual void release(Memory memory) noexcept = 0;  // Work that was enqueued before may still use it.

  virtual Queue make_queue() = 0;  // In order.
  virtual void release(Queue queue) noexcept = 0;
  virtual void write(Queue queue, Memory to, size_t offset, std::span<const std::byte> from) = 0;
  virtual void read(Queue queue, std::span<std::byte> to, Memory from, size_t offset) = 0;
  virtual void copy(Queue queue, Memory to, size_t to_offset, Memory from, size_t from_offset, size_t bytes) = 0;
  virtual void fill_zero(Queue queue, Memory to, size_t bytes) = 0;
  virtual void finish(Queue queue) = 0;

  virtual Mark record(Queue queue) = 0;
  virtual void release(Mark mark) noexcept = 0;
  virtual void wait(Mark mark) = 0;               // Blocks the host.
  virtual void wait(Queue queue, Mark mark) = 0;  // Later work in the queue waits.
  virtual double milliseconds(Mark from, Mark to) = 0;

  // Compiles kernels as one program in this process and launches each once, so that the binary holds all that a launch needs: only in a
  // worker. What they are called in it: entry_in_program.
  virtual std::vector<std::byte> compile(std::span<const KernelSource> kernels) = 0;
  virtual Module load(std::span<const std::byte> binary) = 0;
  virtual void release(Module module) noexcept = 0;
  virtual Function function(Module module, const std::string& entry) = 0;
  virtual void release(Function function) noexcept = 0;
  // Work-groups by axis, each of `group_size` work-items along x. Not re-entrant for one function.
  virtual void launch(Queue queue, Function function, std::array<uint32_t, 3> groups, std::span<const Argument> arguments) = 0;
};

// A vendor's interface: what its library finds.
struct Vendor {
  std::string name;  // "opencl": the prefix of device ids and kernel names.
  Availability (*probe)() = nullptr;
  std::unique_ptr<Driver> (*open)(size_t index) = nullptr;
};

const Vendor& opencl_vendor();
// Null if there is none of this name.
const Vendor* vendor_named(const std::string& name);

}  // namespace unmoor::gpu
