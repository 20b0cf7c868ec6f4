#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

Graph cleaned(const Graph& graph) {
  const Graph inferred = with_shapes(graph, {});
  Graph result = optimized(inferred, {.fuse = false});
  expect_same(graph, result, random_inputs(inferred), 0);
  return result;
}

TEST(Clean, folds_constant_subexpressions_and_drops_their_nodes) {
  Sketch s;
  const ValueId x = s.input("x", {4});
  const ValueId sum = s.node("Add", {s.weights({4}), s.node("Mul", {s.weights({4}), s.scalar(2)})});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Sub", {x, sum})}))), (Counts{{"Sub", 1}}));
}

TEST(Clean, does_not_fold_what_blows_up) {
  Sketch s;
  const ValueId x = s.input("x", {1});
  const ValueId big = s.node("Expand", {s.scalar(1), s.ints({1024, 1024})});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Mul", {x, big})}))), (Counts{{"Expand", 1}, {"Mul", 1}}));
}

TEST(Clean, a_chain_that_blows_up_step_by_step_ends_somewhere) {
  Sketch s;
  const ValueId x = s.input("x", {1});
  ValueId big = s.node("Expand", {s.scalar(1), s.ints({1 << 18})});
  for (int i = 0; i < 12; ++i) big = s.node("Tile", {big, s.ints({4})});  // 16 TiB at the end.
  const Graph result = optimized(with_shapes(s.done({s.node("Mul", {x, big})}), {}), {});
  EXPECT_GT(operators(result).count("Tile"), 0U);
}

TEST(Clean, widens_int8_weights_ahead_of_time) {
  Sketch s;
  const ValueId x = s.input("x", {1, 2});
  const ValueId weights = s.constant(Tensor::from<int8_t>({2, 2}, {1, -2, 3, 127}));
  const ValueId wide = s.node("Mul", {s.node("Cast", {weights}, {{"to", int64_t{1}}}), s.weights({2})});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Add", {x, wide})}))), (Counts{{"Add", 1}}));
}

TEST(Clean, removes_nodes_that_give_back_their_input) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  ValueId y = s.node("Relu", {x});
  y = s.node("Identity", {y});
  y = s.node("Dropout", {y});
  y = s.node("Cast", {y}, {{"to", int64_t{1}}});
  y = s.node("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 1}}});
  y = s.node("Reshape", {y, s.ints({2, -1})});
  y = s.node("Pad", {y, s.ints({0, 0, 0, 0})});
  y = s.node("Slice", {y, s.ints({0}), s.ints({1000}), s.ints({1})});
  y = s.node("Expand", {y, s.ints({1, 3})});
  y = s.node("Tile", {y, s.ints({1, 1})});
  y = s.node("Concat", {y}, {{"axis", int64_t{0}}});
  y = s.node("Mul", {y, s.scalar(1)});
  EXPECT_EQ(operators(cleaned(s.done({y}))), (Counts{{"Relu", 1}}));
}

TEST(Clean, keeps_what_only_looks_like_an_identity) {
  Sketch s;
  const ValueId x = s.input("x", {2, 2});
  const ValueId backwards = s.node("Slice", {x, s.ints({-1}), s.ints({-100}), s.ints({1}), s.ints({-1})});
  const ValueId widened = s.node("Mul", {s.input("v", {2}), s.constant(Tensor::from<float>({1, 1}, {1}))});
  const Graph result = cleaned(s.done({backwards, widened}));
  EXPECT_EQ(operators(result), (Counts{{"Mul", 1}, {"Slice", 1}}));
}

TEST(Clean, a_graph_output_that_is_a_graph_input_keeps_its_node) {
  Sketch s;
  const ValueId x = s.input("x", {2});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Identity", {x})}))), (Counts{{"Identity", 1}}));
}

TEST(Clean, cancels_and_merges_transposes) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4});
  const std::vector<int64_t> turn{1, 2, 0};
  const ValueId once = s.node("Transpose", {x}, {{"perm", turn}});
  const ValueId twice = s.node("Transpose", {once}, {{"perm", turn}});
  const ValueId thrice = s.node("Transpose", {twice}, {{"perm", turn}});
  const Graph result = cleaned(s.done({s.node("Relu", {thrice}), s.node("Relu", {twice})}));
  EXPECT_EQ(operators(result), (Counts{{"Relu", 2}, {"Transpose", 1}}));
}

