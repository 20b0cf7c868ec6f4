#include "unmoor/backends/reference/reference.h"

#include "unmoor/hal/host.h"
#include "unmoor/hal/kernel.h"

namespace unmoor {
namespace {

KernelTable make_table() {
  KernelTable table;
  Kernel kernel;
  kernel.name = "reference";
  kernel.supports = [](const OpCall& call) {
    const Op* const op = all_ops().find(call.node.op);
    if (op == nullptr) return no(Reason::NoKernel, "operator ", call.node.op, " is not known");
    return op->reference ? yes() : no(Reason::NoKernel, "operator ", call.node.op, " has no reference function");
  };
  kernel.evaluate = run_reference;
  table.set_generic(std::move(kernel));
  return table;
}

class ReferenceDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  const KernelTable& kernels() const override { return table_; }
  std::shared_ptr<Buffer> allocate(size_t bytes) override { return make_host_buffer(bytes); }
  std::unique_ptr<Stream> make_stream() override { return make_host_stream(); }

  static DeviceInfo describe() {
    DeviceInfo info;
    info.id = "reference";
    info.name = "plain loops, sums in float64";
    info.host = true;
    return info;
  }

 private:
  DeviceInfo info_ = describe();
  KernelTable table_ = make_table();
};

class ReferenceBackend : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  Availability probe() override {
    Availability here;
    here.devices.push_back(ReferenceDevice::describe());
    return here;
  }
  std::shared_ptr<Device> open(size_t index) override {
    if (index != 0) fail(ErrorKind::Device, "reference:", index, " does not exist: there is one reference device");
    return std::make_shared<ReferenceDevice>();
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace unmoor
