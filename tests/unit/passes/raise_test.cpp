#include <numbers>

#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

// x * 0.5 * (1 + erf(x / sqrt 2)), in the orders that exporters write.
Graph erf_gelu(int order) {
  Sketch s;
  const ValueId x = s.input("x", {3, 40});
  const ValueId argument = order % 2 == 0 ? s.node("Div", {x, s.scalar(std::numbers::sqrt2_v<float>)})
                                          : s.node("Mul", {x, s.constant(Tensor::from<float>({1}, {0.70710678F}))});
  const ValueId erf = s.node("Erf", {argument});
  const ValueId sum = order % 3 == 0 ? s.node("Add", {s.scalar(1), erf}) : s.node("Add", {erf, s.scalar(1)});
  if (order == 0) return s.done({s.node("Mul", {s.node("Mul", {x, sum}), s.scalar(0.5F)})});
  if (order == 1) return s.done({s.node("Mul", {s.node("Mul", {s.scalar(0.5F), x}), sum})});
  if (order == 2) return s.done({s.node("Mul", {x, s.node("Mul", {sum, s.scalar(0.5F)})})});
  return s.done({s.node("Div", {s.node("Mul", {sum, x}), s.scalar(2)})});
}

TEST(Raise, finds_erf_gelu_in_every_order) {
  for (int order = 0; order < 4; ++order) {
    const Graph result = optimized_and_checked(erf_gelu(order));
    EXPECT_EQ(operators(result), (Counts{{"Gelu", 1}})) << order << "\n" << to_text(result);
    EXPECT_EQ(result.nodes()[0].origin.also.size(), 4U);
  }
}

Graph tanh_gelu(int order) {
  Sketch s;
  const ValueId x = s.input("x", {3, 40});
  ValueId cube = no_value;
  if (order == 0) cube = s.node("Pow", {x, s.scalar(3)});
  if (order == 1) cube = s.node("Mul", {s.node("Mul", {x, x}), x});
  if (order == 2) cube = s.node("Mul", {x, s.node("Pow", {x, s.scalar(2)})});
  ValueId argument = no_value;
  const ValueId factor = s.scalar(0.7978845608F);
  if (order < 3) {
    argument = s.node("Mul", {factor, s.node("Add", {x, s.node("Mul", {s.scalar(0.044715F), cube})})});
  } else {
    const ValueId square = s.node("Mul", {s.node("Mul", {s.scalar(0.044715F), x}), x});
    argument = s.node("Mul", {s.node("Mul", {factor, x}), s.node("Add", {s.scalar(1), square})});
  }
  const ValueId sum = s.node("Add", {s.node("Tanh", {argument}), s.scalar(1)});
  return s.done({s.node("Mul", {s.node("Mul", {s.scalar(0.5F), x}), sum})});
}

TEST(Raise, finds_tanh_gelu_with_its_cube_written_as_power_or_products) {
  for (int order = 0; order < 4; ++order) {
    const Graph result = optimized_and_checked(tanh_gelu(order));
    ASSERT_EQ(operators(result), (Counts{{"Gelu", 1}})) << order << "\n" << to_text(result);
    EXPECT_EQ(std::get<std::string>(result.nodes()[0].attributes.at("approximate")), "tanh");
  }
}

TEST(Raise, leaves_what_only_looks_like_gelu) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4});
  const ValueId erf = s.node("Erf", {s.node("Div", {x, s.scalar(1.5F)})});  // Not sqrt 2.
  const ValueId y = s.node("Mul", {s.node("Mul", {x, s.node("Add", {erf, s.scalar(1)})}), s.scalar(0.5F)});
  EXPECT_EQ(operators(optimized_and_checked(s.done({y}))).count("Gelu"), 0U);
}

TEST(Raise, leaves_gelu_whose_inside_is_a_graph_output_visible) {
  Sketch s;
  const ValueId x = s.input("x", {3, 4});
  const ValueId erf = s.node("Erf", {s.node("Div", {x, s.scalar(std::numbers::sqrt2_v<float>)})});
  const ValueId y = s.node("Mul", {s.node("Mul", {x, s.node("Add", {erf, s.scalar(1)})}), s.scalar(0.5F)});
  const Graph result = optimized_and_checked(s.done({y, erf}));
  EXPECT_EQ(operators(result).count("Erf"), 1U);
  for (const Node& node : result.nodes()) {
    for (const std::string& name : node.origin.also) EXPECT_EQ(name.find("Erf"), std::string::npos) << "Erf runs as itself";
  }
}

