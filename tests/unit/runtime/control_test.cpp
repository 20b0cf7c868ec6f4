#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_device.h"
#include "tests/unit/passes/sketch.h"
#include <csignal>

#include "unmoor/backends/reference/reference.h"
#include "unmoor/base/memory.h"
#include "unmoor/base/stop.h"
#include "unmoor/runtime/loop_limit.h"
#include "unmoor/runtime/session.h"

namespace unmoor {
namespace {

using test::Sketch;

std::shared_ptr<Device> reference() { return make_reference_backend()->open(0); }

std::vector<double> first_output(const Graph& graph, const NamedData& inputs) {
  Session session(make_plan(graph, {reference()}, {}));
  return doubles(session.run(inputs).begin()->second.tensor());
}

SubGraph branch(const std::string& op, const std::vector<ValueId>&) {
  Sketch sketch;
  const ValueId x = sketch.input("captured", {3});
  return std::make_shared<const Graph>(sketch.done({sketch.node(op, {x})}));
}

TEST(Control, if_takes_the_branch_that_its_condition_says) {
  Sketch sketch;
  const ValueId condition = sketch.input("condition", {}, DType::Bool);
  const ValueId x = sketch.input("x", {3});
  const ValueId y = sketch.node("If", {condition, x},
                                {{"then_branch", branch("Neg", {})}, {"else_branch", branch("Abs", {})}, {"captures", int64_t{1}}});
  const Graph graph = sketch.done({y});
  const Tensor values = Tensor::from<float>({3}, {1, -2, 3});
  EXPECT_EQ(first_output(graph, {{"condition", Tensor::scalar<bool>(true)}, {"x", values}}), (std::vector<double>{-1, 2, -3}));
  EXPECT_EQ(first_output(graph, {{"condition", Tensor::scalar<bool>(false)}, {"x", values}}), (std::vector<double>{1, 2, 3}));
}

// state <- state + captured, with each state scanned out, until the trip count.
Graph loop_graph() {
  Sketch body;
  (void)body.input("iteration", {}, DType::I64);
  const ValueId going = body.input("going", {}, DType::Bool);
  const ValueId state = body.input("state", {2});
  const ValueId step = body.input("step", {2});
  const ValueId next = body.node("Add", {state, step});
  const ValueId still = body.node("Identity", {going});
  const ValueId seen = body.node("Identity", {next});
  const auto graph = std::make_shared<const Graph>(body.done({still, next, seen}));
  Sketch sketch;
  const ValueId count = sketch.input("count", {}, DType::I64);
  const ValueId start = sketch.input("start", {2});
  const ValueId captured = sketch.input("captured", {2});
  const ValueId last = sketch.node("Loop", {count, no_value, start, captured}, {{"body", graph}, {"captures", int64_t{1}}}, 2);
  (void)last;
  const ValueId scanned = sketch.graph.nodes().back().outputs[1];
  return sketch.done({scanned});
}

TEST(Control, a_loop_carries_its_state_and_stacks_what_it_scans) {
  const NamedData inputs{{"count", Tensor::scalar<int64_t>(3)},
                         {"start", Tensor::from<float>({2}, {0, 10})},
                         {"captured", Tensor::from<float>({2}, {1, 2})}};
  EXPECT_EQ(first_output(loop_graph(), inputs), (std::vector<double>{1, 12, 2, 14, 3, 16}));
}

TEST(Control, a_loop_that_never_runs_gives_an_empty_stack) {
  const NamedData inputs{{"count", Tensor::scalar<int64_t>(0)},
                         {"start", Tensor::from<float>({2}, {0, 10})},
                         {"captured", Tensor::from<float>({2}, {1, 2})}};
  EXPECT_EQ(first_output(loop_graph(), inputs), (std::vector<double>{}));
}

TEST(Control, scan_walks_backwards_and_along_other_axes) {
  Sketch body;
  const ValueId sum = body.input("sum", {2});
  const ValueId item = body.input("item", {2});
  const ValueId next = body.node("Add", {sum, item});
  const auto graph = std::make_shared<const Graph>(body.done({next, body.node("Identity", {next})}));
  Sketch sketch;
  const ValueId start = sketch.input("start", {2});
  const ValueId items = sketch.input("items", {2, 3});
  (void)sketch.node("Scan", {start, items},
                    {{"body", graph},
                     {"num_scan_inputs", int64_t{1}},
                     {"captures", int64_t{0}},
                     {"scan_input_axes", std::vector<int64_t>{1}},
                     {"scan_input_directions", std::vector<int64_t>{1}},
                     {"scan_output_axes", std::vector<int64_t>{1}}},
                    2);
  const ValueId scanned = sketch.graph.nodes().back().outputs[1];
  const NamedData inputs{{"start", Tensor::from<float>({2}, {0, 0})}, {"items", Tensor::from<float>({2, 3}, {1, 2, 3, 10, 20, 30})}};
  EXPECT_EQ(first_output(sketch.done({scanned}), inputs), (std::vector<double>{3, 5, 6, 30, 50, 60}));
}

// Each element of the sequence of x and y, plus the tensor, times the captured value.
Graph map_graph(bool second_is_sequence) {
  Sketch body;
  const ValueId element = body.input("element", {});
  const ValueId other = body.input("other", {});
  const ValueId captured = body.input("captured", {1});
  const auto graph = std::make_shared<const Graph>(body.done({body.node("Mul", {body.node("Add", {element, other}), captured})}));
  Sketch sketch;
  const ValueId x = sketch.input("x", {2});
  const ValueId y = sketch.input("y", {3});
  const ValueId scale = sketch.input("scale", {1});
  const ValueId list = sketch.node("SequenceConstruct", {x, y});
  const ValueId second = second_is_sequence ? list : sketch.scalar(100);
  const ValueId made = sketch.node("SequenceMap", {list, second, scale}, {{"body", graph}, {"captures", int64_t{1}}});
  return sketch.done({sketch.node("ConcatFromSequence", {made}, {{"axis", int64_t{0}}})});
}

TEST(Control, sequence_map_takes_elements_of_sequences_and_tensors_whole) {
  const NamedData inputs{{"x", Tensor::from<float>({2}, {1, 2})},
                         {"y", Tensor::from<float>({3}, {10, 20, 30})},
                         {"scale", Tensor::from<float>({1}, {2})}};
  EXPECT_EQ(first_output(map_graph(true), inputs), (std::vector<double>{4, 8, 40, 80, 120}));
  EXPECT_EQ(first_output(map_graph(false), inputs), (std::vector<double>{202, 204, 220, 240, 260}));
}

TEST(Control, sequence_map_of_nothing_is_nothing) {
  Sketch body;
  const auto graph = std::make_shared<const Graph>(body.done({body.node("Neg", {body.input("element", {}, DType::I64)})}));
  Sketch sketch;
  const ValueId none = sketch.node("SequenceEmpty", {}, {{"dtype", int64_t{7}}});
  const ValueId made = sketch.node("SequenceMap", {none}, {{"body", graph}, {"captures", int64_t{0}}});
  EXPECT_EQ(first_output(sketch.done({sketch.node("SequenceLength", {made})}), {}), (std::vector<double>{0}));
}

TEST(Control, sequence_map_refuses_sequences_of_other_lengths) {
  Sketch body;
  const ValueId a = body.input("a", {2});
  const auto graph = std::make_shared<const Graph>(body.done({body.node("Add", {a, body.input("b", {2})})}));
  Sketch sketch;
  const ValueId x = sketch.input("x", {2});
  const ValueId one = sketch.node("SequenceConstruct", {x});
  const ValueId two = sketch.node("SequenceConstruct", {x, x});
  const ValueId made = sketch.node("SequenceMap", {two, one}, {{"body", graph}, {"captures", int64_t{0}}});
  Session session(make_plan(sketch.done({sketch.node("SequenceLength", {made})}), {reference()}, {}));
  try {
    (void)session.run({{"x", Tensor::from<float>({2}, {1, 2})}});
    ADD_FAILURE() << "it ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("input 1 has 1 elements, not 2"), std::string::npos) << error.what();
  }
}

TEST(Control, shapes_that_only_data_tells_are_prepared_during_the_run) {
  Sketch sketch;
  const ValueId x = sketch.input("x", {5});
  const ValueId where = sketch.node("NonZero", {x});
  const ValueId flat = sketch.node("Squeeze", {where, sketch.ints({0})});
  const ValueId taken = sketch.node("Gather", {x, flat});
  const Graph graph = sketch.done({sketch.node("Neg", {taken})});
  Session session(make_plan(graph, {reference()}, {}));
  const auto run = [&](std::initializer_list<float> values) {
    return doubles(session.run({{"x", Tensor::from<float>({5}, values)}}).begin()->second.tensor());
  };
  EXPECT_EQ(run({0, 1, 0, 2, 3}), (std::vector<double>{-1, -2, -3}));
  EXPECT_GE(session.late_preparations(), 3U);
  const size_t before = session.late_preparations();
  EXPECT_EQ(run({4, 0, 5, 6, 0}), (std::vector<double>{-4, -5, -6}));
  EXPECT_LE(session.late_preparations(), before + 1);
  EXPECT_EQ(run({0, 0, 0, 0, 0}), (std::vector<double>{}));
}

// The graph of a Loop or a Scan with one operator inside of its body, over values of known shapes.
Graph with_body(const std::string& op) {
  Sketch body;
  if (op == "Loop") {
    (void)body.input("iteration", {}, DType::I64);
    (void)body.input("going", {}, DType::Bool);
  }
  const ValueId state = body.input("state", {2});
  const ValueId slice = op == "Scan" ? body.input("slice", {2}) : state;
  const ValueId next = body.node("Sin", {body.node("Add", {state, slice})});
  const ValueId going = op == "Loop" ? body.constant(Tensor::scalar<bool>(true)) : next;
  const auto graph = std::make_shared<const Graph>(op == "Loop" ? body.done({going, next}) : body.done({next}));
  Sketch sketch;
  const ValueId count = sketch.input("count", {}, DType::I64);
  const ValueId x = sketch.input("x", {2});
  const ValueId rows = sketch.input("rows", {3, 2});
  if (op == "Loop") return sketch.done({sketch.node("Loop", {count, no_value, x}, {{"body", graph}, {"captures", int64_t{0}}})});
  return sketch.done({sketch.node("Scan", {x, rows}, {{"body", graph}, {"num_scan_inputs", int64_t{1}}, {"captures", int64_t{0}}})});
}

TEST(Control, forbid_lists_what_is_refused_in_bodies_before_anything_runs) {
  for (const std::string op : {"Loop", "Scan"}) {
    auto fake = std::make_shared<test::FakeDevice>(std::set<std::string>{"Add"});
    PlanOptions options;
    options.fallback = Fallback::Forbid;
    try {
      (void)make_plan(with_body(op), {fake, reference()}, options);
      ADD_FAILURE() << "the plan was made";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
      EXPECT_THAT(error.what(), testing::HasSubstr("no kernel for Sin"));
      EXPECT_THAT(error.what(), testing::HasSubstr(op + "_0'"));
    }
  }
  auto both = std::make_shared<test::FakeDevice>(std::set<std::string>{"Add", "Sin"});
  PlanOptions options;
  options.fallback = Fallback::Forbid;
  EXPECT_NE(make_plan(with_body("Scan"), {both, reference()}, options), nullptr);
}

TEST(Control, what_falls_back_inside_of_bodies_is_counted_and_told) {
  auto fake = std::make_shared<test::FakeDevice>(std::set<std::string>{"Add"});
  Session session(make_plan(with_body("Scan"), {fake, reference()}, {}));
  EXPECT_EQ(session.plan_info().fallback_nodes, 0U) << "nothing inside is planned yet";
  (void)session.run({{"count", Tensor::scalar<int64_t>(1)}, {"x", Tensor::from<float>({2}, {1, 2})}, {"rows", Tensor(TensorType{DType::F32, {3, 2}})}});
  const PlanInfo info = session.plan_info();
  EXPECT_EQ(info.fallback_nodes, 1U);
  EXPECT_THAT(info.fallback_summary, testing::HasSubstr("in Scan_0/body: 1 on reference, not fake:0: Sin"));
  EXPECT_THAT(info.placements, testing::Contains(testing::Field(&PlacementInfo::node, "Scan_0/body/Sin_1")));
}

TEST(Control, a_plan_that_is_only_read_knows_what_happens_in_bodies) {
  auto fake = std::make_shared<test::FakeDevice>(std::set<std::string>{"Add"});
  PlanOptions options;
  options.place_only = true;
  for (const std::string op : {"Loop", "Scan"}) {
    const PlanInfo info = plan_info(*make_plan(with_body(op), {fake, reference()}, options));
    EXPECT_EQ(info.fallback_nodes, 1U) << op;
    EXPECT_THAT(info.placements, testing::Contains(testing::Field(&PlacementInfo::state, "choice"))) << op << ": Add could run there";
  }
}

TEST(Control, a_trip_count_that_is_no_single_number_is_named) {
  ModelRunner runner(std::make_shared<const Graph>(with_body("Loop")), {reference()}, {});
  const NamedData inputs{{"count", Tensor(TensorType{DType::I64, Shape{0}})},
                         {"x", Tensor::from<float>({2}, {1, 2})},
                         {"rows", Tensor(TensorType{DType::F32, {3, 2}})}};
  try {
    (void)runner.run(inputs);
    ADD_FAILURE() << "it ran";
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
  }
}

TEST(Control, a_loop_whose_state_grows_runs_for_many_rounds) {
  Sketch body;
  (void)body.input("iteration", {}, DType::I64);
  const ValueId going = body.input("going", {}, DType::Bool);
  const ValueId state = body.input("state", {Shape::unknown});
  const ValueId more = body.constant(Tensor::from<float>({1}, {1}));
  const ValueId next = body.node("Concat", {state, more}, {{"axis", int64_t{0}}});
  const auto graph = std::make_shared<const Graph>(body.done({body.node("Identity", {going}), next}));
  Sketch sketch;
  const ValueId count = sketch.input("count", {}, DType::I64);
  const ValueId start = sketch.input("start", {1});
  const Graph whole = sketch.done({sketch.node("Loop", {count, no_value, start}, {{"body", graph}, {"captures", int64_t{0}}})});
  Session session(make_plan(whole, {reference()}, {}));
  const auto outputs = session.run({{"count", Tensor::scalar<int64_t>(40)}, {"start", Tensor::from<float>({1}, {1})}});
  EXPECT_EQ(outputs.begin()->second.tensor().shape(), (Shape{41}));
}

// A Loop without a trip count whose body gives back the condition it got, and its state as something to stack if that is wanted.
Graph endless(bool stacks) {
  Sketch body;
  (void)body.input("iteration", {}, DType::I64);
  const ValueId going = body.input("going", {}, DType::Bool);
  const ValueId state = body.input("state", {1 << 14});
  const ValueId next = body.node("Neg", {state});
  std::vector<ValueId> outputs{body.node("Identity", {going}), next};
  if (stacks) outputs.push_back(body.node("Abs", {state}));
  const auto graph = std::make_shared<const Graph>(body.done(outputs));
  Sketch sketch;
  const ValueId start = sketch.input("start", {1 << 14});
  const Attributes attributes{{"body", graph}, {"captures", int64_t{0}}};
  return sketch.done({sketch.node("Loop", {no_value, no_value, start}, attributes, stacks ? 2 : 1)});
}

// How a run of the graph ends.
Error end_of(const Graph& graph) {
  Session session(make_plan(graph, {reference()}, {}));
  try {
    (void)session.run({{"start", Tensor(TensorType{DType::F32, {1 << 14}})}});
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::Internal, "it ended by itself"};
}

TEST(Control, a_loop_without_end_meets_a_limit_that_can_be_set) {
  const int64_t before = loop_limit();
  set_loop_limit(25);
  const Error end = end_of(endless(false));
  set_loop_limit(before);
  EXPECT_EQ(end.kind(), ErrorKind::InvalidModel);
  EXPECT_THAT(end.what(), testing::AllOf(testing::HasSubstr("25 rounds"), testing::HasSubstr("Loop"), testing::HasSubstr("UNMOOR_LOOP_LIMIT")));
  EXPECT_EQ(parse_loop_limit("1000"), 1000);
  for (const char* text : {"", "0", "-5", "many", "5k"}) EXPECT_THROW((void)parse_loop_limit(text), Error) << text;
}

TEST(Control, what_a_loop_stacks_counts_as_it_grows) {
  const size_t before = memory_limit();
  set_memory_limit(memory_in_use() + (size_t{4} << 20));
  const Error end = end_of(endless(true));
  set_memory_limit(before);
  EXPECT_EQ(end.kind(), ErrorKind::OutOfMemory);
  EXPECT_THAT(end.what(), testing::HasSubstr("Loop"));
}

TEST(Control, a_run_stops_when_somebody_asks) {
  request_stop(SIGINT);
  const Error end = end_of(endless(false));
  request_stop(0);
  EXPECT_EQ(end.kind(), ErrorKind::Stopped);
  EXPECT_THAT(end.what(), testing::HasSubstr("SIGINT"));
}

}  // namespace
}  // namespace unmoor
