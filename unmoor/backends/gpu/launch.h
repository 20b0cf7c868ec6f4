#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unmoor/backends/gpu/device.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::gpu {

// One launch of a kernel, with everything known but where the operands lie: what `prepare` makes and `run` binds. The calls add
// arguments in the order of the kernel's parameters. Not shared while it is built; then immutable.
class Launch {
 public:
  // `text` is the kernel's source without the prelude, `defines` what it is specialised by: {"TYPE f32", "RANK 3"}.
  Launch(std::string entry, std::string_view text, const std::vector<std::string>& defines = {});

  Launch& input(const OpCall& call, size_t index);   // Absent ones too: the kernel gets no memory.
  Launch& output(const OpCall& call, size_t index);
  // An operand seen as elements of another size, for kernels that only move bytes.
  Launch& input_bytes(size_t index, size_t element_bytes);
  Launch& output_bytes(size_t index, size_t element_bytes);
  Launch& workspace(size_t element_bytes, size_t element_offset = 0);
  Launch& constant(std::shared_ptr<Buffer> buffer);
  Launch& nothing();  // A memory that is not there.
  Launch& faults();   // Where the kernel reports a Fault: int32, not MEMORY.
  Launch& integer(int64_t value);  // int32. Fails with Internal if it does not fit.
  Launch& integers(const std::vector<int64_t>& values);
  Launch& real(double value);  // float32.

  Launch& groups(int64_t x, int64_t y = 1, int64_t z = 1);
  Launch& elements(int64_t count);  // A work-item an element.
  Launch& rows(int64_t count);      // A work-group a row.
  // Registers the kernel with the device's compiler.
  Launch& ready(GpuDevice& device);

  void run(GpuStream& stream, const KernelArgs& arguments) const;
  bool is_empty() const { return groups_[0] == 0 || groups_[1] == 0 || groups_[2] == 0; }
  bool uses_input(size_t index) const;
  CompiledKernel& kernel() const { return *kernel_; }

 private:
  enum class Source : uint8_t { Number, Input, Output, Workspace, Constant, Nothing, Faults };
  struct Slot {
    Source source = Source::Number;
    size_t index = 0;
    size_t element_bytes = 1;
    int64_t first = 0;  // Element that the operand begins at, on top of its own offset.
    Argument number = {};
  };

  Launch& operand(Source source, size_t index, size_t element_bytes, int64_t first = 0);
  template <class T>
  Launch& number(char letter, T value);
  void bind(const Slot& slot, GpuStream& stream, const KernelArgs& arguments, std::vector<Argument>& bound) const;

  KernelSource source_;
  std::array<uint32_t, 3> groups_{0, 1, 1};
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<Buffer>> constants_;  // Shared with nobody yet; kept while the launch lives.
  std::shared_ptr<CompiledKernel> kernel_;          // Shared with the compiler and equal launches.
};

// Runs the launches in order; inputs that none of them binds are unused. Kernels that are not compiled yet (a step prepared during a run)
// are compiled first.
Prepared run_in_order(const OpCall& call, GpuDevice& device, std::vector<Launch> launches, size_t workspace_bytes = 0);
// So many rows are not too many work-groups.
Support rows_fit(int64_t count);

// Prepare functions get the shared interface; every device here is one of ours.
GpuDevice& gpu_device(Device& device);
GpuStream& gpu_stream(Stream& stream);

}  // namespace unmoor::gpu
