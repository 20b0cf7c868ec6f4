#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

Graph fused(
    const Graph& graph, const TakesCall& takes = [](const OpCall&) { return true; }) {
  const Graph inferred = with_shapes(graph, {});
  Graph result = optimized(inferred, {.takes = takes, .channels_last = true});
  expect_same(graph, result, random_inputs(inferred), 1e-5);
  return result;
}

const Node* inverted_in(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op == "unmoor:InvertedResidual") return &node;
  }
  return nullptr;
}

std::string text(const Node& node, const std::string& key) {
  const auto found = node.attributes.find(key);
  return found == node.attributes.end() ? "" : std::get<std::string>(found->second);
}

// The inverted residual of MobileNetV2 on [1,8,9,9], written operator by operator, with what tests change about it.
struct Block {
  int64_t stride = 1;
  int64_t expand_kernel = 1;
  int64_t depthwise_outputs = 1;  // Of each channel.
  bool residual = true;
  bool watch_depthwise = false;
  bool reuse_expanded = false;
};

Graph block(const Block& b) {
  Sketch s;
  const ValueId x = s.input("x", {1, 8, 9, 9});
  const auto relu6 = [&](ValueId value) { return s.node("Clip", {value, s.scalar(0), s.scalar(6)}); };
  const int64_t pad = b.expand_kernel / 2;
  const ValueId wide = relu6(s.node("Conv", {x, s.weights({24, 8, b.expand_kernel, b.expand_kernel}), s.weights({24})},
                                    {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}}));
  const int64_t outputs = 24 * b.depthwise_outputs;
  const ValueId depthwise = relu6(s.node("Conv", {wide, s.weights({outputs, 1, 3, 3}), s.weights({outputs})},
                                         {{"group", int64_t{24}},
                                          {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                                          {"strides", std::vector<int64_t>{b.stride, b.stride}}}));
  ValueId y = s.node("Conv", {depthwise, s.weights({8, outputs, 1, 1}), s.weights({8})});
  if (b.residual) y = s.node("Add", {x, y});
  if (b.reuse_expanded) y = s.node("Add", {y, s.node("GlobalAveragePool", {s.node("Conv", {wide, s.weights({8, 24, 1, 1})})})});
  return b.watch_depthwise ? s.done({y, depthwise}) : s.done({y});
}

TEST(FuseInvertedResidual, the_three_convolutions_become_one) {
  for (const bool residual : {true, false}) {
    const Graph result = fused(block({.stride = residual ? 1 : 2, .residual = residual}));
    const Node* const node = inverted_in(result);
    ASSERT_NE(node, nullptr) << to_text(result);
    EXPECT_EQ(operators(result), (Counts{{"Transpose", 2}, {"unmoor:InvertedResidual", 1}})) << to_text(result);
    EXPECT_EQ(node->inputs.size(), residual ? 8U : 7U);
    EXPECT_EQ(text(*node, "expand_activation"), "Clip");
    EXPECT_EQ(text(*node, "depthwise_activation"), "Clip");
    EXPECT_EQ(text(*node, "activation"), "");
    EXPECT_EQ(node->origin.also.size(), residual ? 5U : 4U);
  }
}

// As MobileNetV1 and the first block of MobileNetV2 have it.
TEST(FuseInvertedResidual, a_depthwise_convolution_that_comes_first) {
  const Graph wide_kernel = fused(block({.expand_kernel = 3}));
  const Node* const node = inverted_in(wide_kernel);
  ASSERT_NE(node, nullptr) << to_text(wide_kernel);
  EXPECT_EQ(node->inputs[1], no_value);
  EXPECT_EQ(operators(wide_kernel)["unmoor:FusedConv"], 1U);
  // Others read what the first convolution gives.
  const Graph shared = fused(block({.reuse_expanded = true}));
  ASSERT_NE(inverted_in(shared), nullptr) << to_text(shared);
  EXPECT_EQ(inverted_in(shared)->inputs[1], no_value);
}

TEST(FuseInvertedResidual, what_is_watched_or_differs_stays) {
  EXPECT_EQ(inverted_in(fused(block({.watch_depthwise = true}))), nullptr);
  EXPECT_EQ(inverted_in(fused(block({.depthwise_outputs = 2}))), nullptr);
}

TEST(FuseInvertedResidual, where_a_device_refuses_the_whole_it_may_take_the_part) {
  const Graph part =
      fused(block({}), [](const OpCall& call) { return call.node.op != "unmoor:InvertedResidual" || !call.has(1); });
  ASSERT_NE(inverted_in(part), nullptr) << to_text(part);
  EXPECT_EQ(inverted_in(part)->inputs[1], no_value);
  const Graph none = fused(block({}), [](const OpCall& call) { return call.node.op != "unmoor:InvertedResidual"; });
  EXPECT_EQ(inverted_in(none), nullptr);
  EXPECT_EQ(operators(none)["unmoor:FusedConv"], 3U);
}

TEST(FuseInvertedResidual, images_with_channels_first_stay) {
  const Graph graph = block({});
  const Graph result = optimized(with_shapes(graph, {}), {.takes = [](const OpCall&) { return true; }});
  EXPECT_EQ(inverted_in(result), nullptr);
}

}  // namespace
}  // namespace unmoor::test
