#include "unmoor/runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/fake_device.h"
#include "tests/unit/passes/sketch.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/reference/reference.h"

namespace unmoor {
namespace {

using test::FakeDevice;
using test::Sketch;
using testing::HasSubstr;

std::shared_ptr<Device> reference() { return make_reference_backend()->open(0); }

Tensor ramp(Shape shape, float start = 0) {
  Tensor tensor(TensorType{DType::F32, std::move(shape)});
  for (float& value : tensor.writable_span<float>()) value = start += 0.25F;
  return tensor;
}

std::vector<double> values_of(const NamedData& outputs, const std::string& name) { return doubles(outputs.at(name).tensor()); }

// Two products with light operators between and after them.
Graph small_net() {
  Sketch sketch;
  const ValueId x = sketch.input("x", {4, 8});
  const ValueId a = sketch.node("MatMul", {x, sketch.weights({8, 8})});
  const ValueId b = sketch.node("Softplus", {a});
  const ValueId c = sketch.node("Sin", {b});
  const ValueId d = sketch.node("MatMul", {c, sketch.weights({8, 4})});
  const ValueId e = sketch.node("Add", {d, sketch.node("Cos", {d})});
  return sketch.done({e, c});
}

PlanOptions unfused() {
  PlanOptions options;
  options.passes.fuse = false;
  return options;
}

NamedData run_on(const Graph& graph, std::vector<std::shared_ptr<Device>> devices, const NamedData& inputs, const PlanOptions& options = unfused()) {
  return Session(make_plan(graph, std::move(devices), options)).run(inputs);
}

void expect_near(const NamedData& expected, const NamedData& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto& [name, data] : expected) {
    const auto e = doubles(data.tensor());
    const auto a = values_of(actual, name);
    ASSERT_EQ(e.size(), a.size()) << name;
    for (size_t i = 0; i < e.size(); ++i) EXPECT_NEAR(e[i], a[i], 1e-5 * (1 + std::fabs(e[i]))) << name << " at " << i;
  }
}

TEST(Plan, forbid_lists_every_refused_node_before_anything_runs) {
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Add"}, std::set<std::string>{"MatMul_3"});
  PlanOptions options = unfused();
  options.fallback = Fallback::Forbid;
  try {
    (void)make_plan(small_net(), {fake, reference()}, options);
    FAIL() << "the plan was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    for (const char* const part : {"Softplus_1", "Sin_2", "Cos_4", "MatMul_3", "the test refuses MatMul_3", "no kernel for Sin"}) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  EXPECT_EQ(fake->counters.runs, 0U);
}

TEST(Plan, report_keeps_every_refusal_and_says_them_once_a_reason) {
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Add", "Cos"}, std::set<std::string>{"MatMul_3"});
  const auto plan = make_plan(small_net(), {fake, reference()}, unfused());
  EXPECT_EQ(plan->fallback_count(), 3U);
  EXPECT_THAT(plan->fallback_summary(), HasSubstr("attribute: the test refuses MatMul_3"));
  EXPECT_THAT(plan->fallback_summary(), HasSubstr("no-kernel"));
}

TEST(Plan, values_cross_between_devices_by_copies_that_are_counted) {
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Add", "Cos", "Softplus"});
  const auto plan = make_plan(small_net(), {fake, reference()}, unfused());
  // x in, the Softplus out, the Sin in, and the sum out.
  EXPECT_EQ(plan->copy_count(), 4U);
  EXPECT_EQ(plan->copied_bytes(), 4U * (32 + 32 + 32 + 16));
  const NamedData inputs{{"x", ramp({4, 8})}};
  expect_near(run_on(small_net(), {reference()}, inputs), Session(plan).run(inputs));
}

TEST(Plan, a_light_node_between_refused_ones_stays_with_them) {
  Sketch sketch;
  const ValueId x = sketch.input("x", {4});
  const ValueId a = sketch.node("Sin", {sketch.node("Cos", {x})});
  const Graph graph = sketch.done({sketch.node("Tan", {a})});
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"Sin"});
  const auto plan = make_plan(graph, {fake, reference()}, unfused());
  EXPECT_EQ(plan->copy_count(), 0U);
  ASSERT_EQ(plan->placements.size(), 3U);
  EXPECT_EQ(plan->placements[1].state, State::Choice);
  EXPECT_EQ(plan->fallback_count(), 2U);
}

