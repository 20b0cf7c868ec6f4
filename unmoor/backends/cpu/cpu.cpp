#include "unmoor/backends/cpu/cpu.h"

#include <unistd.h>

#include <charconv>
#include <fstream>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/hal/host.h"

namespace unmoor {

namespace cpu {

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "processor";
}

size_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(size) : 0;
}

DeviceInfo describe() {
  return {.id = "cpu", .name = processor_name(), .arch = arch_name(), .memory_bytes = memory_bytes(), .host = true};
}

// Whatever has a reference, run by it.
Kernel generic_kernel() {
  return {.name = "cpu.generic",
          .supports =
              [](const OpCall& call) {
                const Op* op = all_ops().find(call.node.op);
                if (op == nullptr) {
                  return no(Reason::NoKernel, call.node.op, " is not known here");
                }
                return op->reference ? yes() : no(Reason::NoKernel, call.node.op, " has no reference");
              },
          .evaluate = [](const OpCall& call, std::span<const Data> in, Outputs& out) { run_reference(call, in, out); }};
}

KernelTable make_kernels(bool winograd) {
  KernelTable table;
  add_binary_kernels(table);
  add_matmul_kernels(table);
  add_attention_kernels(table);
  add_depthwise_kernels(table);
  add_conv_kernels(table);
  add_last_depthwise_kernels(table);
  if (winograd) add_winograd_kernels(table);
  add_last_conv_kernels(table);
  add_inverted_kernels(table);
  add_conv_transpose_kernels(table);
  add_pool_kernels(table);
  add_unary_kernels(table);
  add_softmax_kernels(table);
  add_normalize_kernels(table);
  add_reduce_kernels(table);
  add_move_kernels(table);
  add_gather_kernels(table);
  add_cast_kernels(table);
  add_resize_kernels(table);
  add_recurrent_kernels(table);
  add_tree_kernels(table);
  table.set_generic(generic_kernel());
  return table;
}

size_t count_of(const std::string& value) {
  size_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size()) {
    fail(ErrorKind::InvalidArgument, "threads is '", value, "', not a number");
  }
  return count;
}

bool is_on(const std::string& key, const std::string& value) {
  if (value != "on" && value != "off") {
    fail(ErrorKind::InvalidArgument, key, " is '", value, "', not on or off");
  }
  return value == "on";
}

class HostDevice final : public CpuDevice {
 public:
  const DeviceInfo& info() const override { return info_; }
  const KernelTable& kernels() const override {
    static const KernelTable all = make_kernels(true);
    static const KernelTable plain = make_kernels(false);
    return winograd_ ? all : plain;
  }
  bool prefers_channels_last() const override { return channels_last_; }
  std::shared_ptr<Buffer> allocate(size_t bytes) override { return make_host_buffer(bytes); }
  std::unique_ptr<Stream> make_stream() override { return make_host_stream(); }
  void set_option(const std::string& key, const std::string& value) override {
    if (key == "threads") {
      machine_.pool().resize(count_of(value));
    } else if (key == "winograd") {
      winograd_ = is_on(key, value);
    } else if (key == "channels_last") {
      channels_last_ = is_on(key, value);
    } else {
      fail(ErrorKind::InvalidArgument, "the cpu device has no option '", key, "'; it has: channels_last, threads, winograd");
    }
  }

 private:
  DeviceInfo info_ = describe();
  bool winograd_ = true;
  bool channels_last_ = true;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Availability probe() override { return {.devices = {describe()}}; }
  std::shared_ptr<Device> open(size_t index) override {
    if (index != 0) {
      fail(ErrorKind::Device, "cpu:", index, " does not exist: there is one cpu device, 0");
    }
    return std::make_shared<HostDevice>();
  }
};

}  // namespace

}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace unmoor
