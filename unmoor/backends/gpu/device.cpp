#include "unmoor/backends/gpu/device.h"

#include <algorithm>

#include "unmoor/backends/gpu/gpu.h"
#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/base/error.h"

namespace unmoor {
namespace gpu {
namespace {

GpuBuffer& own(Buffer& buffer) {
  auto* const mine = dynamic_cast<GpuBuffer*>(&buffer);
  if (mine == nullptr) fail(ErrorKind::Internal, "a buffer of another device was given to a GPU stream");
  return *mine;
}

void check_range(const GpuBuffer& buffer, size_t offset, size_t bytes) {
  if (offset > buffer.bytes() || bytes > buffer.bytes() - offset) {
    fail(ErrorKind::Internal, "bytes ", offset, " to ", offset + bytes, " are outside of a buffer of ", buffer.bytes());
  }
}

}  // namespace

GpuStream::GpuStream(std::shared_ptr<Driver> driver) : driver_(std::move(driver)), queue_(driver_->make_queue()) {}

GpuStream::~GpuStream() {
  try {
    driver_->finish(queue_);  // Memory that was given to upload or download may go after this.
  } catch (const Error&) {
    error_ = nullptr;  // Nobody is left to hear it.
  }
  driver_->release(queue_);
}

void GpuStream::upload(Buffer& to, size_t offset, std::span<const std::byte> from) {
  if (from.empty()) return;
  enqueue([&] {
    check_range(own(to), offset, from.size());
    driver_->write(queue_, own(to).memory(), offset, from);
  });
}

void GpuStream::download(std::span<std::byte> to, Buffer& from, size_t offset) {
  if (to.empty()) return;
  enqueue([&] {
    check_range(own(from), offset, to.size());
    driver_->read(queue_, to, own(from).memory(), offset);
  });
}

void GpuStream::copy(Buffer& to, size_t to_offset, Buffer& from, size_t from_offset, size_t bytes) {
  if (bytes == 0) return;
  enqueue([&] {
    check_range(own(to), to_offset, bytes);
    check_range(own(from), from_offset, bytes);
    driver_->copy(queue_, own(to).memory(), to_offset, own(from).memory(), from_offset, bytes);
  });
}

void GpuStream::launch(CompiledKernel& kernel, std::array<uint32_t, 3> groups, std::span<const Argument> arguments) {
  enqueue([&] {
    try {
      kernel.launch(queue_, groups, arguments);
    } catch (Error& error) {
      error.note(cat("in kernel ", kernel.source().entry));
      throw;
    }
  });
}

Memory GpuStream::fault_memory() {
  if (fault_ == nullptr) {
    fault_ = std::make_unique<GpuBuffer>(driver_, sizeof(int32_t));
    driver_->fill_zero(queue_, fault_->memory(), sizeof(int32_t));
  }
  may_fault_ = true;
  return fault_->memory();
}

Memory GpuStream::memory_of(Buffer& buffer) const { return own(buffer).memory(); }

std::unique_ptr<Event> GpuStream::record() {
  Mark mark{};
  enqueue([&] { mark = driver_->record(queue_); });
  return std::make_unique<GpuEvent>(driver_, mark, error_);
}

void GpuStream::wait(const Event& event) {
  enqueue([&] {
    const auto* const mine = dynamic_cast<const GpuEvent*>(&event);
    if (mine != nullptr && mine->driver() == driver_.get() && mine->mark() != Mark{}) {
      driver_->wait(queue_, mine->mark());
    } else {
      const_cast<Event&>(event).wait();  // Another device's: the host waits.
    }
  });
}

void GpuStream::synchronize() {
  try {
    driver_->finish(queue_);  // Also after an error: the memory given to upload and download may go when this returns.
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  if (may_fault_) check_faults();
}

void GpuStream::check_faults() {
  int32_t code = 0;
  may_fault_ = false;
  driver_->read(queue_, std::as_writable_bytes(std::span(&code, 1)), fault_->memory(), 0);
  driver_->finish(queue_);
  if (static_cast<Fault>(code) == Fault::None) return;
  driver_->fill_zero(queue_, fault_->memory(), sizeof code);
  fail(ErrorKind::InvalidArgument, "an index is outside of the axis that it selects from, in a Gather on ", driver_->info().id);
}

GpuEvent::~GpuEvent() {
  if (mark_ != Mark{}) driver_->release(mark_);
}

void GpuEvent::wait() {
  if (error_) std::rethrow_exception(error_);
  driver_->wait(mark_);
}

double GpuEvent::milliseconds_since(const Event& earlier) const {
  const auto* const mine = dynamic_cast<const GpuEvent*>(&earlier);
  if (mine == nullptr || mine->driver() != driver_.get()) fail(ErrorKind::Internal, "events of two devices have no time between them");
  if (mark_ == Mark{} || mine->mark_ == Mark{}) fail(ErrorKind::Device, "an event that failed has no time");
  return driver_->milliseconds(mine->mark_, mark_);
}

GpuDevice::GpuDevice(const Vendor& vendor, size_t index)
    : driver_(vendor.open(index)), compiler_(driver_, vendor.name, index), table_(make_kernels(vendor.name, driver_->abilities())) {}

std::shared_ptr<Buffer> GpuDevice::allocate(size_t bytes) { return std::make_shared<GpuBuffer>(driver_, std::max(bytes, size_t{1})); }

std::shared_ptr<Buffer> GpuDevice::constant(std::span<const std::byte> content) {
  auto buffer = allocate(content.size());
  GpuStream stream(driver_);
  stream.upload(*buffer, 0, content);
  stream.synchronize();
  return buffer;
}

namespace {

// The devices of one vendor's library.
class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(const Vendor& vendor) : vendor_(vendor) {}
  std::string_view name() const override { return vendor_.name; }
  Availability probe() override { return vendor_.probe(); }
  std::shared_ptr<Device> open(size_t index) override { return std::make_shared<GpuDevice>(vendor_, index); }

 private:
  const Vendor& vendor_;
};

}  // namespace
}  // namespace gpu

std::unique_ptr<Backend> make_opencl_backend() { return std::make_unique<gpu::GpuBackend>(gpu::opencl_vendor()); }

}  // namespace unmoor
