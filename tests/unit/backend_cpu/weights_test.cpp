#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/backend_cpu/support.h"
#include "tests/unit/passes/sketch.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/runtime/session.h"

namespace unmoor::test {
namespace {

size_t packed_bytes(Device& device) { return cpu::machine_of(device).weights().bytes(); }

// The first kernel that takes a product of [rows, 64] with these weights, made ready.
Prepared prepared(Device& device, int64_t rows, const Tensor& weights) {
  const Node node{"m", "MatMul", {ValueId{0}, ValueId{1}}, {ValueId{2}}, {}, {}};
  const TensorType a{DType::F32, {rows, 64}};
  const TensorType c{DType::F32, {rows, weights.shape()[1]}};
  const OpCall call{node, {a, weights.type()}, {c}, {nullptr, &weights}};
  for (const Kernel& kernel : device.kernels().find("MatMul")) {
    if (kernel.supports(call)) return kernel.prepare(call, device);
  }
  ADD_FAILURE() << "no kernel takes MatMul";
  return {};
}

TEST(CpuWeights, are_packed_once_for_all_plans_and_gone_with_the_last) {
  const auto device = open_cpu(2);
  const Tensor weights = random_floats({64, 100}, 1);
  const Tensor others = random_floats({64, 100}, 2);
  {
    const Prepared first = prepared(*device, 8, weights);
    const size_t once = packed_bytes(*device);
    EXPECT_GE(once, weights.bytes().size());
    const Prepared second = prepared(*device, 32, weights);
    EXPECT_EQ(packed_bytes(*device), once);
    const Prepared third = prepared(*device, 8, others);
    EXPECT_EQ(packed_bytes(*device), 2 * once);
  }
  EXPECT_EQ(packed_bytes(*device), 0U);
}

TEST(CpuWeights, sessions_for_two_shapes_of_a_model_share_them) {
  Sketch sketch;
  Shape shape{1, 3, 8, 8};
  shape.set_symbol(0, "batch");
  const ValueId x = sketch.input("x", shape);
  const ValueId a = sketch.node("Conv", {x, sketch.weights({16, 3, 3, 3})}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const ValueId b = sketch.node("ConvTranspose", {a, sketch.weights({16, 4, 2, 2})}, {{"strides", std::vector<int64_t>{2, 2}}});
  const ValueId c = sketch.node("MatMul", {b, sketch.weights({16, 24})});
  const auto graph = std::make_shared<const Graph>(sketch.done({c}));
  const auto device = open_cpu(2);
  ModelRunner runner(graph, {device}, {});
  (void)runner.run({{"x", random_floats({1, 3, 8, 8}, 3)}});
  const size_t once = packed_bytes(*device);
  EXPECT_GE(once, (16U * 27 + 16 * 16 + 16 * 24) * sizeof(float));
  (void)runner.run({{"x", random_floats({5, 3, 8, 8}, 3)}});
  EXPECT_EQ(packed_bytes(*device), once);
}

TEST(CpuWeights, another_constant_in_the_same_memory_is_packed_anew) {
  const auto device = open_cpu(1);
  std::vector<float> memory(64 * 10);
  for (const float value : {1.0F, 2.0F}) {
    std::ranges::fill(memory, value);
    const Tensor weights = Tensor::view({DType::F32, {64, 10}}, std::as_bytes(std::span(memory)), nullptr);
    const Tensor ones = Tensor::from<float>({1, 64}, std::vector<float>(64, 1));
    const auto found = run_by_hand(*device, {.op = "MatMul", .inputs = {ones, weights}, .constant = {false, true}, .outputs = {{DType::F32, {1, 10}}}});
    EXPECT_EQ(found.at(0).span<float>()[9], 64 * value);
  }
}

TEST(CpuWeights, threads_that_prepare_at_once_get_the_same) {
  const auto device = open_cpu(2);
  const Tensor weights = random_floats({64, 1000}, 1);
  const Prepared first = prepared(*device, 8, weights);
  const size_t once = packed_bytes(*device);
  const Tensor others = random_floats({64, 1000}, 2);
  std::vector<Prepared> made(4);
  std::vector<std::thread> threads;
  for (Prepared& each : made) threads.emplace_back([&] { each = prepared(*device, 8, others); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(packed_bytes(*device), 2 * once);
}

}  // namespace
}  // namespace unmoor::test