TEST(Clean, merges_reshapes_and_transposes_that_move_nothing) {
  Sketch s;
  const ValueId x = s.input("x", {2, 1, 3});
  ValueId y = s.node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  y = s.node("Squeeze", {y, s.ints({0})});
  y = s.node("Unsqueeze", {y, s.ints({0, 3})});
  y = s.node("Flatten", {y}, {{"axis", int64_t{2}}});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Relu", {y})}))), (Counts{{"Relu", 1}, {"Reshape", 1}}));
}

TEST(Clean, reshape_to_an_empty_shape_survives_merging) {
  Sketch s;
  const ValueId x = s.input("x", {0, 4});
  ValueId y = s.node("Unsqueeze", {x, s.ints({0})});
  y = s.node("Reshape", {y, s.ints({2, 0, 4})}, {{"allowzero", int64_t{1}}});
  EXPECT_EQ(cleaned(s.done({s.node("Relu", {y})})).nodes().size(), 2U);
}

TEST(Clean, computes_what_is_computed_twice_once) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  const ValueId a = s.node("Add", {x, s.scalar(2)});
  const ValueId b = s.node("Add", {x, s.scalar(2)});
  const ValueId c = s.node("Add", {x, s.scalar(3)});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Mul", {a, s.node("Mul", {b, c})})}))), (Counts{{"Add", 2}, {"Mul", 2}}));
}

TEST(Clean, attributes_tell_nodes_apart) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  const ValueId a = s.node("LeakyRelu", {x}, {{"alpha", 0.1F}});
  const ValueId b = s.node("LeakyRelu", {x}, {{"alpha", 0.2F}});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Mul", {a, b})}))), (Counts{{"LeakyRelu", 2}, {"Mul", 1}}));
}

TEST(Clean, random_numbers_are_neither_folded_nor_shared) {
  Sketch s;
  const Attributes shape{{"shape", std::vector<int64_t>{4}}};
  const ValueId y = s.node("Add", {s.node("RandomNormal", {}, shape), s.node("RandomNormal", {}, shape)});
  const Graph result = optimized(with_shapes(s.done({y}), {}), {.fuse = false});
  EXPECT_EQ(operators(result), (Counts{{"Add", 1}, {"RandomNormal", 2}}));
}

TEST(Clean, removes_dead_nodes) {
  Sketch s;
  const ValueId x = s.input("x", {2});
  s.node("Exp", {s.node("Neg", {x})});
  EXPECT_EQ(operators(cleaned(s.done({s.node("Relu", {x})}))), (Counts{{"Relu", 1}}));
}

TEST(Clean, constants_are_shared_not_copied) {
  Sketch s;
  const ValueId x = s.input("x", {300});
  const ValueId weights = s.weights({300});
  const Tensor before = *s.graph.constant_tensor(weights);
  const Graph result = cleaned(s.done({s.node("Add", {x, weights})}));
  EXPECT_TRUE(result.constant_tensor(result.nodes()[0].inputs[1])->shares_storage(before));
}

TEST(Clean, every_pass_alone_keeps_the_meaning) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  ValueId y = s.node("Identity", {s.node("Add", {x, s.node("Neg", {s.weights({3})})})});
  y = s.node("Mul", {y, s.node("Sigmoid", {y})});
  y = s.node("Transpose", {s.node("Transpose", {y}, {{"perm", std::vector<int64_t>{1, 0}}})}, {{"perm", std::vector<int64_t>{1, 0}}});
  const Graph graph = with_shapes(s.done({y}), {});
  for (const Pass& pass : all_passes()) {
    SCOPED_TRACE(pass.name);
    EXPECT_FALSE(pass.summary.empty());
    expect_same(graph, pass.run(graph), random_inputs(graph));
  }
}

TEST(Clean, where_under_one_constant_condition_is_the_chosen_operand) {
  for (const bool chosen : {false, true}) {
    Sketch s;
    const ValueId a = s.input("a", {2, 3});
    const ValueId b = s.input("b", {1, 3});
    Tensor condition(TensorType{DType::Bool, Shape{2, 1}});
    for (std::byte& each : condition.writable_bytes()) each = std::byte{chosen};
    const ValueId where = s.node("Where", {s.constant(condition), a, b});
    const Graph result = optimized_and_checked(s.done({s.node("Neg", {where})}));
    // The other operand would have to be spread, so that Where stays.
    EXPECT_EQ(operators(result), chosen ? (Counts{{"Neg", 1}}) : (Counts{{"Neg", 1}, {"Where", 1}}));
  }
}

}  // namespace
}  // namespace unmoor::test
