#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

Graph exchanged(const Graph& graph) {
  const Graph inferred = with_shapes(graph, {});
  Graph result = optimized(inferred, {});
  expect_same(graph, result, random_inputs(inferred), 1e-5);
  return result;
}

ValueId enlarged(Sketch& s, ValueId x, const std::vector<int64_t>& sizes, const std::string& mode = "linear") {
  return s.node("Resize", {x, no_value, no_value, s.ints(sizes)}, {{"mode", mode}});
}

ValueId joined(Sketch& s, std::vector<ValueId> parts) { return s.node("Concat", std::move(parts), {{"axis", int64_t{1}}}); }

// Elements that convolutions read.
int64_t read(const Graph& graph) {
  int64_t elements = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == "Conv" || node.op == "unmoor:FusedConv")
      elements += std::get<TensorType>(graph.value(node.inputs[0]).type).shape.elements();
  }
  return elements;
}

TEST(ConvolveBeforeResize, of_images_of_several_sizes) {
  Sketch s;
  const ValueId a = s.input("a", {2, 8, 12, 10});
  const ValueId b = s.input("b", {2, 6, 6, 5});
  const ValueId c = s.input("c", {2, 7, 3, 4});
  const ValueId y = joined(s, {enlarged(s, c, {2, 7, 12, 10}, "cubic"), enlarged(s, b, {2, 6, 12, 10}), a});
  const ValueId z = s.node("Relu", {s.node("Conv", {y, s.weights({5, 21, 1, 1}), s.weights({5})})});
  const Graph result = exchanged(s.done({z}));
  EXPECT_EQ(operators(result)["Concat"], 0U) << to_text(result);
  EXPECT_EQ(operators(result)["Resize"], 2U);
  EXPECT_EQ(read(result), 2 * (8 * 120 + 6 * 30 + 7 * 12));
}

TEST(ConvolveBeforeResize, leaves_the_largest_where_all_are_resized) {
  Sketch s;
  const ValueId a = s.input("a", {1, 8, 6, 6});
  const ValueId b = s.input("b", {1, 8, 3, 3});
  const ValueId scales = s.constant(Tensor::from<float>(Shape{4}, {1, 1, 4, 4}));
  const ValueId large = s.node("Resize", {b, no_value, scales}, {{"mode", std::string("nearest")}});
  const ValueId y = joined(s, {enlarged(s, a, {1, 8, 12, 12}), large});
  const ValueId conv = s.node("Conv", {y, s.weights({4, 16, 1, 1})});
  const Graph result = exchanged(s.done({s.node("Add", {conv, s.input("r", {1, 4, 12, 12})})}));
  EXPECT_EQ(operators(result)["Concat"], 0U) << to_text(result);
  EXPECT_EQ(read(result), 8 * 144 + 8 * 9);
}

TEST(ConvolveBeforeResize, not_where_it_would_cost_more_or_mean_something_else) {
  const auto untouched = [](const std::vector<int64_t>& weights, Attributes conv, Attributes resize,
                            const std::vector<int64_t>& sizes) {
    Sketch s;
    const ValueId a = s.input("a", {1, 4, 8, 8});
    const ValueId b = s.input("b", {1, 4, 4, 4});
    resize["mode"] = std::string("linear");
    const ValueId roi = s.constant(Tensor::from<float>(Shape{8}, {0, 0, -0.5F, 0, 1, 1, 1, 2}));
    const ValueId y = joined(s, {a, s.node("Resize", {b, roi, no_value, s.ints(sizes)}, resize)});
    const int64_t channels = 4 + sizes[1];
    const ValueId z = s.node(
        "Conv", {y, s.weights(Shape({weights[0], channels / (conv.contains("group") ? 2 : 1), weights[1], weights[1]}))}, conv);
    const Graph result = exchanged(s.done({z}));
    return operators(result)["Concat"] == 1;
  };
  EXPECT_FALSE(untouched({4, 1}, {}, {}, {1, 4, 8, 8}));
  EXPECT_TRUE(untouched({5, 1}, {}, {}, {1, 4, 8, 8}));  // More channels than before.
  EXPECT_TRUE(untouched({4, 3}, {}, {}, {1, 4, 8, 8}));
  EXPECT_TRUE(untouched({4, 1}, {{"group", int64_t{2}}}, {}, {1, 4, 8, 8}));
  EXPECT_TRUE(untouched({4, 1}, {{"strides", std::vector<int64_t>{2, 2}}}, {}, {1, 4, 8, 8}));
  EXPECT_TRUE(untouched({4, 1}, {},
                        {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}, {"extrapolation_value", 3.0F}},
                        {1, 4, 8, 8}));
  EXPECT_TRUE(untouched({4, 1}, {}, {}, {1, 6, 8, 8}));  // It resizes channels.
}

}  // namespace
}  // namespace unmoor::test
