#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

const Node& only_node(const Graph& graph) {
  EXPECT_EQ(graph.nodes().size(), 1U) << to_text(graph);
  return graph.nodes().at(0);
}

std::string activation(const Node& node) { return std::get<std::string>(node.attributes.at("activation")); }

TEST(FuseScale, folds_batch_normalization_into_conv_with_and_without_groups_and_bias) {
  for (const int64_t group : {1, 2}) {
    for (const bool bias : {false, true}) {
      Sketch s;
      const ValueId x = s.input("x", {1, 4, 6, 6});
      std::vector<ValueId> inputs{x, s.weights({6, 4 / group, 3, 3})};
      if (bias) inputs.push_back(s.weights({6}));
      const ValueId conv = s.node("Conv", inputs, {{"group", group}});
      const ValueId y = s.node("BatchNormalization", {conv, s.weights({6}), s.weights({6}), s.weights({6}), s.weights({6}, 0.5F, 2)});
      const Graph result = optimized_and_checked(s.done({y}));
      EXPECT_EQ(only_node(result).op, "Conv");
      EXPECT_EQ(only_node(result).origin.op, "BatchNormalization");
      EXPECT_EQ(only_node(result).origin.also, std::vector<std::string>{"Conv_0"});
    }
  }
}

TEST(FuseScale, folds_into_transposed_conv_with_groups) {
  Sketch s;
  const ValueId x = s.input("x", {1, 4, 5, 5});
  const ValueId conv = s.node("ConvTranspose", {x, s.weights({4, 3, 2, 2})}, {{"group", int64_t{2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const ValueId y = s.node("BatchNormalization", {conv, s.weights({6}), s.weights({6}), s.weights({6}), s.weights({6}, 0.5F, 2)});
  EXPECT_EQ(only_node(optimized_and_checked(s.done({y}))).op, "ConvTranspose");
}

TEST(FuseScale, folds_constants_per_channel_in_a_row) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 8});
  ValueId y = s.node("Conv", {x, s.weights({5, 3, 3})});
  y = s.node("Mul", {s.weights({1, 5, 1}), y});
  y = s.node("Add", {y, s.weights({5, 1})});
  y = s.node("Sub", {y, s.scalar(0.25F)});
  y = s.node("Div", {y, s.weights({5, 1}, 1, 2)});
  EXPECT_EQ(only_node(optimized_and_checked(s.done({y}))).op, "Conv");
}

Tensor in_half(const Tensor& wide) {
  Tensor result(TensorType{DType::F16, wide.shape()});
  store(result, std::span<const double>(doubles(wide)));
  return result;
}

// In 16 bits a weight that is rounded anew is off by as much as a result that is.
TEST(FuseScale, of_16_bits_weights_are_scaled_only_if_they_stay_exact) {
  for (const float scale : {0.5F, 0.3F}) {
    Sketch s;
    const ValueId x = s.input("x", {1, 3, 7}, DType::F16);
    const ValueId conv = s.node("Conv", {x, s.constant(in_half(random_tensor({DType::F32, {5, 3, 3}}, 3)))});
    const ValueId y = s.node("Mul", {conv, s.constant(in_half(Tensor::scalar<float>(scale)))});
    const size_t nodes = optimized(with_shapes(s.done({y}), {}), {}).nodes().size();
    EXPECT_EQ(nodes, scale == 0.5F ? 1U : 2U);
  }
}

TEST(FuseScale, leaves_constants_along_other_axes) {
  Sketch s;
  const ValueId x = s.input("x", {1, 3, 7});
  const ValueId y = s.node("Mul", {s.node("Conv", {x, s.weights({5, 3, 3})}), s.weights({5})});  // 5 positions, not 5 channels.
  EXPECT_EQ(operators(optimized_and_checked(s.done({y}))), (Counts{{"Conv", 1}, {"Mul", 1}}));
}

TEST(FuseScale, folds_what_comes_before_a_conv_without_padding) {
  for (const int64_t group : {1, 2}) {
    Sketch s;
    ValueId x = s.node("Relu", {s.input("x", {1, 4, 6, 6})});
    x = s.node("Add", {s.node("Mul", {x, s.weights({4, 1, 1})}), s.scalar(0.75F)});
    const ValueId y = s.node("Conv", {x, s.weights({6, 4 / group, 3, 3}), s.weights({6})}, {{"group", group}});
    EXPECT_EQ(operators(optimized_and_checked(s.done({y}))), (Counts{{"Conv", 1}, {"Relu", 1}}));
  }
}

TEST(FuseScale, a_shift_before_padding_stays) {
  Sketch s;
  const ValueId x = s.node("Add", {s.node("Relu", {s.input("x", {1, 4, 6, 6})}), s.scalar(0.75F)});
  const ValueId y = s.node("Conv", {x, s.weights({6, 4, 3, 3})}, {{"pads", std::vector<int64_t>{0, 1, 0, 0}}});
  EXPECT_EQ(operators(optimized_and_checked(s.done({y}))), (Counts{{"Add", 1}, {"Conv", 1}, {"Relu", 1}}));
}

TEST(FuseScale, folds_a_scale_before_a_transposed_conv) {
  Sketch s;
  const ValueId x = s.node("Mul", {s.node("Relu", {s.input("x", {1, 4, 5, 5})}), s.weights({1, 4, 1, 1})});
  const ValueId y = s.node("ConvTranspose", {x, s.weights({4, 3, 2, 2})}, {{"group", int64_t{2}}});
  EXPECT_EQ(operators(optimized_and_checked(s.done({y}))), (Counts{{"ConvTranspose", 1}, {"Relu", 1}}));
}

TEST(FuseConv, takes_residual_and_activation) {
  Sketch s;
  const ValueId x = s.input("x", {1, 4, 6, 6});
  const ValueId conv = s.node("Conv", {x, s.weights({4, 4, 3, 3}), s.weights({4})}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const Graph result = optimized_and_checked(s.done({s.node("Relu", {s.node("Add", {x, conv})})}));
  EXPECT_EQ(only_node(result).op, "unmoor:FusedConv");
  EXPECT_EQ(activation(only_node(result)), "Relu");
  EXPECT_EQ(only_node(result).inputs.size(), 4U);
  EXPECT_EQ(only_node(result).origin.name, "Relu_2");
  EXPECT_EQ(only_node(result).origin.also, (std::vector<std::string>{"Conv_0", "Add_1"}));
}

TEST(FuseConv, takes_every_activation) {
  const std::vector<std::pair<std::string, Attributes>> activations{
      {"Relu", {}},      {"Sigmoid", {}},  {"Tanh", {}},
      {"HardSwish", {}}, {"HardSigmoid", {{"alpha", 0.3F}}}, {"Swish", {{"alpha", 1.5F}}},
      {"Gelu", {}},      {"Gelu", {{"approximate", std::string("tanh")}}}, {"LeakyRelu", {{"alpha", 0.1F}}},
  };
  for (const auto& [op, attributes] : activations) {
    Sketch s;
    const ValueId x = s.input("x", {1, 3, 6, 6});
    const Graph graph = s.done({s.node(op, {s.node("Conv", {x, s.weights({2, 3, 3, 3})})}, attributes)});
    EXPECT_EQ(only_node(optimized_and_checked(graph)).op, "unmoor:FusedConv") << op;
  }
}

TEST(FuseConv, takes_clip_with_one_bound) {
  Sketch s;
  const ValueId x = s.input("x", {1, 3, 6, 6});
  const ValueId conv = s.node("Conv", {x, s.weights({2, 3, 3, 3})});
  const Graph result = optimized_and_checked(s.done({s.node("Clip", {conv, no_value, s.scalar(0.5F)})}));
  EXPECT_EQ(activation(only_node(result)), "Clip");
}

TEST(FuseConv, leaves_a_result_that_is_used_twice_or_is_a_graph_output) {
  Sketch s;
  const ValueId x = s.input("x", {1, 3, 6, 6});
  const ValueId conv = s.node("Conv", {x, s.weights({2, 3, 3, 3})});
  const Graph graph = s.done({s.node("Relu", {conv}), conv});
  EXPECT_EQ(operators(optimized_and_checked(graph)), (Counts{{"Conv", 1}, {"Relu", 1}}));
}

TEST(FuseConv, of_two_convs_that_are_added_the_later_takes_the_other) {
  Sketch s;
  const ValueId x = s.input("x", {1, 3, 6, 6});
  const ValueId a = s.node("Conv", {x, s.weights({2, 3, 3, 3})});
  const ValueId b = s.node("Conv", {x, s.weights({2, 3, 3, 3})});
  const Graph result = optimized_and_checked(s.done({s.node("Relu", {s.node("Add", {a, b})})}));
  EXPECT_EQ(operators(result), (Counts{{"Conv", 1}, {"unmoor:FusedConv", 1}}));
}

TEST(FuseMatMul, takes_bias_residual_and_activation) {
  Sketch s;
  const ValueId x = s.input("x", {2, 5, 8});
  const ValueId residual = s.input("r", {2, 5, 6});
  ValueId y = s.node("MatMul", {x, s.weights({8, 6})});
  y = s.node("Add", {s.weights({6}), y});
  y = s.node("Add", {y, residual});
  const Graph result = optimized_and_checked(s.done({s.node("Gelu", {y})}));
  EXPECT_EQ(only_node(result).op, "unmoor:FusedMatMul");
  EXPECT_EQ(activation(only_node(result)), "Gelu");
  EXPECT_EQ(only_node(result).inputs.size(), 4U);
}

TEST(FuseMatMul, takes_scale_and_swapped_operands) {
  Sketch s;
  const ValueId q = s.input("q", {2, 3, 5, 8});
  const ValueId k = s.input("k", {2, 3, 5, 8});
  const ValueId swapped = s.node("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const Graph result = optimized_and_checked(s.done({s.node("Div", {s.node("MatMul", {q, swapped}), s.scalar(2.5F)})}));
  EXPECT_EQ(only_node(result).op, "unmoor:FusedMatMul");
  EXPECT_EQ(std::get<int64_t>(only_node(result).attributes.at("transB")), 1);
  EXPECT_FLOAT_EQ(std::get<float>(only_node(result).attributes.at("alpha")), 0.4F);
}

TEST(FuseMatMul, takes_scales_of_both_operands) {
  Sketch s;
  const ValueId q = s.node("Mul", {s.input("q", {2, 5, 8}), s.scalar(0.5F)});
  const ValueId k = s.node("Div", {s.input("k", {2, 8, 5}), s.scalar(4)});
  const Graph result = optimized_and_checked(s.done({s.node("MatMul", {q, k})}));
  EXPECT_FLOAT_EQ(std::get<float>(only_node(result).attributes.at("alpha")), 0.125F);
}

TEST(FuseMatMul, a_large_turned_weight_is_not_copied) {
  Sketch s;
  const ValueId weights = s.weights({1024, 512});
  const Tensor before = *s.graph.constant_tensor(weights);
  const ValueId y = s.node("MatMul", {s.input("x", {1, 512}), s.node("Transpose", {weights}, {{"perm", std::vector<int64_t>{1, 0}}})});
  const Graph result = optimized_and_checked(s.done({y}));
  EXPECT_TRUE(result.constant_tensor(only_node(result).inputs[1])->shares_storage(before));
}

TEST(FuseMatMul, takes_gemm_with_beta_and_activation) {
  Sketch s;
  const ValueId x = s.input("x", {5, 8});
  const ValueId gemm = s.node("Gemm", {x, s.weights({6, 8}), s.weights({6})}, {{"transB", int64_t{1}}, {"beta", 0.5F}, {"alpha", 2.0F}});
  const Graph result = optimized_and_checked(s.done({s.node("Relu", {gemm})}));
  EXPECT_EQ(only_node(result).op, "unmoor:FusedMatMul");
  EXPECT_EQ(std::get<int64_t>(only_node(result).attributes.at("transB")), 1);
}

TEST(FuseMatMul, a_mask_that_widens_the_result_is_no_bias) {
  Sketch s;
  const ValueId x = s.input("x", {1, 5, 8});
  const ValueId y = s.node("Add", {s.node("MatMul", {x, s.weights({8, 6})}), s.weights({3, 1, 6})});
  EXPECT_EQ(operators(optimized_and_checked(s.done({y}))).count("Add"), 1U);
}

TEST(FuseMatMul, scale_behind_a_bias_stays) {
  Sketch s;
  const ValueId x = s.input("x", {5, 8});
  const ValueId y = s.node("Mul", {s.node("Add", {s.node("MatMul", {x, s.weights({8, 6})}), s.weights({6})}), s.scalar(3)});
  EXPECT_EQ(operators(optimized_and_checked(s.done({y}))), (Counts{{"Mul", 1}, {"unmoor:FusedMatMul", 1}}));
}

TEST(Preoptimized, folds_weights_once_and_leaves_sizes_open) {
  Sketch s;
  const ValueId x = s.input("x", {10, 4, 32, 32});  // As declared; no more than a hint.
  ValueId y = s.node("Conv", {x, s.weights({4, 4, 3, 3})}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  y = s.node("BatchNormalization", {y, s.weights({4}), s.weights({4}), s.weights({4}), s.weights({4}, 0.5F, 2)});
  y = s.node("Relu", {s.node("Add", {y, x})});
  const Graph graph = s.done({y});
  const Graph early = preoptimized(graph, {});
  EXPECT_EQ(operators(early), (Counts{{"Add", 1}, {"Conv", 1}, {"Relu", 1}}));
  EXPECT_EQ(to_text(early.value(early.inputs()[0]).type), "float32[10,4,32,32]");
  const Graph result = optimized(with_shapes(early, {{"x", Shape{1, 4, 7, 7}}}), {});
  EXPECT_EQ(only_node(result).op, "unmoor:FusedConv");
  expect_same(graph, result, {random_tensor({DType::F32, {1, 4, 7, 7}}, 3)});
}

TEST(Fuse, softmax_weights_are_not_rounded_to_16_bits_before_their_product) {
  for (const bool seen : {false, true}) {
    Sketch s;
    const ValueId scores = s.input("scores", {2, 4, 8});
    const ValueId v = s.input("v", {2, 8, 3}, DType::F16);
    const ValueId weights = s.node("Cast", {s.node("Softmax", {scores}, {{"axis", int64_t{-1}}})}, {{"to", int64_t{10}}});
    const ValueId y = s.node("MatMul", {weights, v});
    const Graph result = optimized(with_shapes(seen ? s.done({y, weights}) : s.done({y}), {}), {});
    const auto* product = std::get_if<TensorType>(&result.value(result.outputs()[0]).type);
    ASSERT_NE(product, nullptr);
    EXPECT_EQ(product->dtype, DType::F16);
    EXPECT_EQ(operators(result), (Counts{{"Softmax", 1}, {"Cast", seen ? 1 : 2}, {"MatMul", 1}})) << to_text(result);
  }
}

TEST(Fuse, softmax_in_16_bits_before_a_product_is_done_in_float32) {
  Sketch s;
  const ValueId y = s.node("MatMul", {s.node("Softmax", {s.input("scores", {2, 4, 8}, DType::BF16)}), s.input("v", {2, 8, 3}, DType::BF16)});
  const Graph result = optimized(with_shapes(s.done({y}), {}), {});
  EXPECT_EQ(operators(result), (Counts{{"Softmax", 1}, {"Cast", 3}, {"MatMul", 1}})) << to_text(result);
  EXPECT_EQ(std::get<TensorType>(result.value(result.outputs()[0]).type), (TensorType{DType::BF16, {2, 4, 3}}));
}

}  // namespace
}  // namespace unmoor::test