TEST(Plan, under_forbid_a_device_keeps_every_node_that_it_takes) {
  Sketch body;
  const ValueId inner = body.input("captured", {4});
  const auto branch = std::make_shared<const Graph>(body.done({body.node("Sin", {inner})}));
  Sketch sketch;
  const ValueId condition = sketch.input("condition", {}, DType::Bool);
  const ValueId x = sketch.input("x", {4});
  const auto choose = [&](ValueId from) {
    return sketch.node("If", {condition, from}, {{"then_branch", branch}, {"else_branch", branch}, {"captures", int64_t{1}}});
  };
  const Graph graph = sketch.done({choose(sketch.node("Cos", {choose(x)}))});
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"Sin", "Cos"});
  PlanOptions options = unfused();
  EXPECT_EQ(make_plan(graph, {fake, reference()}, options)->placements.at(1).state, State::Choice);
  options.fallback = Fallback::Forbid;
  EXPECT_EQ(make_plan(graph, {fake, reference()}, options)->placements.at(1).state, State::Native);
}

TEST(Plan, an_operator_is_expanded_on_its_device_before_it_falls_back) {
  Sketch sketch;
  const Graph graph = sketch.done({sketch.node("HardSwish", {sketch.input("x", {16})})});
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"Mul", "Add", "Div", "Clip", "Min", "Max", "HardSigmoid"});
  const auto plan = make_plan(graph, {fake, reference()}, unfused());
  EXPECT_EQ(plan->fallback_count(), 0U);
  for (const Placement& placement : plan->placements) EXPECT_EQ(placement.state, State::Expanded);
  const NamedData inputs{{"x", ramp({16}, -4)}};
  expect_near(run_on(graph, {reference()}, inputs), Session(plan).run(inputs));
}

TEST(Plan, an_unknown_operator_is_named) {
  Sketch sketch;
  const Graph graph = sketch.done({sketch.node("acme:Fold", {sketch.input("x", {4})})});
  try {
    (void)make_plan(graph, {reference()}, unfused());
    FAIL() << "the plan was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_THAT(error.what(), HasSubstr("acme:Fold 'acme:Fold_0'"));
  }
}

TEST(Session, every_fault_of_a_device_is_an_error_and_the_next_run_works) {
  const NamedData inputs{{"x", ramp({4, 8})}};
  const NamedData expected = run_on(small_net(), {reference()}, inputs);
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Add", "Cos"});
  Session session(make_plan(small_net(), {fake, reference()}, unfused()));
  for (std::atomic<int>* fault : {&fake->faults.copies, &fake->faults.kernels}) {
    for (int at = 0;; ++at) {
      *fault = at;
      try {
        (void)session.run(inputs);
        break;  // Past the last one.
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Device);
      }
      *fault = -1;
      expect_near(expected, session.run(inputs));
    }
    *fault = -1;
  }
}

TEST(Session, a_failed_allocation_ends_planning_with_an_error) {
  for (int at = 0; at < 3; ++at) {
    auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Add", "Cos"});
    fake->faults.allocations = at;
    EXPECT_THROW(Session(make_plan(small_net(), {fake, reference()}, unfused())), Error) << at;
  }
}

TEST(Session, outputs_that_the_caller_keeps_stay_as_they_are) {
  Session session(make_plan(small_net(), {make_cpu_backend()->open(0)}, {}));
  const NamedData first = session.run({{"x", ramp({4, 8})}});
  std::map<std::string, std::vector<double>> before;
  for (const auto& [name, data] : first) before[name] = doubles(data.tensor());
  (void)session.run({{"x", ramp({4, 8}, 3)}});
  for (const auto& [name, values] : before) EXPECT_EQ(values_of(first, name), values) << name;
}

