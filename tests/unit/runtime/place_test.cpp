#include <algorithm>
#include <set>

#include "tests/unit/passes/sketch.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/reference/reference.h"
#include "unmoor/runtime/plan.h"

namespace unmoor {
namespace {

using test::Sketch;

std::vector<std::string> kernels(const Graph& graph, const std::shared_ptr<Device>& device, bool fuse = true) {
  const auto plan = make_plan(graph, {device}, {.passes = {.fuse = fuse}});
  std::vector<std::string> names;
  for (const Placement& placement : plan->placements) names.push_back(placement.kernel);
  return names;
}

Graph attention() {
  Sketch s;
  const ValueId q = s.input("q", {1, 2, 5, 8});
  return s.done({s.node("Attention", {q, s.input("k", {1, 2, 7, 8}), s.input("v", {1, 2, 7, 8})})});
}

TEST(Place, what_only_the_plain_path_has_is_taken_apart_where_the_parts_have_kernels) {
  EXPECT_EQ(kernels(attention(), make_cpu_backend()->open(0)), std::vector<std::string>{"cpu.attention.fused"});
}

TEST(Place, it_stays_whole_where_the_files_values_are_to_stay_visible) {
  EXPECT_EQ(kernels(attention(), make_cpu_backend()->open(0), false), std::vector<std::string>{"cpu.generic"});
}

TEST(Place, the_reference_takes_nothing_apart) { EXPECT_EQ(kernels(attention(), make_reference_backend()->open(0)).size(), 1U); }

// Parts with kernels only for some of them would cost more than they save: the logarithm of a float64 has none.
TEST(Place, it_stays_whole_where_a_part_has_no_kernel) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}, DType::F64);
  EXPECT_EQ(kernels(s.done({s.node("LogSoftmax", {x})}), make_cpu_backend()->open(0)), std::vector<std::string>{"cpu.generic"});
}

Graph sigmoid_of(DType dtype) {
  Sketch s;
  return s.done({s.node("Sigmoid", {s.input("x", {3, 4}, dtype)})});
}

TEST(Place, sixteen_bit_operators_run_in_float32_between_casts) {
  const std::vector<std::string> wanted{"cpu.cast.loop", "cpu.sigmoid.vector", "cpu.cast.loop"};
  EXPECT_EQ(kernels(sigmoid_of(DType::F16), make_cpu_backend()->open(0)), wanted);
  EXPECT_EQ(kernels(sigmoid_of(DType::BF16), make_cpu_backend()->open(0)), wanted);
}

// The float32 constants of a plan, by where they lie.
std::set<const std::byte*> wide_constants(const Plan& plan) {
  std::set<const std::byte*> places;
  for (const Node& node : plan.graph.nodes()) {
    for (const ValueId id : node.inputs) {
      const Tensor* const constant = id == no_value ? nullptr : plan.graph.constant_tensor(id);
      if (constant != nullptr && constant->dtype() == DType::F32) places.insert(constant->bytes().data());
    }
  }
  return places;
}

TEST(Place, sixteen_bit_weights_are_converted_once_for_all_nodes_and_plans) {
  const Tensor weights(TensorType{DType::F16, Shape{4, 4}});
  const std::shared_ptr<Device> cpu = make_cpu_backend()->open(0);
  const auto plan = [&](int64_t rows) {
    Sketch s;
    const ValueId w = s.constant(weights);
    const ValueId x = s.input("x", {rows, 4}, DType::F16);
    return make_plan(s.done({s.node("MatMul", {s.node("MatMul", {x, w}), w})}), {cpu}, {});
  };
  const auto first = plan(3);
  const auto second = plan(5);
  EXPECT_EQ(wide_constants(*first).size(), 1U);
  EXPECT_EQ(wide_constants(*first), wide_constants(*second));
  for (const Placement& placement : first->placements) EXPECT_EQ(placement.state, State::Native);
}

// A step of a quantisation rounds the 16-bit value it is given.
TEST(Place, quantisation_keeps_its_dtype) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4}, DType::F16);
  const ValueId scale = s.input("scale", {}, DType::F16);
  EXPECT_EQ(kernels(s.done({s.node("QuantizeLinear", {x, scale})}), make_cpu_backend()->open(0)).size(), 1U);
}

}  // namespace
}  // namespace unmoor
