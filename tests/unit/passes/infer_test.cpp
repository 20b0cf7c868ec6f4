#include <gmock/gmock.h>

#include "tests/unit/passes/sketch.h"

namespace unmoor::test {
namespace {

std::string type_text(const Graph& graph, size_t output = 0) { return to_text(graph.value(graph.outputs().at(output)).type); }

TEST(WithShapes, reshape_targets_computed_from_shapes_become_known) {
  Sketch s;
  Shape shape{-1, 3, -1};
  const ValueId x = s.input("x", shape);
  const ValueId batch = s.node("Gather", {s.node("Shape", {x}), s.constant(Tensor::scalar<int64_t>(0))});
  const ValueId target = s.node("Concat", {s.node("Unsqueeze", {batch, s.ints({0})}), s.ints({-1})}, {{"axis", int64_t{0}}});
  const Graph result = with_shapes(s.done({s.node("Reshape", {x, target})}), {{"x", Shape{5, 3, 4}}});
  EXPECT_EQ(type_text(result), "float32[5,12]");
  EXPECT_EQ(operators(result), (Counts{{"Reshape", 1}}));
}

TEST(WithShapes, a_known_dimension_is_read_from_a_shape_that_is_unknown_elsewhere) {
  Sketch s;
  const ValueId x = s.input("x", {-1, 7});
  const ValueId width = s.node("Gather", {s.node("Shape", {x}), s.ints({-1})});
  const ValueId target = s.node("Concat", {width, s.ints({-1})}, {{"axis", int64_t{0}}});
  EXPECT_EQ(type_text(with_shapes(s.done({s.node("Reshape", {x, target})}), {})), "float32[7,?]");
}

TEST(WithShapes, declared_sizes_are_hints_but_rank_must_agree) {
  Sketch s;
  const ValueId x = s.input("x", {10, 3, 32, 32});
  const Graph graph = s.done({s.node("Relu", {x})});
  EXPECT_EQ(type_text(with_shapes(graph, {{"x", Shape{1, 3, 480, 640}}})), "float32[1,3,480,640]");
  EXPECT_THROW(with_shapes(graph, {{"x", Shape{3, 480, 640}}}), Error);
  try {
    with_shapes(graph, {{"y", Shape{3}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("no input 'y'"));
  }
}

TEST(WithShapes, inferred_shapes_win_over_declared_ones) {
  Sketch s;
  const ValueId x = s.input("x", {2, 3, 4});
  const ValueId y = s.node("Relu", {x});
  s.graph.set_type(y, TensorType{DType::F32, {1, 9}});
  EXPECT_EQ(type_text(with_shapes(s.done({y}), {})), "float32[2,3,4]");
}

TEST(WithShapes, of_an_unknown_operator_only_the_declared_dtype_counts) {
  Sketch s;
  const ValueId y = s.node("acme:Magic", {s.input("x", {2})});
  s.graph.set_type(y, TensorType{DType::I32, {1, 9}});
  EXPECT_EQ(type_text(with_shapes(s.done({y}), {})), "int32[?...]");
}

TEST(WithShapes, a_fold_that_fails_leaves_its_node) {
  Sketch s;
  s.input("x", {2});
  const ValueId y = s.node("Gather", {s.weights({3}), s.ints({7})});
  const Graph result = with_shapes(s.done({y}), {});
  EXPECT_EQ(operators(result), (Counts{{"Gather", 1}}));
}

TEST(WithShapes, values_keep_their_names) {
  Sketch s;
  const ValueId x = s.input("x", {2});
  const ValueId y = s.node("Relu", {s.node("Add", {x, s.node("Neg", {s.weights({2})})})});
  const Graph result = with_shapes(s.done({y}), {});
  EXPECT_TRUE(result.find_value("Neg_0:0"));
  EXPECT_TRUE(result.value(*result.find_value("Neg_0:0")).constant);
  EXPECT_EQ(result.output_names(), std::vector<std::string>{"Relu_2:0"});
}

TEST(WithInputs, a_bound_value_is_known_and_stays_an_input) {
  Sketch s;
  const ValueId x = s.input("x", {6});
  const ValueId shape = s.input("shape", {2}, DType::I64);
  const Graph graph = s.done({s.node("Reshape", {x, shape})});
  const Data value = Tensor::from<int64_t>({2}, {2, 3});
  const Graph result = with_inputs(graph, {{TensorType{DType::F32, {6}}, nullptr}, {TensorType{DType::I64, {2}}, &value}});
  EXPECT_EQ(type_text(result), "float32[2,3]");
  EXPECT_EQ(result.inputs().size(), 2U);
}

// A branch with the captured x.
SubGraph branch(const std::string& op, Shape declared) {
  Sketch s;
  const ValueId x = s.input("x", declared);
  return std::make_shared<const Graph>(s.done({s.node(op, {x})}));
}

Graph choice(ValueId (*condition)(Sketch&), const std::string& else_op = "Neg") {
  Sketch s;
  const ValueId x = s.input("x", {2, 3});
  const ValueId which = condition(s);
  const ValueId y = s.node("If", {which, x}, {{"then_branch", branch("Relu", {1})}, {"else_branch", branch(else_op, {1})}, {"captures", int64_t{1}}});
  return s.done({s.node("Exp", {y})});
}

TEST(ControlFlow, if_gets_the_types_of_its_branches) {
  const Graph graph = choice([](Sketch& s) { return s.input("which", {}, DType::Bool); });
  const Graph result = with_shapes(graph, {});
  EXPECT_EQ(type_text(result), "float32[2,3]");
  const auto& body = std::get<SubGraph>(result.nodes()[0].attributes.at("then_branch"));
  EXPECT_EQ(to_text(body->value(body->outputs()[0]).type), "float32[2,3]");
}

TEST(ControlFlow, branches_that_differ_give_what_they_share) {
  const Graph graph = choice([](Sketch& s) { return s.input("which", {}, DType::Bool); }, "Flatten");
  EXPECT_EQ(type_text(with_shapes(graph, {})), "float32[2,3]");  // Flatten of a matrix.
  const Graph other = choice([](Sketch& s) { return s.input("which", {}, DType::Bool); }, "Transpose");
  EXPECT_EQ(type_text(with_shapes(other, {})), "float32[?,?]");
}

TEST(ControlFlow, a_branch_that_cannot_run_does_not_count) {
  const Graph graph = choice([](Sketch& s) { return s.input("which", {}, DType::Bool); }, "Det");  // Of no square matrix.
  const Graph result = with_shapes(graph, {});
  EXPECT_EQ(operators(result), (Counts{{"Exp", 1}, {"If", 1}}));
}

TEST(ControlFlow, an_if_of_known_condition_is_replaced_by_its_branch) {
  const Graph graph = choice([](Sketch& s) { return s.node("Not", {s.constant(Tensor::scalar<bool>(true))}); });
  const Graph result = with_shapes(graph, {});
  EXPECT_EQ(operators(result), (Counts{{"Exp", 1}, {"Neg", 1}}));
  EXPECT_EQ(result.nodes()[0].origin.name, "If_1/else_branch/Neg_0");
  EXPECT_EQ(result.value(result.nodes()[0].outputs[0]).origin.name, "If_1:0");
  const Tensor x = random_tensor({DType::F32, {2, 3}}, 1);
  expect_same(graph, result, {x});
}

TEST(ControlFlow, an_if_whose_branch_gives_back_a_capture_is_inlined) {
  Sketch inner;
  const ValueId captured = inner.input("x", {2});
  const auto same = std::make_shared<const Graph>(inner.done({captured}));
  Sketch s;
  const ValueId x = s.node("Relu", {s.input("x", {2})});
  const ValueId y = s.node("If", {s.constant(Tensor::scalar<bool>(true)), x}, {{"then_branch", SubGraph(same)}, {"else_branch", SubGraph(same)}, {"captures", int64_t{1}}});
  const Graph result = with_shapes(s.done({s.node("Exp", {y})}), {});
  EXPECT_EQ(operators(result), (Counts{{"Exp", 1}, {"Relu", 1}}));
  EXPECT_TRUE(result.find_value("Relu_0:0"));
}

// for i < trips: state = Concat(state, x) or state + x; the sum so far is stacked.
Graph loop(const std::string& op, bool captured_x) {
  Sketch inner;
  inner.input("i", {}, DType::I64);
  const ValueId goes_on = inner.input("goes_on", {}, DType::Bool);
  const ValueId state = inner.input("state", {-1});
  const ValueId x = captured_x ? inner.input("x", {-1}) : inner.weights({3});
  const ValueId next = op == "Concat" ? inner.node("Concat", {state, x}, {{"axis", int64_t{0}}}) : inner.node(op, {state, x});
  const ValueId sum = inner.node("ReduceSum", {next}, {{"keepdims", int64_t{0}}});
  const auto body = std::make_shared<const Graph>(inner.done({goes_on, next, sum}));
  Sketch s;
  std::vector<ValueId> inputs{s.constant(Tensor::scalar<int64_t>(4)), no_value, s.input("state", {3})};
  if (captured_x) inputs.push_back(s.input("x", {3}));
  const ValueId first = s.node("Loop", inputs, {{"body", SubGraph(body)}, {"captures", int64_t{captured_x ? 1 : 0}}}, 2);
  return s.done({first, ValueId{static_cast<uint32_t>(first) + 1}});
}

TEST(ControlFlow, loop_keeps_known_shapes_of_what_it_carries) {
  for (const bool captured : {false, true}) {
    const Graph result = with_shapes(loop("Add", captured), {});
    EXPECT_EQ(type_text(result, 0), "float32[3]");
    EXPECT_EQ(type_text(result, 1), "float32[4]");
    expect_same(loop("Add", captured), result, random_inputs(result));
  }
}

TEST(ControlFlow, loop_whose_state_grows_has_an_unknown_length) {
  const Graph result = with_shapes(loop("Concat", true), {});
  EXPECT_EQ(type_text(result, 0), "float32[?]");
  EXPECT_EQ(type_text(result, 1), "float32[4]");
  expect_same(loop("Concat", true), result, random_inputs(result));
}

TEST(ControlFlow, scan_stacks_along_its_axes) {
  Sketch inner;
  const ValueId state = inner.input("state", {-1});
  const ValueId x = inner.input("x", {-1});
  const ValueId next = inner.node("Add", {state, x});
  const auto body = std::make_shared<const Graph>(inner.done({next, inner.node("Relu", {next})}));
  Sketch s;
  const ValueId first = s.node("Scan", {s.input("state", {3}), s.input("x", {5, 3})},
                               {{"body", SubGraph(body)}, {"num_scan_inputs", int64_t{1}}}, 2);
  const Graph graph = s.done({first, ValueId{static_cast<uint32_t>(first) + 1}});
  const Graph result = with_shapes(graph, {});
  EXPECT_EQ(type_text(result, 0), "float32[3]");
  EXPECT_EQ(type_text(result, 1), "float32[5,3]");
  expect_same(graph, result, random_inputs(result));
}

TEST(ControlFlow, nested_loops_do_not_multiply_the_work) {
  SubGraph body = nullptr;
  for (int depth = 0; depth < 40; ++depth) {
    Sketch s;
    s.input("i", {}, DType::I64);
    const ValueId goes_on = s.input("goes_on", {}, DType::Bool);
    const ValueId state = s.input("state", {-1});
    const ValueId inner = body ? s.node("Loop", {s.constant(Tensor::scalar<int64_t>(1)), no_value, state}, {{"body", body}})
                               : s.node("Concat", {state, state}, {{"axis", int64_t{0}}});
    body = std::make_shared<const Graph>(s.done({goes_on, inner}));
  }
  Sketch s;
  const ValueId y = s.node("Loop", {s.constant(Tensor::scalar<int64_t>(1)), no_value, s.input("state", {3})}, {{"body", body}});
  const Graph result = with_shapes(s.done({y}), {});
  EXPECT_THAT(type_text(result), testing::AnyOf("float32[?]", "float32[?...]"));
}

// Each round gives back the carried values in the other order, and they differ in dtype: no round agrees with the one before.
TEST(ControlFlow, nested_loops_that_swap_dtypes_do_not_multiply_the_work) {
  SubGraph body = nullptr;
  for (int depth = 0; depth < 30; ++depth) {
    Sketch s;
    s.input("i", {}, DType::I64);
    const ValueId goes_on = s.input("goes_on", {}, DType::Bool);
    const ValueId a = s.input("a", {2});
    const ValueId b = s.input("b", {2}, DType::I64);
    if (body) s.node("Loop", {s.constant(Tensor::scalar<int64_t>(1)), no_value, a, b}, {{"body", body}}, 2);
    body = std::make_shared<const Graph>(s.done({goes_on, b, a}));
  }
  Sketch s;
  const ValueId a = s.input("a", {2});
  const ValueId b = s.input("b", {2}, DType::I64);
  const ValueId y = s.node("Loop", {s.constant(Tensor::scalar<int64_t>(1)), no_value, a, b}, {{"body", body}}, 2);
  EXPECT_EQ(with_shapes(s.done({y}), {}).nodes().size(), 1U);
}

TEST(ControlFlow, an_if_whose_name_is_too_long_to_be_copied_stays) {
  Sketch inner;
  ValueId inside = inner.input("x", {2});
  for (int i = 0; i < 1000; ++i) inside = inner.node("Relu", {inside});
  const auto body = std::make_shared<const Graph>(inner.done({inside}));
  Sketch s;
  const ValueId x = s.input("x", {2});
  const ValueId yes = s.constant(Tensor::scalar<bool>(true));
  const ValueId y = s.node("If", {yes, x}, {{"then_branch", SubGraph(body)}, {"else_branch", SubGraph(body)}, {"captures", int64_t{1}}});
  s.graph.mutable_node(NodeId{0}).origin.name = std::string(1 << 20, 'n');
  EXPECT_EQ(operators(with_shapes(s.done({y}), {})), (Counts{{"If", 1}}));  // Not 5 GB of names.
}

TEST(ControlFlow, a_body_that_does_not_fit_its_node_is_an_invalid_model) {
  Sketch s;
  const ValueId x = s.input("x", {2});
  const ValueId which = s.input("which", {}, DType::Bool);
  const ValueId y = s.node("If", {which, x, x}, {{"then_branch", branch("Relu", {1})}, {"else_branch", branch("Neg", {1})}, {"captures", int64_t{2}}});
  const Graph graph = s.done({y});
  EXPECT_THROW(with_shapes(graph, {}), Error);
}

}  // namespace
}  // namespace unmoor::test