TEST(Raise, finds_swish_with_and_without_alpha) {
  for (const float alpha : {1.0F, 1.702F}) {
    Sketch s;
    const ValueId x = s.input("x", {3, 40});
    const ValueId argument = alpha == 1 ? x : s.node("Mul", {x, s.scalar(alpha)});
    const Graph result = optimized_and_checked(s.done({s.node("Mul", {s.node("Sigmoid", {argument}), x})}));
    ASSERT_EQ(operators(result), (Counts{{"Swish", 1}}));
    EXPECT_EQ(result.nodes()[0].attributes.count("alpha"), alpha == 1 ? 0U : 1U);
  }
}

TEST(Raise, finds_hard_swish_in_the_orders_of_paddle_and_torch) {
  for (int order = 0; order < 3; ++order) {
    Sketch s;
    const ValueId x = s.input("x", {3, 40});
    ValueId y = no_value;
    if (order == 2) {
      y = s.node("Mul", {x, s.node("HardSigmoid", {x}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}})});
    } else {
      const ValueId clip = s.node("Clip", {s.node("Add", {x, s.scalar(3)}), s.scalar(0), s.scalar(6)});
      y = order == 0 ? s.node("Div", {s.node("Mul", {x, clip}), s.scalar(6)}) : s.node("Mul", {x, s.node("Div", {clip, s.scalar(6)})});
    }
    EXPECT_EQ(operators(optimized_and_checked(s.done({y}))), (Counts{{"HardSwish", 1}})) << order;
  }
}

TEST(Raise, finds_hard_sigmoid) {
  Sketch s;
  const ValueId x = s.input("x", {3, 40});
  const ValueId clip = s.node("Clip", {s.node("Add", {s.scalar(3), x}), s.scalar(0), s.scalar(6)});
  EXPECT_EQ(operators(optimized_and_checked(s.done({s.node("Div", {clip, s.scalar(6)})}))), (Counts{{"HardSigmoid", 1}}));
}

// order: 0 Pow and Div, 1 Mul and Reciprocal, 2 without scale and bias.
Graph layer_norm(int order) {
  Sketch s;
  const ValueId x = s.input("x", {2, 5, 16});
  const ValueId axes = s.ints({-1});
  const ValueId centred = s.node("Sub", {x, s.node("ReduceMean", {x, axes})});
  const ValueId square = order == 1 ? s.node("Mul", {centred, centred}) : s.node("Pow", {centred, s.scalar(2)});
  const ValueId variance = s.node("ReduceMean", {square, axes});
  const ValueId deviation = s.node("Sqrt", {s.node("Add", {variance, s.constant(Tensor::from<float>({1}, {1e-5F}))})});
  const ValueId y =
      order == 1 ? s.node("Mul", {centred, s.node("Reciprocal", {deviation})}) : s.node("Div", {centred, deviation});
  if (order == 2) return s.done({s.node("Relu", {y})});
  return s.done({s.node("Add", {s.node("Mul", {y, s.weights({16})}), s.weights({1, 1, 16})})});
}

TEST(Raise, finds_layer_normalization) {
  for (int order = 0; order < 3; ++order) {
    const Graph result = optimized_and_checked(layer_norm(order), 1e-4);
    EXPECT_EQ(operators(result).count("LayerNormalization"), 1U) << order << "\n" << to_text(result);
    EXPECT_EQ(result.nodes().size(), order == 2 ? 2U : 1U);
  }
}

TEST(Raise, layer_normalization_keeps_a_centred_value_that_is_used_elsewhere) {
  Sketch s;
  const ValueId x = s.input("x", {2, 16});
  const ValueId axes = s.ints({1});
  const ValueId centred = s.node("Sub", {x, s.node("ReduceMean", {x, axes})});
  const ValueId variance = s.node("ReduceMean", {s.node("Mul", {centred, centred}), axes});
  const ValueId deviation = s.node("Sqrt", {s.node("Add", {variance, s.scalar(1e-5F)})});
  const Graph graph = s.done({s.node("Div", {centred, deviation}), s.node("Relu", {centred})});
  EXPECT_EQ(operators(optimized_and_checked(graph)).count("LayerNormalization"), 0U);
}

}  // namespace
}  // namespace unmoor::test
