#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unmoor/tensor/dtype.h"

namespace unmoor {

class KernelTable;

// Device memory. Freed with its last owner. Several streams may read it at once; who writes it must be alone, which events arrange.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual size_t bytes() const = 0;
  virtual std::byte* host() { return nullptr; }  // Null if the host cannot address it.
};

// A point in a stream's work. One thread at a time.
class Event {
 public:
  virtual ~Event() = default;
  virtual void wait() = 0;  // Blocks the host. Throws what went wrong before it.
  // Device time between two events that have both passed.
  virtual double milliseconds_since(const Event& earlier) const = 0;
};

// An ordered queue of work. Calls may return before the work is done; memory given to upload and download must stay until then.
// One thread at a time. Keeps its first error and does nothing more; events then throw it, and synchronize throws it and forgets it.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void upload(Buffer& to, size_t offset, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, Buffer& from, size_t offset) = 0;
  // Within this device; regions do not overlap.
  virtual void copy(Buffer& to, size_t to_offset, Buffer& from, size_t from_offset, size_t bytes) = 0;
  virtual std::unique_ptr<Event> record() = 0;
  virtual void wait(const Event& event) = 0;  // Later work here waits for the event.
  virtual void synchronize() = 0;
};

struct DeviceInfo {
  std::string id;    // "opencl:0": backend and index.
  std::string name;  // "NVIDIA H200", the processor's name.
  std::string arch;  // "gfx90a", "avx512"; may be empty.
  std::map<std::string, std::string> versions = {};  // "driver", "runtime", …
  std::map<std::string, std::string> features = {};  // Parts of the processor that kernels may use: "amx" is "on", or "off: " and why.
  size_t memory_bytes = 0;
  bool host = false;           // Buffers are host memory: kernels may be `evaluate` ones.
  bool separate_process = false;  // Its driver may abort: tools run it in a worker.
};

// An opened device. allocate and make_stream may be called from any thread.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual const KernelTable& kernels() const = 0;
  // At least `bytes` (1 if 0), aligned to 64 bytes or more. Fails with OutOfMemory.
  virtual std::shared_ptr<Buffer> allocate(size_t bytes) = 0;  // Shared: plans and sessions hold the same weights.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  // Documented kernel options ("winograd" = "off", "threads" = "2"). Fails with InvalidArgument on an unknown one, naming those known.
  // Every device knows "exact" = "on" or "off": only kernels whose results differ from plain arithmetic by the order of sums alone. A device
  // that has no others has nothing to do for it.
  virtual void set_option(const std::string& key, const std::string& value);
  // Whether images should lie with their channels last where its kernels take nodes so.
  virtual bool prefers_channels_last() const { return false; }
  // What has been prepared so far was for these options. Called once all steps of a plan are prepared: compile, save caches.
  virtual void finish_preparation() {}
  // What is worth knowing about how it prepared so far, a sentence each: a cache that was used, or why it was not. Any thread.
  virtual std::vector<std::string> notes() const { return {}; }
};

// An option's value as a switch. Fails with InvalidArgument on what is neither "on" nor "off".
bool is_on(const std::string& key, const std::string& value);

// What `doctor` shows for a backend: its devices, or why there are none.
struct Availability {
  std::vector<DeviceInfo> devices = {};
  std::string reason = {};  // "libOpenCL.so.1 was not found". Empty if there are devices.
  std::vector<std::string> libraries = {};  // Paths of the vendor libraries opened.
};

// A family of devices. Stateless but for lazily opened libraries; any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual Availability probe() = 0;
  // Fails with Device, giving the reason.
  virtual std::shared_ptr<Device> open(size_t index) = 0;  // Shared: plans keep their devices.
};

}  // namespace unmoor
