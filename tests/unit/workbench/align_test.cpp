#include "unmoor/workbench/align.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/unit/workbench/fake_runner.h"

namespace unmoor {
namespace {

using test::FakeRunner;
using testing::HasSubstr;

Tensor random_values(size_t count) {
  Tensor tensor(TensorType{DType::F32, Shape{static_cast<int64_t>(count)}});
  uint32_t state = 7;
  for (float& value : tensor.writable_span<float>()) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state) / 4e9F - 0.5F;
  }
  return tensor;
}

// Two runners that give `expected` and `actual` as their output y, which no kernel alone explains.
AlignResult aligned_outputs(const Tensor& expected, const Tensor& actual) {
  FakeRunner reference("reference");
  FakeRunner target("target");
  reference.results["y"] = expected;
  target.results["y"] = actual;
  for (FakeRunner* const each : {&reference, &target}) each->kernels.resize(1);
  return align(reference, target, {}, {});
}

TEST(Align, an_output_with_one_wrong_element_among_many_differs) {
  const Tensor expected = random_values(4000000);
  Tensor actual = expected.clone();
  actual.writable_span<float>()[12345] += 0.05F;
  const AlignResult result = aligned_outputs(expected, actual);
  EXPECT_LE(result.outputs.at(0).entire->rel_l2, output_limit(DType::F32)) << "the relative L2 error alone would let it pass";
  EXPECT_EQ(result.verdict, "differ");
}

TEST(Align, an_output_whose_errors_added_up_evenly_matches) {
  const Tensor expected = random_values(10000);
  Tensor actual = expected.clone();
  float sign = 1;
  for (float& value : actual.writable_span<float>()) value += (sign = -sign) * 2e-5F;
  const AlignResult result = aligned_outputs(expected, actual);
  EXPECT_GT(result.outputs.at(0).entire->over, 1);
  EXPECT_EQ(result.verdict, "match");
}

// A reference and a target with one kernel, `op`, between x and y.
struct Pair {
  FakeRunner reference{"reference"};
  FakeRunner target{"target"};

  Pair(const std::string& op, const Tensor& expected, const Tensor& actual) {
    for (FakeRunner* const each : {&reference, &target}) {
      const Tensor& y = each == &reference ? expected : actual;
      each->shown = {{{"y", y.type(), "node", op}, y}};
      each->results["y"] = expected;
      each->kernels = {{"node", op, "kernel", each->name(), {"x"}, {"y"}}};
      each->alone = {y};
    }
    target.planned.placements = {{"node", op, "target", "kernel", "native", {}, {}, {"inner"}}};
  }
  AlignResult run(const AlignOptions& options = {}) { return align(reference, target, {{"x", Tensor::from<float>({1}, {1})}}, options); }
};

TEST(Align, a_wrong_kernel_is_named) {
  Pair pair("Relu", Tensor::from<float>({2}, {1, 2}), Tensor::from<float>({2}, {1, 2.1F}));
  const AlignResult result = pair.run();
  EXPECT_EQ(result.verdict, "differ");
  EXPECT_EQ(result.first_divergent, "node");
}

TEST(Align, an_honest_quantising_kernel_may_round_a_tie_the_other_way) {
  std::vector<uint8_t> steps(100, 5);
  const Tensor expected = Tensor::from<uint8_t>({100}, steps);
  steps[7] = 6;
  EXPECT_EQ(Pair("QuantizeLinear", expected, Tensor::from<uint8_t>({100}, steps)).run().verdict, "match");
  EXPECT_EQ(Pair("Add", expected, Tensor::from<uint8_t>({100}, steps)).run().verdict, "differ");
  steps[7] = 9;
  EXPECT_EQ(Pair("QuantizeLinear", expected, Tensor::from<uint8_t>({100}, steps)).run().verdict, "differ");
}

