#include "unmoor/hal/host.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"

namespace unmoor {
namespace {

constexpr size_t alignment = 64;
constexpr size_t huge_page = size_t{2} << 20;

class HostBuffer : public Buffer {
 public:
  explicit HostBuffer(size_t bytes) : bytes_(bytes) {
    const size_t step = bytes >= 2 * huge_page ? huge_page : alignment;
    if (bytes > size_t{1} << 62) fail(ErrorKind::OutOfMemory, "a buffer of ", bytes, " bytes was asked for");
    const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    taken_ = TakenMemory(rounded);
    void* memory = nullptr;
    if (::posix_memalign(&memory, step, rounded) != 0) fail(ErrorKind::OutOfMemory, "no memory for a buffer of ", bytes, " bytes");
    memory_.reset(static_cast<std::byte*>(memory));
    // The rest stays in small pages: a hundred weights would waste a hundred half huge ones.
    if (step == huge_page) ::madvise(memory, rounded / huge_page * huge_page, MADV_HUGEPAGE);
  }
  size_t bytes() const override { return bytes_; }
  std::byte* host() override { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  size_t bytes_;
  TakenMemory taken_;
  std::unique_ptr<std::byte, Free> memory_;
};

class HostEvent : public Event {
 public:
  void wait() override {}
  double milliseconds_since(const Event& earlier) const override {
    return std::chrono::duration<double, std::milli>(at_ - dynamic_cast<const HostEvent&>(earlier).at_).count();
  }

 private:
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

class HostStream : public Stream {
 public:
  void upload(Buffer& to, size_t offset, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to.host() + offset, from.data(), from.size());
  }
  void download(std::span<std::byte> to, Buffer& from, size_t offset) override {
    if (!to.empty()) std::memcpy(to.data(), from.host() + offset, to.size());
  }
  void copy(Buffer& to, size_t to_offset, Buffer& from, size_t from_offset, size_t bytes) override {
    if (bytes > 0) std::memcpy(to.host() + to_offset, from.host() + from_offset, bytes);
  }
  std::unique_ptr<Event> record() override { return std::make_unique<HostEvent>(); }
  void wait(const Event&) override {}
  void synchronize() override {}
};

}  // namespace

std::shared_ptr<Buffer> make_host_buffer(size_t bytes) { return std::make_shared<HostBuffer>(bytes); }
std::unique_ptr<Stream> make_host_stream() { return std::make_unique<HostStream>(); }

}  // namespace unmoor
