#include <set>

#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

// As for a device that takes every node with channels last.
Graph moved(const Graph& graph, const TakesCall& takes = [](const OpCall&) { return true; }) {
  const Graph inferred = with_shapes(graph, {});
  Graph result = optimized(inferred, {.takes = takes, .channels_last = true});
  expect_same(graph, result, random_inputs(inferred), 1e-5);
  return result;
}

Attributes window(int64_t kernel, int64_t pad) {
  return {{"kernel_shape", std::vector<int64_t>{kernel, kernel}}, {"pads", std::vector<int64_t>(4, pad)}};
}

size_t transposes(const Graph& graph) { return operators(graph)["Transpose"]; }

TEST(ChannelsLast, a_chain_moves_once_on_the_way_in) {
  Sketch s;
  const ValueId x = s.input("x", {1, 3, 12, 12});
  ValueId y = s.node("Relu", {s.node("Conv", {x, s.weights({8, 3, 3, 3}), s.weights({8})}, window(3, 1))});
  y = s.node("MaxPool", {y}, window(2, 0));
  const ValueId branch = s.node("Conv", {y, s.weights({8, 8, 3, 3})}, window(3, 1));
  y = s.node("Relu", {s.node("Add", {branch, y})});
  y = s.node("Flatten", {s.node("GlobalAveragePool", {y})});
  y = s.node("Gemm", {y, s.weights({8, 5})});
  const Graph result = moved(s.done({y}));
  EXPECT_EQ(transposes(result), 1U) << to_text(result);
  EXPECT_EQ(result.node(NodeId{0}).op, "Transpose");
}

TEST(ChannelsLast, squeeze_and_excite_stays_inside) {
  Sketch s;
  const ValueId x = s.input("x", {2, 4, 6, 5});
  const ValueId y = s.node("HardSwish", {s.node("Mul", {s.node("Conv", {x, s.weights({8, 4, 1, 1})}), s.weights({8, 1, 1})})});
  ValueId gate = s.node("ReduceMean", {y, s.ints({2, 3})});
  gate = s.node("Sigmoid", {s.node("Conv", {gate, s.weights({8, 8, 1, 1})})});
  const ValueId z = s.node("Mul", {y, gate});
  EXPECT_EQ(transposes(moved(s.done({s.node("Conv", {z, s.weights({4, 8, 1, 1})})}))), 2U);
}

TEST(ChannelsLast, rows_of_channels_are_images_already) {
  Sketch s;
  const ValueId x = s.input("x", {2, 30, 4});
  const ValueId image = s.node("Reshape", {s.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}}), s.ints({2, 4, 5, 6})});
  const ValueId y = s.node("Conv", {image, s.weights({8, 4, 3, 3})}, window(3, 1));
  EXPECT_EQ(transposes(moved(s.done({s.node("Transpose", {s.node("Reshape", {y, s.ints({2, 8, 30})})}, {{"perm", std::vector<int64_t>{0, 2, 1}}})}))), 0U);
}

TEST(ChannelsLast, axes_and_entries_by_axis_follow) {
  Sketch s;
  const ValueId x = s.input("x", {1, 4, 6, 5});
  ValueId y = s.node("Conv", {x, s.weights({8, 4, 1, 1})});
  ValueId z = s.node("Conv", {x, s.weights({6, 4, 1, 1})});
  y = s.node("Concat", {y, z}, {{"axis", int64_t{1}}});
  y = s.node("Pad", {y, s.ints({0, 1, 2, 0, 0, 0, 1, 3}), s.scalar(0.5F)});
  const ValueId sizes = s.ints({1, 15, 12, 10});
  y = s.node("Resize", {y, no_value, no_value, sizes}, {{"mode", std::string("linear")}});
  y = s.node("PRelu", {y, s.weights({15, 1, 1})});
  y = s.node("Add", {y, s.weights({1, 15, 12, 1})});
  y = s.node("Softmax", {y}, {{"axis", int64_t{1}}});
  y = s.node("Split", {y, s.ints({7, 8})}, {{"axis", int64_t{1}}}, 2);
  y = s.node("ReduceMax", {y, s.ints({-1})});
  const Graph result = moved(s.done({s.node("Conv", {y, s.weights({4, 7, 1, 1})})}));
  EXPECT_EQ(transposes(result), 2U) << to_text(result);
}

TEST(ChannelsLast, places_in_a_row_with_channels_behind_need_no_transpose) {
  Sketch s;
  ValueId y = s.node("Conv", {s.input("x", {1, 3, 8, 8}), s.weights({6, 3, 4, 4})}, {{"strides", std::vector<int64_t>{4, 4}}});
  y = s.node("Reshape", {y, s.ints({1, 6, -1})});
  y = s.node("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const Graph result = moved(s.done({s.node("MatMul", {y, s.weights({6, 5})})}));
  EXPECT_EQ(transposes(result), 1U) << to_text(result);
}

TEST(ChannelsLast, what_the_device_does_not_take_stays) {
  Sketch s;
  const ValueId x = s.input("x", {1, 4, 6, 6});
  const ValueId y = s.node("Conv", {x, s.weights({4, 4, 3, 3})}, window(3, 1));
  const auto none = [](const OpCall&) { return false; };
  EXPECT_EQ(transposes(moved(s.done({s.node("AveragePool", {y}, window(2, 0))}), none)), 0U);
  const auto no_pools = [](const OpCall& call) { return call.node.op != "AveragePool"; };
  EXPECT_EQ(transposes(moved(s.graph, no_pools)), 2U);
}

TEST(ChannelsLast, one_dimension_and_three_move_too) {
  Sketch s;
  const ValueId x = s.node("Relu", {s.node("Conv", {s.input("x", {2, 3, 20}), s.weights({5, 3, 3})})});
  const ValueId y = s.node("Conv", {s.input("y", {1, 2, 4, 5, 6}), s.weights({3, 2, 2, 2, 2})});
  EXPECT_EQ(transposes(moved(s.done({x, s.node("Relu", {y})}))), 4U);
}

TEST(ChannelsLast, values_keep_their_names_and_tell_their_layout) {
  Sketch s;
  const ValueId first = s.node("Conv", {s.input("x", {1, 3, 8, 8}), s.weights({4, 3, 1, 1})});
  const ValueId second = s.node("Conv", {first, s.weights({4, 4, 1, 1})});
  const std::string names[]{s.graph.value(first).origin.name, s.graph.value(second).origin.name};
  const Graph result = moved(s.done({second}));
  std::map<std::string, std::set<std::vector<int64_t>>> layouts;
  for (const Value& value : result.values()) layouts[value.origin.name].insert(value.origin.permutation);
  const std::vector<int64_t> last{0, 3, 1, 2};
  EXPECT_EQ(layouts.at(names[0]), (std::set{last}));
  EXPECT_EQ(layouts.at(names[1]), (std::set{last, {}}));  // The graph's output.
}

}  // namespace
}  // namespace unmoor::test
