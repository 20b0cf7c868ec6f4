#include "unmoor/workbench/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/fake_device.h"
#include "tests/unit/passes/sketch.h"
#include "unmoor/backends/reference/reference.h"

namespace unmoor {
namespace {

using test::FakeDevice;
using test::Sketch;

ScannedPlatform scanned(const Graph& graph, const std::set<std::string>& ops, const ScanOptions& scan_options = {}) {
  PlanOptions options;
  options.passes.fuse = false;
  options.place_only = true;
  const auto plan = make_plan(graph, {std::make_shared<FakeDevice>(ops), make_reference_backend()->open(0)}, options);
  return scan_plan(graph, with_shapes(graph, {}), plan_info(*plan), "fake:0", scan_options);
}

std::map<std::string, std::string> priorities(const ScannedPlatform& platform) {
  std::map<std::string, std::string> found;
  for (const ScannedNode& node : platform.nodes) found[node.node] = node.priority;
  return found;
}

TEST(Scan, what_lies_between_heavy_nodes_is_p0_and_the_rest_p1) {
  Sketch sketch;
  const ValueId x = sketch.input("x", {1, 512});
  const ValueId before = sketch.node("Softsign", {x});
  const ValueId first = sketch.node("MatMul", {before, sketch.weights({512, 512})});
  const ValueId between = sketch.node("Softsign", {first});
  const ValueId second = sketch.node("MatMul", {between, sketch.weights({512, 512})});
  const auto found = priorities(scanned(sketch.done({sketch.node("Softsign", {second})}), {"MatMul"}));
  EXPECT_EQ(found.at("Softsign_0"), "P1");
  EXPECT_EQ(found.at("Softsign_2"), "P0");
  EXPECT_EQ(found.at("Softsign_4"), "P1");
  EXPECT_EQ(found.at("MatMul_1"), "");
}

TEST(Scan, a_heavy_node_that_is_refused_is_p0_even_alone) {
  Sketch sketch;
  const ValueId x = sketch.input("x", {1, 512});
  const auto found = priorities(scanned(sketch.done({sketch.node("MatMul", {x, sketch.weights({512, 512})})}), {}));
  EXPECT_EQ(found.at("MatMul_0"), "P0");
}

TEST(Scan, nodes_with_a_share_of_the_arithmetic_are_heavy) {
  // No matrix product: what takes the time is light by name. The small node in front of it is not on a path between such nodes.
  Sketch sketch;
  const ValueId x = sketch.input("x", {1});
  const ValueId small = sketch.node("Softsign", {x});
  const ValueId wide = sketch.node("Expand", {small, sketch.ints({10, 100})});
  const ValueId first = sketch.node("Tanh", {wide});
  const ValueId turned = sketch.node("Transpose", {first});
  const ValueId second = sketch.node("Tanh", {turned});
  const auto found = priorities(scanned(sketch.done({sketch.node("Shape", {second}), second}), {"Expand", "Tanh"}));
  EXPECT_EQ(found.at("Softsign_0"), "P1");
  EXPECT_EQ(found.at("Transpose_3"), "P0");
}

TEST(Scan, bodies_know_what_lies_around_them) {
  const auto graph = [](bool heavy_around) {
    Sketch body;
    const ValueId inner = body.input("captured", {1, 512});
    const auto branch = std::make_shared<const Graph>(body.done({body.node("Softsign", {inner})}));
    Sketch sketch;
    const ValueId condition = sketch.input("condition", {}, DType::Bool);
    ValueId value = sketch.input("x", {1, 512});
    if (heavy_around) value = sketch.node("MatMul", {value, sketch.weights({512, 512})});
    value = sketch.node("If", {condition, value}, {{"then_branch", branch}, {"else_branch", branch}, {"captures", int64_t{1}}});
    return sketch.done({sketch.node("MatMul", {value, sketch.weights({512, 512})})});
  };
  EXPECT_EQ(priorities(scanned(graph(true), {"MatMul"})).at("If_1/then_branch/Softsign_0"), "P0");
  EXPECT_EQ(priorities(scanned(graph(false), {"MatMul"})).at("If_0/then_branch/Softsign_0"), "P1");
}

TEST(Scan, counts_and_effort_are_of_the_nodes_asked_for) {
  Sketch sketch;
  const ValueId x = sketch.input("x", {4});
  const Graph graph = sketch.done({sketch.node("Tan", {sketch.node("Softsign", {sketch.node("Relu", {x})})})});
  const ScannedPlatform all = scanned(graph, {"Relu"});
  EXPECT_EQ(all.fallback, 2U);
  const ScannedPlatform one = scanned(graph, {"Relu"}, {.nodes = {"Relu_0"}});
  EXPECT_EQ(one.nodes.size(), 1U);
  EXPECT_EQ(one.native, 1U);
  EXPECT_EQ(one.fallback + one.p0 + one.p1, 0U);
  EXPECT_EQ(one.effort_high, 0);
  EXPECT_EQ(scanned(graph, {"Relu"}, {.ops = {"Tan"}}).fallback, 1U);
  EXPECT_THROW((void)scanned(graph, {"Relu"}, {.nodes = {"Relu_7"}}), Error);
  EXPECT_THROW((void)scanned(graph, {"Relu"}, {.ops = {"Rely"}}), Error);
}

TEST(Scan, the_version_is_that_of_the_device) {
  Sketch sketch;
  const Graph graph = sketch.done({sketch.node("Relu", {sketch.input("x", {4})})});
  PlanInfo plan;
  plan.devices = {"acme:0"};
  plan.versions = {{{"driver", "31"}, {"runtime", "4"}}};
  EXPECT_EQ(scan_plan(graph, graph, plan, "acme:0", {}).version, "driver 31, runtime 4");
  plan.versions = {{}};
  EXPECT_EQ(scan_plan(graph, graph, plan, "cpu", {.own_version = "unmoor 1"}).version, "unmoor 1");
}

TEST(Scan, nodes_of_a_body_that_could_not_be_planned_are_unknown) {
  Sketch body;
  const auto branch = std::make_shared<const Graph>(body.done({body.node("Relu", {body.input("captured", {4})})}));
  Sketch sketch;
  const ValueId condition = sketch.input("condition", {}, DType::Bool);
  const ValueId x = sketch.input("x", {4});
  const Graph graph = sketch.done({sketch.node("If", {condition, x}, {{"then_branch", branch}, {"else_branch", branch}, {"captures", int64_t{1}}})});
  PlanInfo plan;
  plan.devices = {"acme:0"};
  plan.placements = {{"If_0", "If", "cpu", "runtime", "host"}, {"If_0/then_branch", "If", "cpu", "", "unknown", {{"acme:0", "", "dynamic", "why"}}}};
  const ScannedPlatform found = scan_plan(graph, graph, plan, "acme:0", {});
  const auto node = std::ranges::find(found.nodes, "If_0/then_branch/Relu_0", &ScannedNode::node);
  ASSERT_NE(node, found.nodes.end());
  EXPECT_EQ(node->state, "unknown");
  EXPECT_EQ(node->detail, "why");
  EXPECT_EQ(found.unknown, 1U);
}

}  // namespace
}  // namespace unmoor