TEST(Session, an_input_that_does_not_fit_is_named) {
  Session session(make_plan(small_net(), {reference()}, unfused()));
  const auto words = [&](const NamedData& inputs) {
    try {
      (void)session.run(inputs);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(words({}), HasSubstr("'x' was not given"));
  EXPECT_THAT(words({{"x", ramp({4, 7})}}), HasSubstr("has shape [4,7], not [4,8]"));
  EXPECT_THAT(words({{"x", ramp({4, 8})}, {"y", ramp({1})}}), HasSubstr("no input 'y'"));
  EXPECT_THAT(words({{"x", Tensor(TensorType{DType::I64, {4, 8}})}}), HasSubstr("is int64, not float32"));
}

// A host whose kernels give one element more than the operator does.
class WrongHost : public FakeDevice {
 public:
  WrongHost() : FakeDevice({}) {
    info_.id = "wrong";
    info_.host = true;
    Kernel kernel;
    kernel.name = "wrong";
    kernel.supports = [](const OpCall&) { return yes(); };
    kernel.evaluate = [](const OpCall& call, std::span<const Data>, Outputs& out) {
      Shape shape = call.output(0).shape;
      shape.set(0, shape[0] + 1);
      out.set(0, Tensor(TensorType{call.output(0).dtype, shape}));
    };
    table_.set_generic(std::move(kernel));
  }
  std::shared_ptr<Buffer> allocate(size_t bytes) override { return make_host_buffer(bytes); }
  std::unique_ptr<Stream> make_stream() override { return make_host_stream(); }
  const DeviceInfo& info() const override { return info_; }
  const KernelTable& kernels() const override { return table_; }

 private:
  DeviceInfo info_;
  KernelTable table_;
};

TEST(Session, a_kernel_that_gives_another_shape_than_was_planned_is_an_error) {
  Sketch sketch;
  const ValueId x = sketch.input("x", {4});
  const Graph graph = sketch.done({sketch.node("Cos", {sketch.node("Sin", {x})})});
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"Cos"});
  Session session(make_plan(graph, {fake, std::make_shared<WrongHost>()}, unfused()));
  try {
    (void)session.run({{"x", ramp({4})}});
    ADD_FAILURE() << "it ran";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("was planned as float32[4]"));
  }
}

TEST(Session, sessions_of_one_plan_run_at_the_same_time) {
  const auto plan = make_plan(small_net(), {make_cpu_backend()->open(0)}, {});
  const NamedData inputs{{"x", ramp({4, 8})}};
  const NamedData expected = Session(plan).run(inputs);
  std::vector<std::thread> threads;
  std::vector<NamedData> results(4);
  for (NamedData& result : results) {
    threads.emplace_back([&] {
      Session session(plan);
      for (int i = 0; i < 20; ++i) result = session.run(inputs);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const NamedData& result : results) expect_near(expected, result);
}

TEST(Session, a_step_can_be_run_alone) {
  Session session(make_plan(small_net(), {reference()}, unfused()));
  const auto steps = session.steps();
  const auto found = std::find_if(steps.begin(), steps.end(), [](const StepInfo& step) { return step.node == "Sin_2"; });
  ASSERT_NE(found, steps.end());
  const auto results = session.run_step(static_cast<size_t>(found - steps.begin()), {{found->inputs.at(0), ramp({4, 8})}});
  EXPECT_NEAR(doubles(results.at(0).tensor())[0], std::sin(0.25), 1e-7);
}

class Names : public Observer {
 public:
  bool wants(const ValueInfo&) override { return true; }
  void on_value(const ValueInfo& info, const Data&) override { names.push_back(info.name); }
  bool wants_steps() override { return true; }
  void on_step(const StepTrace& step) override { steps.push_back(step.node); }
  std::vector<std::string> names;
  std::vector<std::string> steps;
};

TEST(Session, an_observer_sees_every_value_and_step_also_on_a_device) {
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Add", "Cos"});
  Session session(make_plan(small_net(), {fake, reference()}, unfused()));
  Names names;
  (void)session.run({{"x", ramp({4, 8})}}, &names);
  EXPECT_THAT(names.names, testing::ElementsAre("MatMul_0:0", "Softplus_1:0", "Sin_2:0", "MatMul_3:0", "Cos_4:0", "Add_5:0"));
  EXPECT_THAT(names.steps, testing::IsSupersetOf({"MatMul_0", "Softplus_1", "Sin_2", "MatMul_3", "Cos_4", "Add_5"}));
}

// Softplus and Sin on the host, whose arena gives both the same place; the product on the device.
Graph reusing_net() {
  Sketch sketch;
  const ValueId x = sketch.input("x", {4, 8});
  const ValueId product = sketch.node("MatMul", {sketch.node("Softplus", {x}), sketch.weights({8, 8})});
  const ValueId sine = sketch.node("Exp", {sketch.node("Sin", {x})});
  return sketch.done({sketch.node("Add", {product, sine})});
}

TEST(Session, a_device_may_do_its_uploads_late) {
  for (const Graph& graph : {small_net(), reusing_net()}) {
    auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Cos"});
    fake->late = true;
    Session session(make_plan(graph, {fake, reference()}, unfused()));
    for (const float start : {0.0F, -3.0F}) {
      Tensor x = ramp({4, 8}, start);
      const NamedData expected = run_on(graph, {reference()}, {{"x", x.clone()}});
      const NamedData found = session.run({{"x", x}});
      x.writable_span<float>()[0] = 100;  // It is the caller's again.
      expect_near(expected, found);
    }
  }
}

TEST(Session, inputs_are_uploaded_without_waiting_for_the_device) {
  Sketch sketch;
  const ValueId x = sketch.input("x", {4, 8});
  const ValueId y = sketch.input("y", {4, 8});
  const ValueId z = sketch.input("z", {4, 8});
  const Graph graph = sketch.done({sketch.node("Add", {sketch.node("Add", {x, y}), z})});
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"Add"});
  Session session(make_plan(graph, {fake, reference()}, unfused()));
  fake->counters.waits = 0;
  (void)session.run({{"x", ramp({4, 8})}, {"y", ramp({4, 8})}, {"z", ramp({4, 8})}});
  EXPECT_EQ(fake->counters.uploads, 3U);
  EXPECT_EQ(fake->counters.waits, 1U);  // For the result.
}

