#include <limits>

#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

// As for a device that takes the fused operator.
Graph fused(const Graph& graph) {
  const Graph inferred = with_shapes(graph, {});
  Graph result = optimized(inferred, {.takes = [](const OpCall&) { return true; }});
  expect_same(graph, result, random_inputs(inferred), 1e-5);
  return result;
}

const Node& attention_in(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op == "unmoor:FusedAttention") return node;
  }
  ADD_FAILURE() << "no FusedAttention in\n" << to_text(graph);
  static const Node none;
  return none;
}

std::string layout(const Node& node, const std::string& key) {
  const auto found = node.attributes.find(key);
  return found == node.attributes.end() ? "BHSD" : std::get<std::string>(found->second);
}

ValueId swap_heads(Sketch& s, ValueId x) { return s.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}); }

TEST(FuseAttention, transposes_and_scales_go_into_it) {
  Sketch s;
  const ValueId q = s.node("Mul", {swap_heads(s, s.input("q", {2, 5, 3, 8})), s.scalar(0.5F)});
  ValueId k = s.node("Transpose", {s.input("k", {2, 7, 3, 8})}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  k = s.node("Mul", {k, s.scalar(0.5F)});
  const ValueId v = swap_heads(s, s.input("v", {2, 7, 3, 6}));
  const ValueId scores = s.node("Add", {s.node("MatMul", {q, k}), s.input("mask", {2, 1, 1, 7})});
  const Graph result = fused(s.done({swap_heads(s, s.node("MatMul", {s.node("Softmax", {scores}), v}))}));
  ASSERT_EQ(result.nodes().size(), 1U) << to_text(result);
  const Node& node = attention_in(result);
  for (const char* key : {"q_layout", "k_layout", "v_layout", "y_layout"}) EXPECT_EQ(layout(node, key), "BSHD") << key;
  EXPECT_FLOAT_EQ(std::get<float>(node.attributes.at("scale")), 0.25F);
  EXPECT_EQ(node.inputs.size(), 4U);
}

// As PyTorch's exporter writes keys: heads joined with the batch while rows and columns change places.
TEST(FuseAttention, keys_turned_among_joined_heads) {
  Sketch s;
  const ValueId q = s.input("q", {1, 3, 5, 8});
  ValueId k = s.node("Reshape", {swap_heads(s, s.input("k", {1, 7, 3, 8})), s.ints({3, 7, 8})});
  k = s.node("Reshape", {s.node("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 2, 1}}}), s.ints({1, 3, 8, 7})});
  const ValueId weights = s.node("Softmax", {s.node("MatMul", {q, k})});
  const ValueId is_nan = s.node("IsNaN", {weights});
  const ValueId safe = s.node("Where", {is_nan, s.scalar(0.0F), weights});
  const Graph result = fused(s.done({s.node("MatMul", {safe, s.input("v", {1, 3, 7, 8})})}));
  ASSERT_EQ(result.nodes().size(), 1U) << to_text(result);
  EXPECT_EQ(layout(attention_in(result), "k_layout"), "BSHD");
  EXPECT_EQ(layout(attention_in(result), "no_weights"), "zero_if_nan");
}

TEST(FuseAttention, a_mask_that_chooses) {
  Sketch s;
  const ValueId scores = s.node("MatMul", {s.input("q", {3, 5, 8}), s.input("k", {3, 8, 7})});
  const ValueId shown = s.node("Greater", {s.input("place", {5, 7}), s.scalar(0.0F)});
  const ValueId masked = s.node("Where", {shown, scores, s.scalar(-1e4F)});
  const Graph result = fused(s.done({s.node("MatMul", {s.node("Softmax", {masked}), s.input("v", {3, 7, 4})})}));
  const Node& node = attention_in(result);
  ASSERT_EQ(node.inputs.size(), 5U);
  EXPECT_EQ(node.inputs[3], no_value);
  EXPECT_EQ(layout(node, "k_layout"), "BHDS");
}

TEST(FuseAttention, keys_repeated_for_heads_that_share_them) {
  Sketch s;
  const auto repeated = [&](const char* name) {
    const ValueId five = s.node("Unsqueeze", {s.input(name, {2, 2, 7, 8}), s.ints({2})});
    return s.node("Reshape", {s.node("Expand", {five, s.ints({2, 2, 3, 7, 8})}), s.ints({2, 6, 7, 8})});
  };
  const ValueId k = s.node("Transpose", {repeated("k")}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const ValueId scores = s.node("MatMul", {s.input("q", {2, 6, 4, 8}), k});
  const Graph result = fused(s.done({s.node("MatMul", {s.node("Softmax", {scores}), repeated("v")})}));
  ASSERT_EQ(result.nodes().size(), 1U) << to_text(result);
  EXPECT_EQ(attention_in(result).inputs[1], result.inputs()[0]);  // "k" was sketched first.
}

// Both at once, as PyTorch's dynamo exporter writes shared keys: the repeat is merged with the joining of heads.
TEST(FuseAttention, repeated_keys_turned_among_joined_heads) {
  Sketch s;
  const auto repeated = [&](const char* name) {
    const ValueId five = s.node("Unsqueeze", {s.input(name, {2, 2, 7, 8}), s.ints({2})});
    return s.node("Reshape", {s.node("Expand", {five, s.ints({2, 2, 3, 7, 8})}), s.ints({2, 6, 7, 8})});
  };
  ValueId k = s.node("Reshape", {repeated("k"), s.ints({-1, 7, 8})});
  k = s.node("Reshape", {s.node("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 2, 1}}}), s.ints({2, 6, 8, 7})});
  const ValueId scores = s.node("MatMul", {s.input("q", {2, 6, 4, 8}), k});
  const Graph result = fused(s.done({s.node("MatMul", {s.node("Softmax", {scores}), repeated("v")})}));
  ASSERT_EQ(result.nodes().size(), 1U) << to_text(result);
  EXPECT_EQ(attention_in(result).inputs[1], result.inputs()[0]);
}

// Each of these has something else than attention between the products.
TEST(FuseAttention, what_is_watched_or_differs_stays) {
  const auto build = [](int kind) {
    Sketch s;
    const ValueId scores = s.node("MatMul", {s.input("q", {2, 3, 5, 8}), s.input("k", {2, 3, 8, 7})});
    const ValueId weights =
        s.node("Softmax", {kind == 0 ? s.node("Tanh", {scores}) : scores}, {{"axis", int64_t{kind == 1 ? 2 : -1}}});
    const ValueId y = s.node("MatMul", {weights, s.input("v", {2, 3, 7, 4})});
    return kind == 2 ? s.done({y, weights}) : kind == 3 ? s.done({y, scores}) : s.done({y});
  };
  for (int kind = 0; kind < 4; ++kind) {
    const Graph result = fused(build(kind));
    for (const Node& node : result.nodes()) EXPECT_NE(node.op, "unmoor:FusedAttention") << kind;
  }
  EXPECT_EQ(attention_in(fused(build(4))).op, "unmoor:FusedAttention");
}

TEST(FuseAttention, not_for_a_device_that_lacks_it) {
  Sketch s;
  const ValueId scores = s.node("MatMul", {s.input("q", {3, 5, 8}), s.input("k", {3, 8, 7})});
  const Graph graph = s.done({s.node("MatMul", {s.node("Softmax", {scores}), s.input("v", {3, 7, 4})})});
  const TakesCall none = [](const OpCall&) { return false; };
  for (const TakesCall& takes : {TakesCall(), none}) {
    const Graph result = optimized(with_shapes(graph, {}), {.takes = takes});
    for (const Node& node : result.nodes()) EXPECT_NE(node.op, "unmoor:FusedAttention");
  }
}

}  // namespace
}  // namespace unmoor::test
