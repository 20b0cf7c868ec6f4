#include "tests/unit/backend_gpu/support.h"

#include <algorithm>
#include <cstdio>


namespace unmoor::gpu {
namespace {

constexpr size_t guard_bytes = 128;
constexpr std::byte guard{0xa5};

size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

std::shared_ptr<Device> test_device() {
  static const std::shared_ptr<Device> device = []() -> std::shared_ptr<Device> {
    const auto backend = make_opencl_backend();
    const auto there = backend->probe();
    if (there.devices.empty()) {
      std::fprintf(stderr, "no OpenCL device: %s\n", there.reason.c_str());
      return nullptr;
    }
    return backend->open(0);
  }();
  return device;
}

std::vector<Tensor> run_prepared(Device& device, const Prepared& prepared, const OpCall& call, const std::vector<Data>& inputs) {
  std::vector<Operand> in(call.inputs.size());
  std::vector<Operand> out(call.outputs.size());
  size_t total = guard_bytes;
  const auto place = [&total](Operand& operand, size_t bytes) {
    operand.offset = total;
    total += rounded(bytes) + guard_bytes;
  };
  for (size_t i = 0; i < in.size(); ++i) {
    if (inputs[i]) place(in[i], inputs[i].tensor().bytes().size());
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (call.wants_output(i)) place(out[i], call.output(i).bytes());
  }
  const auto arena = device.allocate(total);
  const auto workspace = device.allocate(prepared.workspace_bytes);
  const auto stream = device.make_stream();
  std::vector<std::byte> host(total, guard);
  for (size_t i = 0; i < in.size(); ++i) {
    if (!inputs[i]) continue;
    in[i].buffer = arena.get();
    std::ranges::copy(inputs[i].tensor().bytes(), host.begin() + static_cast<std::ptrdiff_t>(in[i].offset));
  }
  stream->upload(*arena, 0, host);
  for (size_t i = 0; i < out.size(); ++i) out[i].buffer = call.wants_output(i) ? arena.get() : nullptr;
  prepared.run(*stream, {.inputs = in, .outputs = out, .workspace = {.buffer = workspace.get(), .offset = 0}});
  std::vector<std::byte> after(total);
  stream->download(after, *arena, 0);
  stream->synchronize();
  std::vector<Tensor> results(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!call.wants_output(i)) continue;
    results[i] = Tensor(call.output(i));
    const auto bytes = results[i].writable_bytes();
    const auto from = after.begin() + static_cast<std::ptrdiff_t>(out[i].offset);
    std::copy_n(from, bytes.size(), bytes.begin());
    std::copy_n(host.begin() + static_cast<std::ptrdiff_t>(out[i].offset), bytes.size(), from);
  }
  EXPECT_TRUE(after == host) << call.node.op << " wrote outside of its outputs";
  return results;
}

std::vector<Tensor> run_on_device(Device& device, const Kernel& kernel, const OpCall& call, const std::vector<Data>& inputs) {
  const auto prepared = kernel.prepare(call, device);
  device.finish_preparation();
  return run_prepared(device, prepared, call, inputs);
}

}  // namespace unmoor::gpu