// Of a target that shows nothing inside of y = exp(x): how often it ran.
size_t runs_of_exp(double error) {
  Graph model;
  const ValueId x = model.add_input("x", TensorType{DType::F32, Shape{64}});
  const ValueId y = model.add_value({"y", TensorType{DType::F32, Shape{64}}, std::nullopt, {}});
  Node node;
  node.op = "Exp";
  node.name = "node";
  node.inputs = {x};
  node.outputs = {y};
  model.add_node(std::move(node));
  model.mark_output(y, "y");
  const Tensor given = random_values(64);
  Tensor exact = given.clone();
  for (float& value : exact.writable_span<float>()) value = std::exp(value);
  Tensor found = exact.clone();
  for (float& value : found.writable_span<float>()) value *= static_cast<float>(1 + error);
  class Counted : public FakeRunner {
   public:
    using FakeRunner::FakeRunner;
    NamedData run(const NamedData& inputs, Observer* observer) override {
      ++runs;
      return FakeRunner::run(inputs, observer);
    }
    size_t runs = 0;
  };
  FakeRunner reference("reference");
  Counted target("target");
  reference.results["y"] = exact;
  target.results["y"] = found;
  AlignOptions options;
  options.model = &model;
  const AlignResult result = align(reference, target, {{"x", given}}, options);
  EXPECT_EQ(result.verdict == "differ", error > 0);
  return target.runs;
}

TEST(Align, a_run_that_noise_does_not_explain_is_made_again_with_more_noise_runs) { EXPECT_EQ(runs_of_exp(1e-4), 2 * runs_of_exp(0)); }

TEST(Align, a_node_or_an_operator_that_is_not_there_is_no_match) {
  const Tensor y = Tensor::from<float>({2}, {1, 2});
  Pair pair("Relu", y, y);
  EXPECT_THROW((void)pair.run({.nodes = {"nodr"}}), Error);
  EXPECT_THROW((void)pair.run({.ops = {"Rely"}}), Error);
  for (const std::string node : {"node", "inner"}) {
    const AlignResult result = pair.run({.nodes = {node}});
    EXPECT_TRUE(result.values.at(0).single.has_value()) << node << ": a fused step stands for the nodes in it";
  }
}

TEST(Align, two_dumps_name_the_first_value_that_differs) {
  FakeRunner reference("dump a");
  FakeRunner target("dump b");
  for (FakeRunner* const each : {&reference, &target}) {
    const float wrong = each == &target ? 5 : 2;
    each->shown = {{{"a", TensorType{}, "", ""}, Tensor::from<float>({1}, {1})}, {{"b", TensorType{}, "", ""}, Tensor::from<float>({1}, {wrong})}};
    for (const auto& [info, data] : each->shown) each->results[info.name] = data;
  }
  const AlignResult result = align(reference, target, {}, {});
  EXPECT_EQ(result.verdict, "differ");
  EXPECT_EQ(result.first_divergent, "b");
  EXPECT_FALSE(result.kernels_alone);
  EXPECT_THAT(result.text(), HasSubstr("first divergent value: b"));
  EXPECT_THAT(result.text(), testing::Not(HasSubstr("kernels")));
}

TEST(Align, an_output_that_the_target_does_not_show_is_no_match) {
  const Tensor y = Tensor::from<float>({2}, {1, 2});
  Pair pair("Relu", y, y);
  pair.target.results.clear();
  const AlignResult result = pair.run();
  EXPECT_EQ(result.verdict, "differ");
  EXPECT_EQ(result.outputs.at(0).entire->problem, "not shown");
}

TEST(Align, nothing_in_common_is_an_error) {
  FakeRunner reference("dump a");
  FakeRunner target("dump b");
  reference.results["a"] = Tensor::from<float>({1}, {1});
  target.results["b"] = Tensor::from<float>({1}, {1});
  EXPECT_THROW((void)align(reference, target, {}, {}), Error);
}

TEST(Align, what_was_not_run_alone_and_what_fell_back_is_said) {
  const Tensor y = Tensor::from<float>({2}, {1, 2});
  Pair pair("Relu", y, y);
  pair.target.shown.push_back({{"inside", y.type(), "loop/body/Sin", "Sin"}, y});
  pair.target.planned.fallback_nodes = 1;
  const AlignResult result = pair.run();
  EXPECT_EQ(result.verdict, "match");
  EXPECT_THAT(result.text(), HasSubstr("1 of 2 values were not run alone"));
  EXPECT_THAT(result.text(), HasSubstr("1 node fell back"));
  EXPECT_EQ(result.to_json().at("fallback_nodes"), 1);
}

}  // namespace
}  // namespace unmoor