TEST(ModelRunner, plans_of_one_model_share_the_weights_on_the_device) {
  Sketch sketch;
  Shape shape{1, 8};
  shape.set_symbol(0, "batch");
  const ValueId x = sketch.input("x", shape);
  const ValueId a = sketch.node("MatMul", {x, sketch.weights({8, 8})});
  const auto graph = std::make_shared<const Graph>(sketch.done({sketch.node("MatMul", {sketch.node("Cos", {a}), sketch.weights({8, 8})})}));
  auto fake = std::make_shared<FakeDevice>(std::set<std::string>{"MatMul", "Cos"});
  ModelRunner runner(graph, {fake, reference()}, unfused());
  (void)runner.session_for({{"x", ramp({2, 8})}});
  EXPECT_EQ(fake->counters.uploads, 2U);
  EXPECT_EQ(fake->counters.waits, 1U);  // For both together.
  (void)runner.session_for({{"x", ramp({3, 8})}});
  EXPECT_EQ(fake->counters.uploads, 2U);
  for (const int64_t batch : {2, 3}) {
    const NamedData inputs{{"x", ramp({batch, 8})}};
    expect_near(ModelRunner(graph, {reference()}, unfused()).run(inputs), runner.run(inputs));
  }
}

TEST(Session, widens_what_sequences_and_maps_hold_for_a_plan_in_float64) {
  const auto element = std::make_shared<const Type>(TensorType{DType::F32, {2}});
  Graph graph;
  const ValueId list = graph.add_input("list", SequenceType{element});
  const ValueId map = graph.add_input("map", MapType{DType::I64, std::make_shared<const Type>(TensorType{DType::F32, {}})});
  const ValueId at = graph.add_constant("at", Tensor::scalar<int64_t>(1));
  const ValueId item = graph.add_value({"item", TensorType{DType::F32, Shape::of_unknown_rank()}, {}, {}});
  const ValueId vector = graph.add_value({"vector", TensorType{DType::F32, Shape::of_unknown_rank()}, {}, {}});
  graph.add_node({"a", "SequenceAt", {list, at}, {item}, {}, {}});
  graph.add_node({"b", "ai.onnx.ml:DictVectorizer", {map}, {vector}, {{"int64_vocabulary", std::vector<int64_t>{7, 8}}}, {}});
  graph.mark_output(item, "item");
  graph.mark_output(vector, "vector");
  PlanOptions wide;
  wide.passes.widen_to_float64 = true;
  const NamedData inputs{{"list", Sequence{{ramp({2}), ramp({2}, 5)}}}, {"map", Map{Tensor::from<int64_t>({1}, {8}), {Tensor::scalar(0.5F)}}}};
  const NamedData outputs = Session(make_plan(graph, {reference()}, wide)).run(inputs);
  EXPECT_EQ(outputs.at("item").tensor().dtype(), DType::F64);
  EXPECT_EQ(values_of(outputs, "item"), (std::vector<double>{5.25, 5.5}));
  EXPECT_EQ(values_of(outputs, "vector"), (std::vector<double>{0, 0.5}));
}

