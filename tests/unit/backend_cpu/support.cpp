#include "tests/unit/backend_cpu/support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "hwy/highway.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::test {

namespace {

constexpr size_t guard = 256;
constexpr std::byte guard_byte{0xa5};

std::shared_ptr<Buffer> guarded(Device& device, size_t bytes) {
  auto buffer = device.allocate(bytes + 2 * guard);
  std::memset(buffer->host(), static_cast<int>(guard_byte), bytes + 2 * guard);
  return buffer;
}

void check_guards(const std::string& what, Buffer& buffer, size_t bytes) {
  for (size_t i = 0; i < guard; ++i) {
    ASSERT_EQ(buffer.host()[i], guard_byte) << what << ": byte " << i << " of the guard before it";
    ASSERT_EQ(buffer.host()[guard + bytes + i], guard_byte) << what << ": byte " << i << " of the guard after it";
  }
}

// A kernel that works on values.
std::vector<Tensor> run_values(const Kernel& kernel, const OpCall& call, const std::vector<Tensor>& inputs) {
  std::vector<Data> data;
  for (const Tensor& input : inputs) data.push_back(input ? Data(input) : Data());
  Outputs outputs(call.outputs.size());
  kernel.evaluate(call, data, outputs);
  std::vector<Tensor> found;
  for (Data& made : outputs.all()) found.push_back(made ? made.tensor() : Tensor());
  return found;
}

}  // namespace

Tensor random_floats(Shape shape, uint32_t seed) {
  Tensor tensor(TensorType{DType::F32, std::move(shape)});
  uint32_t state = seed * 2654435761U + 12345;
  for (float& value : tensor.writable_span<float>()) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / static_cast<float>(1 << 23);
  }
  return tensor;
}

std::shared_ptr<Device> open_cpu(size_t threads) {
  auto device = make_cpu_backend()->open(0);
  device->set_option("threads", std::to_string(threads));
  return device;
}

std::vector<Tensor> run_kernel(Device& device, const OpCall& call, const std::vector<Tensor>& inputs, const Kernel* kernel, bool in_place) {
  std::string refusals;
  for (const Kernel& one : device.kernels().find(call.node.op)) {
    if (kernel != nullptr) break;
    const Support support = one.supports(call);
    if (support) kernel = &one;
    if (!support) refusals += cat(one.name, ": ", support.detail, "; ");
  }
  if (kernel == nullptr) {
    ADD_FAILURE() << "no kernel takes " << call.node.op << ": " << refusals;
    return {};
  }
  if (kernel->evaluate) return run_values(*kernel, call, inputs);
  const Prepared prepared = kernel->prepare(call, device);
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Operand> in(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool unused = i < prepared.unused_inputs.size() && prepared.unused_inputs[i];
    if (!inputs[i] || unused) continue;
    buffers.push_back(device.allocate(inputs[i].bytes().size()));
    if (!inputs[i].bytes().empty()) std::memcpy(buffers.back()->host(), inputs[i].bytes().data(), inputs[i].bytes().size());
    in[i] = {buffers.back().get(), 0};
  }
  std::vector<Operand> out(call.outputs.size());
  std::vector<std::shared_ptr<Buffer>> results(call.outputs.size());
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.wants_output(i)) continue;
    results[i] = guarded(device, call.output(i).bytes());
    out[i] = {results[i].get(), guard};
    if (i != 0 || !in_place) continue;
    if (!inputs[0].bytes().empty()) std::memcpy(results[0]->host() + guard, inputs[0].bytes().data(), inputs[0].bytes().size());
    in[0] = out[0];
  }
  const auto workspace = guarded(device, prepared.workspace_bytes);
  const auto stream = device.make_stream();
  prepared.run(*stream, {in, out, {workspace.get(), guard}});
  stream->synchronize();
  check_guards("workspace", *workspace, prepared.workspace_bytes);
  std::vector<Tensor> found(call.outputs.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (!call.wants_output(i)) continue;
    const size_t bytes = call.output(i).bytes();
    check_guards("output", *results[i], bytes);
    found[i] = Tensor(call.output(i));
    if (bytes != 0) std::memcpy(found[i].writable_bytes().data(), results[i]->host() + guard, bytes);
  }
  return found;
}

std::vector<Tensor> run_by_hand(Device& device, const ByHand& by_hand) {
  Node node{by_hand.op, by_hand.op, {}, {}, by_hand.attributes, {}};
  std::vector<std::optional<Type>> types;
  std::vector<const Tensor*> constants;
  for (size_t i = 0; i < by_hand.inputs.size(); ++i) {
    const Tensor& tensor = by_hand.inputs[i];
    node.inputs.push_back(tensor ? ValueId{static_cast<uint32_t>(i)} : no_value);
    types.push_back(tensor ? std::optional<Type>(tensor.type()) : std::nullopt);
    constants.push_back(tensor && i < by_hand.constant.size() && by_hand.constant[i] ? &tensor : nullptr);
  }
  std::vector<Type> outputs;
  for (const TensorType& type : by_hand.outputs) {
    node.outputs.push_back(ValueId{static_cast<uint32_t>(100 + outputs.size())});
    outputs.emplace_back(type);
  }
  return run_kernel(device, OpCall{node, types, outputs, constants}, by_hand.inputs);
}

double relative_error(const Tensor& found, const std::vector<double>& wanted) {
  const std::vector<double> values = doubles(found);
  if (values.size() != wanted.size()) return std::numeric_limits<double>::infinity();
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(wanted[i]) || !std::isfinite(values[i])) {
      const bool same = std::isnan(wanted[i]) ? std::isnan(values[i]) : wanted[i] == values[i];
      if (!same) return std::numeric_limits<double>::infinity();
      continue;
    }
    error += (values[i] - wanted[i]) * (values[i] - wanted[i]);
    size += wanted[i] * wanted[i];
  }
  return error == 0 ? 0 : std::sqrt(error / std::max(size, 1e-30));
}

void for_each_target(const std::function<void(const std::string&)>& body) {
  const int64_t supported = hwy::SupportedTargets();
  for (const int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_SSSE3, HWY_STATIC_TARGET}) {
    if ((supported & target) == 0 && target != HWY_STATIC_TARGET) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    body(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace unmoor::test
