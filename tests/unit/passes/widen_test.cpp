#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

TEST(Widened, everything_floating_becomes_float64) {
  Sketch s;
  const ValueId x = s.input("x", {3});
  const ValueId i = s.input("i", {3}, DType::I64);
  const ValueId cast = s.node("Cast", {i}, {{"to", int64_t{10}}});
  const ValueId zeros = s.node("ConstantOfShape", {s.ints({3})});
  const ValueId weights = s.weights({3});
  const ValueId y = s.node("Add", {s.node("Mul", {x, cast}), s.node("Add", {zeros, weights})});
  const Graph graph = s.done({y});
  const Graph wide = with_shapes(widened(graph), {});
  for (const Value& value : wide.values()) {
    if (value.name == "i") continue;
    EXPECT_EQ(std::get<TensorType>(value.type).dtype, DType::F64) << value.name;
  }
  EXPECT_EQ(std::get<TensorType>(wide.value(wide.inputs()[1]).type).dtype, DType::I64);
  const Tensor ints = random_tensor({DType::I64, {3}}, 2);
  const Tensor narrow = random_tensor({DType::F32, {3}}, 1);
  Tensor broad(TensorType{DType::F64, {3}});
  store(broad, doubles(narrow));
  const auto out = evaluate(wide, {broad, ints});
  EXPECT_EQ(out[0].tensor().dtype(), DType::F64);
  for (size_t k = 0; k < 3; ++k) {
    const double weight = doubles(*graph.constant_tensor(weights))[k];
    EXPECT_DOUBLE_EQ(doubles(out[0].tensor())[k], doubles(narrow)[k] * doubles(ints)[k] + weight);
  }
}

TEST(Widened, bodies_too) {
  Sketch inner;
  const ValueId x = inner.input("x", {2});
  const auto body = std::make_shared<const Graph>(inner.done({inner.node("Mul", {x, inner.scalar(0.1F)})}));
  Sketch s;
  const ValueId outer = s.input("x", {2});
  const ValueId which = s.input("which", {}, DType::Bool);
  const ValueId y = s.node("If", {which, outer}, {{"then_branch", SubGraph(body)}, {"else_branch", SubGraph(body)}, {"captures", int64_t{1}}});
  const Graph wide = with_shapes(widened(s.done({y})), {});
  EXPECT_EQ(to_text(wide.value(wide.outputs()[0]).type), "float64[2]");
}

TEST(Expanded, a_node_is_replaced_by_simpler_ones) {
  Sketch s;
  const ValueId x = s.input("x", {2, 8});
  const ValueId y = s.node("Relu", {s.node("Gelu", {x})});
  const Graph graph = with_shapes(s.done({y}), {});
  ASSERT_TRUE(has_expansion(graph.nodes()[0]));
  const Graph result = with_expanded(graph, {NodeId{0}});
  EXPECT_EQ(operators(result).count("Gelu"), 0U);
  EXPECT_GT(result.nodes().size(), 2U);
  EXPECT_EQ(result.nodes()[0].origin.name, "Gelu_0");
  EXPECT_TRUE(result.find_value("Gelu_0:0"));
  expect_same(graph, result, random_inputs(graph));
}

TEST(GraphText, shows_inputs_constants_nodes_and_outputs) {
  Sketch s;
  const ValueId x = s.input("x", {2});
  const Graph graph = with_shapes(s.done({s.node("LeakyRelu", {s.node("Clip", {x, no_value, s.scalar(2)})}, {{"alpha", 0.5F}})}), {});
  EXPECT_EQ(to_text(graph),
            "input x : float32[2]\n"
            "constant c1 : float32[] {2}\n"
            "Clip_0:0 = Clip(x, -, c1) : float32[2]\n"
            "LeakyRelu_1:0 = LeakyRelu(Clip_0:0) alpha=0.5 : float32[2]\n"
            "output LeakyRelu_1:0 = LeakyRelu_1:0\n");
}

}  // namespace
}  // namespace unmoor::test
