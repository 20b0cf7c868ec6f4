#include "unmoor/backends/cpu/cpu.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "unmoor/backends/cpu/amx/amx.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/packed_cache.h"
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
  const TileChoice choice = tiles();
  const std::string amx = choice.loops != nullptr ? "on" : cat("off: ", choice.refusal);
  return {.id = "cpu", .name = processor_name(), .arch = arch_name(), .features = {{"amx", amx}}, .memory_bytes = memory_bytes(), .host = true};
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

KernelTable make_kernels(bool winograd, bool amx) {
  KernelTable table;
  add_binary_kernels(table);
  if (amx) add_f32x6_matmul_kernels(table);
  add_matmul_kernels(table);
  add_attention_kernels(table);
  add_depthwise_kernels(table);
  add_conv_kernels(table);
  add_last_depthwise_kernels(table);
  if (winograd) add_winograd_kernels(table);
  if (amx) add_f32x6_conv_kernels(table);
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
  add_quantized_lstm_kernels(table);
  add_quantized_matmul_kernels(table);
  add_quantized_block_kernels(table);
  add_quantized_elementwise_kernels(table);
  add_einsum_kernels(table);
  add_pick_kernels(table);
  add_scatter_kernels(table);
  add_block_kernels(table);
  add_create_kernels(table);
  add_select_kernels(table);
  add_choose_kernels(table);
  add_running_kernels(table);
  add_fold_kernels(table);
  add_plain_kernels(table);
  add_norm_kernels(table);
  add_lp_pool_kernels(table);
  add_loss_kernels(table);
  add_grid_kernels(table);
  add_roi_kernels(table);
  add_rotary_kernels(table);
  add_quantize_kernels(table);
  add_integer_bytes_kernels(table);
  add_integer_product_kernels(table);
  add_integer_conv_kernels(table);
  add_signal_kernels(table);
  add_state_kernels(table);
  add_deform_conv_kernels(table);
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

class HostDevice final : public CpuDevice {
 public:
  explicit HostDevice(const std::shared_ptr<ThreadPool>& pool) : CpuDevice(pool), own_threads_(pool == nullptr) {
    const char* const cache = std::getenv("UNMOOR_WEIGHTS_CACHE");
    set_cache(cache == nullptr || *cache == '\0' ? "on" : cache);
  }
  const DeviceInfo& info() const override { return info_; }
  const KernelTable& kernels() const override {
    static const std::array<std::array<KernelTable, 2>, 2> tables{{{make_kernels(false, false), make_kernels(false, true)},
                                                                   {make_kernels(true, false), make_kernels(true, true)}}};
    return tables.at(winograd_ && !exact_ ? 1 : 0).at(amx_ && !exact_ ? 1 : 0);
  }
  bool prefers_channels_last() const override { return channels_last_; }
  std::shared_ptr<Buffer> allocate(size_t bytes) override { return make_host_buffer(bytes); }
  std::unique_ptr<Stream> make_stream() override { return make_host_stream(); }
  void set_option(const std::string& key, const std::string& value) override {
    if (key == "threads" || key == "affinity") {
      set_threads(key, value);
    } else if (key == "winograd") {
      winograd_ = is_on(key, value);
    } else if (key == "exact") {
      exact_ = is_on(key, value);
    } else if (key == "amx") {
      amx_ = is_on(key, value);
    } else if (key == "channels_last") {
      channels_last_ = is_on(key, value);
    } else if (key == "weights_cache") {
      set_cache(value);
    } else {
      fail(ErrorKind::InvalidArgument, "the cpu device has no option '", key,
           "'; it has: affinity, amx, channels_last, exact, threads, weights_cache, winograd");
    }
  }
  void finish_preparation() override { machine_.weights().finish(); }
  std::vector<std::string> notes() const override {
    const auto cache = machine_.weights().cache();
    std::vector<std::string> notes{cache == nullptr ? "packed weights: the cache is off" : cache->note()};
    const TileChoice choice = tiles();
    if (choice.worth_telling) notes.push_back(cat("amx is off: ", choice.refusal));
    std::erase(notes, "");
    return notes;
  }

 private:
  void set_threads(const std::string& key, const std::string& value) {
    if (!own_threads_) fail(ErrorKind::InvalidArgument, key, " cannot be set: the cpu device runs on its program's threads");
    if (key == "threads") {
      machine_.pool().resize(count_of(value));
    } else {
      machine_.pool().pin(is_on(key, value));
    }
  }
  void set_cache(const std::string& value) {
    const auto settings = PackedCache::settings_of(value);
    machine_.weights().set_cache(settings ? std::make_shared<PackedCache>(*settings, machine_.shared_pool()) : nullptr);
  }

  DeviceInfo info_ = describe();
  bool own_threads_;
  bool winograd_ = true;
  bool amx_ = true;
  bool exact_ = false;
  bool channels_last_ = true;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(std::shared_ptr<ThreadPool> pool) : pool_(std::move(pool)) {}
  std::string_view name() const override { return "cpu"; }
  Availability probe() override { return {.devices = {describe()}}; }
  std::shared_ptr<Device> open(size_t index) override {
    if (index != 0) {
      fail(ErrorKind::Device, "cpu:", index, " does not exist: there is one cpu device, 0");
    }
    return std::make_shared<HostDevice>(pool_);
  }

 private:
  std::shared_ptr<ThreadPool> pool_;  // The program's, or null.
};

}  // namespace

}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(std::shared_ptr<ThreadPool> pool) {
  return std::make_unique<cpu::CpuBackend>(std::move(pool));
}

}  // namespace unmoor
