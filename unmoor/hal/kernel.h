#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/hal/device.h"
#include "unmoor/hal/support.h"

namespace unmoor {

// Where one input or output lies: dense, row-major, of the type that the kernel was prepared for.
struct Operand {
  Buffer* buffer = nullptr;  // Null where an optional one is absent.
  size_t offset = 0;         // In bytes; a multiple of 64.
  std::byte* host() const { return buffer == nullptr ? nullptr : buffer->host() + offset; }
};

struct KernelArgs {
  std::span<const Operand> inputs;  // As in the call. Also constants: a kernel that packed one may ignore its operand.
  std::span<const Operand> outputs;
  Operand workspace;                // Of Prepared::workspace_bytes.
};

// A kernel made ready for one call's types, attributes and constants.
struct Prepared {
  // Enqueues; does not wait. Const and re-entrant: sessions share it.
  std::function<void(Stream&, const KernelArgs&)> run = {};
  size_t workspace_bytes = 0;
  // By input: true if `run` does not read its operand (a weight that was packed), so it need not be on the device.
  std::vector<bool> unused_inputs = {};
};

// One way of a device to run an operator. Immutable. Exactly one of prepare and evaluate is set.
struct Kernel {
  std::string name;  // "opencl.softmax.row": in plans, traces, reports.
  // Shapes in the call are known. Must not throw.
  std::function<Support(const OpCall&)> supports = {};
  // Weights are packed, code is compiled here. Constants may be read from the call only during this function.
  std::function<Prepared(const OpCall&, Device&)> prepare = {};
  // Host devices only: works on values instead of buffers. For sequences and strings, for output shapes that only data tells,
  // and for the reference.
  std::function<void(const OpCall&, std::span<const Data> in, Outputs& out)> evaluate = {};
  // May write output 0 over input 0 when their types have equal bytes and nobody else needs the input.
  bool in_place = false;
};

// Kernels of a device by operator, best first. A table may end in a generic kernel that answers for every operator.
class KernelTable {
 public:
  void add(std::string op, Kernel kernel) { kernels_[std::move(op)].push_back(std::move(kernel)); }
  void set_generic(Kernel kernel) { generic_.push_back(std::move(kernel)); }
  std::span<const Kernel> find(std::string_view op) const;  // Without the generic one.
  const Kernel* generic() const { return generic_.empty() ? nullptr : &generic_[0]; }
  const std::map<std::string, std::vector<Kernel>, std::less<>>& all() const { return kernels_; }

 private:
  std::map<std::string, std::vector<Kernel>, std::less<>> kernels_;
  std::vector<Kernel> generic_;  // None or one.
};

}  // namespace unmoor
