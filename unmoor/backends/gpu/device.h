#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unmoor/backends/gpu/compiler.h"
#include "unmoor/backends/gpu/driver.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::gpu {

// Device memory of a driver.
class GpuBuffer final : public Buffer {
 public:
  GpuBuffer(std::shared_ptr<Driver> driver, size_t bytes)
      : driver_(std::move(driver)), bytes_(bytes), memory_(driver_->allocate(bytes)) {}
  ~GpuBuffer() override { driver_->release(memory_); }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  size_t bytes() const override { return bytes_; }
  Memory memory() const { return memory_; }

 private:
  std::shared_ptr<Driver> driver_;  // Shared: memory may outlive the device.
  size_t bytes_;
  Memory memory_;
};

// A fault that a kernel found in its data, kept on the device until the stream is synchronised.
enum class Fault : int32_t { None = 0, Index = 1 };

// An in-order queue of a driver.
class GpuStream final : public Stream {
 public:
  explicit GpuStream(std::shared_ptr<Driver> driver);
  ~GpuStream() override;
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  void upload(Buffer& to, size_t offset, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, Buffer& from, size_t offset) override;
  void copy(Buffer& to, size_t to_offset, Buffer& from, size_t from_offset, size_t bytes) override;
  std::unique_ptr<Event> record() override;
  void wait(const Event& event) override;
  void synchronize() override;

  void launch(CompiledKernel& kernel, std::array<uint32_t, 3> groups, std::span<const Argument> arguments);
  Memory memory_of(Buffer& buffer) const;  // Fails with Internal if it is another device's.
  // An int32 on the device where kernels report a Fault. Using it makes synchronize look at it.
  Memory fault_memory();

 private:
  // Runs a step unless an earlier one failed; keeps what it throws.
  template <class Step>
  void enqueue(const Step& step) {
    if (error_) return;
    try {
      step();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void check_faults();

  std::shared_ptr<Driver> driver_;  // Shared: streams may outlive the device.
  Queue queue_;
  std::exception_ptr error_;
  std::unique_ptr<GpuBuffer> fault_;
  bool may_fault_ = false;
};

class GpuEvent final : public Event {
 public:
  GpuEvent(std::shared_ptr<Driver> driver, Mark mark, std::exception_ptr error)
      : driver_(std::move(driver)), mark_(mark), error_(std::move(error)) {}
  ~GpuEvent() override;
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  void wait() override;
  double milliseconds_since(const Event& earlier) const override;
  const Driver* driver() const { return driver_.get(); }
  Mark mark() const { return mark_; }

 private:
  std::shared_ptr<Driver> driver_;  // Shared: events may outlive the device.
  Mark mark_;                       // None if the stream had failed.
  std::exception_ptr error_;
};

// A device behind a driver, with the kernels that all of them share.
class GpuDevice final : public Device {
 public:
  GpuDevice(const Vendor& vendor, size_t index);

  const DeviceInfo& info() const override { return driver_->info(); }
  const KernelTable& kernels() const override { return table_; }
  std::shared_ptr<Buffer> allocate(size_t bytes) override;
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<GpuStream>(driver_); }
  void finish_preparation() override { compiler_.compile_missing(); }

  Abilities abilities() const { return driver_->abilities(); }
  Compiler& compiler() { return compiler_; }
  // A buffer with this content, for tables that kernels need.
  std::shared_ptr<Buffer> constant(std::span<const std::byte> content);

 private:
  std::shared_ptr<Driver> driver_;  // Shared with everything that was made from it.
  Compiler compiler_;
  KernelTable table_;
};

}  // namespace unmoor::gpu
