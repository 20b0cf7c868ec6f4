#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "unmoor/hal/host.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::test {

// An accelerator with memory of its own, whose kernels are the operators' references: the planner's and session's counterpart in tests.
// It runs the operators that it is given and refuses nodes whose names are in `refused`. Faults: the n-th call of a kind fails.
class FakeDevice : public Device {
 public:
  struct Faults {
    std::atomic<int> allocations{-1};
    std::atomic<int> copies{-1};
    std::atomic<int> kernels{-1};
  };
  struct Counters {
    std::atomic<size_t> uploads{0};
    std::atomic<size_t> downloads{0};
    std::atomic<size_t> runs{0};
    std::atomic<size_t> waits{0};  // Times that the host waited for the device.
  };

  FakeDevice(const std::set<std::string>& ops, std::set<std::string> refused = {}) : refused_(std::move(refused)) {
    info_.id = "fake:0";
    info_.name = "memory of its own";
    for (const std::string& op : ops) table_.add(op, kernel_for(op));
  }

  const DeviceInfo& info() const override { return info_; }
  const KernelTable& kernels() const override { return table_; }
  std::shared_ptr<Buffer> allocate(size_t bytes) override;
  std::unique_ptr<Stream> make_stream() override;

  Faults faults;
  Counters counters;
  bool late = false;  // Streams do their work only when somebody waits for it, as late as an accelerator may.

  // Fails when the count-down of a fault reaches zero.
  static void step(std::atomic<int>& countdown, const char* what) {
    if (countdown >= 0 && countdown-- == 0) fail(ErrorKind::Device, what, " failed, as the test asked");
  }

 private:
  class Memory : public Buffer {
   public:
    explicit Memory(size_t bytes) : content(bytes + 1, std::byte{0xCD}) {}
    size_t bytes() const override { return content.size() - 1; }
    std::vector<std::byte> content;
  };

  class Queue : public Stream {
   public:
    explicit Queue(FakeDevice& device) : device_(device), clock_(make_host_stream()) {}
    ~Queue() override { work_off(); }
    // Now or late.
    void enqueue(std::function<void()> work) {
      if (!device_.late) return work();
      waiting_.push_back(std::move(work));
    }
    void upload(Buffer& to, size_t offset, std::span<const std::byte> from) override {
      step(device_.faults.copies, "a copy");
      ++device_.counters.uploads;
      if (!from.empty()) enqueue([&to, offset, from] { std::memcpy(at(to, offset), from.data(), from.size()); });
    }
    void download(std::span<std::byte> to, Buffer& from, size_t offset) override {
      step(device_.faults.copies, "a copy");
      ++device_.counters.downloads;
      if (!to.empty()) enqueue([to, &from, offset] { std::memcpy(to.data(), at(from, offset), to.size()); });
    }
    void copy(Buffer& to, size_t to_offset, Buffer& from, size_t from_offset, size_t bytes) override {
      if (bytes > 0) enqueue([=, &to, &from] { std::memcpy(at(to, to_offset), at(from, from_offset), bytes); });
    }
    std::unique_ptr<Event> record() override { return clock_->record(); }
    void wait(const Event&) override {}
    void synchronize() override {
      ++device_.counters.waits;
      work_off();
    }

   private:
    void work_off() {
      for (const auto& work : std::exchange(waiting_, {})) work();
    }

    FakeDevice& device_;
    std::unique_ptr<Stream> clock_;
    std::vector<std::function<void()>> waiting_;
  };

  static std::byte* at(Buffer& buffer, size_t offset) { return static_cast<Memory&>(buffer).content.data() + offset; }

  Kernel kernel_for(const std::string& op) {
    Kernel kernel;
    kernel.name = "fake." + op;
    kernel.supports = [this](const OpCall& call) {
      return refused_.contains(call.node.origin.name) ? no(Reason::Attribute, "the test refuses ", call.node.origin.name) : yes();
    };
    kernel.prepare = [this](const OpCall& call, Device&) {
      auto node = std::make_shared<const Node>(call.node);
      Prepared prepared;
      prepared.run = [this, node, types = call.inputs, outputs = call.outputs](Stream& stream, const KernelArgs& args) {
        step(faults.kernels, "a kernel");
        ++counters.runs;
        const std::vector<Operand> in(args.inputs.begin(), args.inputs.end());
        const std::vector<Operand> out(args.outputs.begin(), args.outputs.end());
        static_cast<Queue&>(stream).enqueue([=] { run(*node, types, outputs, {in, out, {}}); });
      };
      return prepared;
    };
    return kernel;
  }

  static void run(const Node& node, const std::vector<std::optional<Type>>& types, const std::vector<Type>& outputs, const KernelArgs& args) {
    OpCall call{node, types, outputs, std::vector<const Tensor*>(types.size())};
    std::vector<Data> inputs;
    for (size_t i = 0; i < types.size(); ++i) {
      inputs.emplace_back();
      if (!types[i]) continue;
      Tensor tensor(std::get<TensorType>(*types[i]));
      const auto to = tensor.writable_bytes();
      if (!to.empty()) std::memcpy(to.data(), at(*args.inputs[i].buffer, args.inputs[i].offset), to.size());
      inputs.back() = tensor;
    }
    Outputs results(outputs.size());
    run_reference(call, inputs, results);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (args.outputs[i].buffer == nullptr) continue;
      const auto from = results.all()[i].tensor().bytes();
      if (!from.empty()) std::memcpy(at(*args.outputs[i].buffer, args.outputs[i].offset), from.data(), from.size());
    }
  }

  DeviceInfo info_;
  std::set<std::string> refused_;
  KernelTable table_;
};

inline std::shared_ptr<Buffer> FakeDevice::allocate(size_t bytes) {
  step(faults.allocations, "an allocation");
  return std::make_shared<Memory>(bytes);
}

inline std::unique_ptr<Stream> FakeDevice::make_stream() { return std::make_unique<Queue>(*this); }

}  // namespace unmoor::test
