#include "unmoor/passes/keep_float32.h"

#include <algorithm>

#include "tests/unit/passes/sketch.h"

namespace unmoor {
namespace {

using test::Counts;
using test::operators;
using test::Sketch;

constexpr DType half = DType::F16;

Tensor half_of(const Tensor& wide) {
  Tensor result(TensorType{half, wide.shape()});
  store(result, std::span<const double>(doubles(wide)));
  return result;
}

Data in_double(const Tensor& narrow) {
  Tensor result(TensorType{DType::F64, narrow.shape()});
  store(result, std::span<const double>(doubles(narrow)));
  return result;
}

// Two products with a Softmax between, in float16.
Graph two_products(Sketch& s) {
  const ValueId x = s.input("x", {4, 16}, half);
  const ValueId first = s.node("MatMul", {x, s.constant(half_of(test::random_tensor({DType::F32, {16, 16}}, 3)))});
  const ValueId soft = s.node("Softmax", {first});
  return with_shapes(s.done({s.node("MatMul", {soft, s.constant(half_of(test::random_tensor({DType::F32, {16, 16}}, 4)))})}), {});
}

DType dtype_of(const Graph& graph, const std::string& value) {
  const auto found = std::ranges::find(graph.values(), value, [](const Value& each) { return each.origin.name; });
  return found == graph.values().end() ? DType::String : std::get<TensorType>(found->type).dtype;
}

double error_of(const Graph& graph, const std::vector<Data>& inputs, const std::vector<double>& wanted) {
  const auto found = doubles(test::evaluate(graph, inputs).at(0).tensor());
  double sum = 0;
  for (size_t i = 0; i < found.size(); ++i) sum += (found[i] - wanted[i]) * (found[i] - wanted[i]);
  return std::sqrt(sum);
}

TEST(KeepFloat32, a_kept_node_gives_a_float32_value_under_its_name) {
  Sketch s;
  const KeptFloat32 kept = keep_float32(two_products(s), {"MatMul_0"});
  EXPECT_EQ(dtype_of(kept.graph, "MatMul_0:0"), DType::F32);
  EXPECT_EQ(dtype_of(kept.graph, "Softmax_1:0"), half);
  EXPECT_EQ(std::get<TensorType>(kept.graph.value(kept.graph.outputs()[0]).type).dtype, half);
  EXPECT_EQ(kept.nodes, NodeNames{"MatMul_0"});
  EXPECT_TRUE(kept.left.empty());
}

TEST(KeepFloat32, what_reads_it_reads_it_unrounded) {
  Sketch s;
  const Graph graph = two_products(s);
  const auto inputs = test::random_inputs(graph);
  const auto wanted = doubles(test::evaluate(widened(graph), {in_double(inputs[0].tensor())}).at(0).tensor());
  const double plain = error_of(graph, inputs, wanted);
  const double first = error_of(keep_float32(graph, {"MatMul_0"}).graph, inputs, wanted);
  const double both = error_of(keep_float32(graph, {"MatMul_0", "Softmax_1"}).graph, inputs, wanted);
  EXPECT_LT(first, 0.9 * plain);
  EXPECT_LT(both, 0.9 * first);
}

TEST(KeepFloat32, nothing_changes_without_a_name) {
  Sketch s;
  const Graph graph = two_products(s);
  EXPECT_EQ(operators(keep_float32(graph, {"Add_9"}).graph), operators(graph));
}

TEST(KeepFloat32, a_kept_output_is_rounded_at_the_end_only) {
  Sketch s;
  const KeptFloat32 kept = keep_float32(two_products(s), {"MatMul_2"});
  EXPECT_EQ(dtype_of(kept.graph, "MatMul_2:0"), DType::F32);
  EXPECT_EQ(std::get<TensorType>(kept.graph.value(kept.graph.outputs()[0]).type).dtype, half);
}

TEST(KeepFloat32, a_conversion_of_a_kept_value_reads_it_and_a_kept_one_to_16_bits_gives_float32) {
  Sketch s;
  const ValueId x = s.input("x", {8}, half);
  const ValueId wide = s.node("Cast", {s.node("Exp", {x})}, {{"to", int64_t{1}}});
  const ValueId narrow = s.node("Cast", {wide}, {{"to", int64_t{10}}});
  const Graph graph = with_shapes(s.done({wide, narrow}), {});
  const KeptFloat32 kept = keep_float32(graph, {"Exp_0", "Cast_2"});
  const auto results = test::evaluate(kept.graph, test::random_inputs(graph));
  const auto rounded = test::evaluate(graph, test::random_inputs(graph));
  EXPECT_EQ(dtype_of(kept.graph, "Cast_2:0"), DType::F32);
  EXPECT_NE(doubles(results[0].tensor()), doubles(rounded[0].tensor()));
  EXPECT_EQ(doubles(results[1].tensor()), doubles(rounded[1].tensor()));
}

TEST(KeepFloat32, what_cannot_be_kept_is_told_with_the_reason) {
  Sketch s;
  const ValueId x = s.input("x", {4, 8}, half);
  const ValueId scale = s.constant(half_of(Tensor::scalar<float>(0.1F)));
  const ValueId steps = s.node("QuantizeLinear", {x, scale});
  const Graph graph = with_shapes(s.done({s.node("DequantizeLinear", {steps, scale})}), {});
  const KeptFloat32 kept = keep_float32(graph, {"QuantizeLinear_0"});
  ASSERT_EQ(kept.left.size(), 1U);
  EXPECT_EQ(kept.left[0].node, "QuantizeLinear_0");
  EXPECT_EQ(kept.left[0].reason, "its results are not of 16 bits");
}

// A quantisation rounds the 16-bit value that it was made for.
TEST(KeepFloat32, a_quantisation_behind_it_gets_the_rounded_value) {
  Sketch s;
  const ValueId x = s.input("x", {4, 8}, half);
  const ValueId root = s.node("Exp", {x});
  const ValueId scale = s.constant(half_of(Tensor::scalar<float>(0.1F)));
  const Graph graph = with_shapes(s.done({s.node("QuantizeLinear", {root, scale})}), {});
  const auto inputs = test::random_inputs(graph);
  const KeptFloat32 kept = keep_float32(graph, {"Exp_0"});
  EXPECT_EQ(integers(test::evaluate(kept.graph, inputs)[0].tensor()), integers(test::evaluate(graph, inputs)[0].tensor()));
}

TEST(KeepFloat32, indices_come_from_the_unrounded_value) {
  Sketch s;
  const ValueId x = s.input("x", {4, 32}, half);
  const ValueId soft = s.node("Softmax", {x});
  const ValueId count = s.ints({3});
  const ValueId top = s.node("TopK", {soft, count}, {}, 2);
  const Graph graph = with_shapes(s.done({top, ValueId{static_cast<uint32_t>(Graph::index(top) + 1)}}), {});
  const KeptFloat32 kept = keep_float32(graph, {"Softmax_0"});
  const auto results = test::evaluate(kept.graph, test::random_inputs(graph));
  EXPECT_EQ(results[0].tensor().dtype(), half);
  EXPECT_EQ(results[1].tensor().dtype(), DType::I64);
}

}  // namespace
}  // namespace unmoor