TEST(ModelRunner, plans_once_for_each_set_of_shapes) {
  Sketch sketch;
  Shape shape{1, 4};
  shape.set_symbol(0, "batch");
  const ValueId x = sketch.input("x", shape);
  const auto graph = std::make_shared<const Graph>(sketch.done({sketch.node("Relu", {x})}));
  ModelRunner runner(graph, {reference()}, {});
  const Session* const first = &runner.session_for({{"x", ramp({2, 4})}});
  const Session* const second = &runner.session_for({{"x", ramp({3, 4})}});
  EXPECT_NE(first, second);
  EXPECT_EQ(first, &runner.session_for({{"x", ramp({2, 4}, 9)}}));
  EXPECT_EQ(runner.run({{"x", ramp({5, 4})}}).begin()->second.tensor().shape(), (Shape{5, 4}));
}

// Images with channels last on the way, and values of both layouts at the rims.
Graph image_net() {
  Sketch s;
  const ValueId x = s.input("x", {1, 3, 9, 12});
  ValueId y = s.node("Conv", {x, s.weights({8, 3, 3, 3})});
  y = s.node("MaxPool", {y}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  const ValueId deep = s.node("Tile", {y, s.ints({1, 1, 2, 1})});  // Stays in the file's layout.
  y = s.node("Mul", {y, s.node("Sigmoid", {s.node("GlobalAveragePool", {y})})});
  y = s.node("Conv", {y, s.weights({16, 8, 1, 1})});
  return s.done({deep, y});
}

class Recorder : public Observer {
 public:
  bool wants(const ValueInfo&) override { return true; }
  void on_value(const ValueInfo& info, const Data& data) override {
    EXPECT_TRUE(values.emplace(info.name, data.tensor().clone()).second) << info.name << " is shown twice";
    EXPECT_EQ(to_text(info.type), to_text(type_of(data))) << info.name;
  }
  NamedData values;
};

TEST(Session, values_are_shown_once_and_in_the_files_layout_whatever_a_device_prefers) {
  const NamedData inputs{{"x", test::random_tensor({DType::F32, {1, 3, 9, 12}}, 5)}};
  Recorder wanted;
  Recorder found;
  Session(make_plan(image_net(), {reference()}, unfused())).run(inputs, &wanted);
  Session session(make_plan(image_net(), {make_cpu_backend()->open(0)}, {}));
  session.run(inputs, &found);
  EXPECT_GE(found.values.size(), 6U);
  for (const auto& [name, data] : found.values) expect_near({{name, wanted.values.at(name)}}, {{name, data}});
  const auto values = session.plan().graph.values();
  EXPECT_TRUE(std::ranges::any_of(values, [](const Value& value) { return !value.origin.permutation.empty(); })) << "nothing was moved";
}

TEST(Session, a_device_can_be_told_to_keep_the_files_layout) {
  const auto cpu = make_cpu_backend()->open(0);
  EXPECT_THROW(cpu->set_option("channels_last", "maybe"), Error);
  EXPECT_THROW(cpu->set_option("channels", "off"), Error);
  cpu->set_option("channels_last", "off");
  const auto plan = make_plan(image_net(), {cpu}, {});
  EXPECT_TRUE(std::ranges::all_of(plan->graph.values(), [](const Value& value) { return value.origin.permutation.empty(); }));
}

TEST(Session, steps_alone_take_and_give_values_in_the_files_layout) {
  NamedData known{{"x", test::random_tensor({DType::F32, {1, 3, 9, 12}}, 5)}};
  Recorder wanted;
  Session(make_plan(image_net(), {reference()}, unfused())).run(known, &wanted);
  known.merge(NamedData(wanted.values));
  Session session(make_plan(image_net(), {make_cpu_backend()->open(0)}, {}));
  const auto steps = session.steps();
  size_t alone = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].outputs.empty()) continue;  // A copy, or a change of layout.
    ++alone;
    expect_near({{"y", known.at(steps[i].outputs[0])}}, {{"y", session.run_step(i, known).at(0)}});
  }
  EXPECT_EQ(alone, 7U);
}

}  // namespace
}  // namespace unmoor
