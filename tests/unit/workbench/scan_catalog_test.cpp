#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/unit/passes/sketch.h"
#include "unmoor/base/file.h"
#include "unmoor/catalog/catalog.h"
#include "unmoor/workbench/scan.h"
#include "unmoor/workbench/scan_nodes.h"

namespace unmoor {
namespace {

using nlohmann::json;
using test::Sketch;

// A graph with every node in opset 20, on a platform that the test makes up.
struct Made {
  Graph graph;
  TemporaryFolder folder;

  explicit Made(Graph model, const json& ops, const json& more = json::object()) : graph(std::move(model)) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) graph.mutable_node(NodeId{static_cast<uint32_t>(i)}).origin.opset = 20;
    json file{{"schema", 1},
              {"platform", "acme"},
              {"version", "2"},
              {"vocabulary", "onnx"},
              {"sources", {"made up"}},
              {"absent", "unsupported"},
              {"ops", ops},
              {"types", {{"float32"}, {"float16"}}}};
    file.update(more);
    write_file(folder.path() + "/acme.json", file.dump());
  }
  ScannedPlatform scanned(const ScanOptions& options = {}) const {
    const Graph typed = with_shapes(graph, {});
    const FileNodes nodes(graph, typed);
    return scan_catalog(nodes, Catalog(folder.path()), {"acme"}, options).at(0);
  }
};

const json yes = {{{"since", 1}}};

Graph three(const std::string& between = "Softsign") {
  Sketch sketch;
  const ValueId x = sketch.input("x", {2, 8});
  const ValueId first = sketch.node("MatMul", {x, sketch.weights({8, 8})});
  const ValueId second = sketch.node(between, {first});
  return sketch.done({sketch.node("MatMul", {second, sketch.weights({8, 8})})});
}

const ScannedNode& node(const ScannedPlatform& platform, const std::string& name) {
  const auto found = std::ranges::find(platform.nodes, name, &ScannedNode::node);
  EXPECT_NE(found, platform.nodes.end()) << name;
  return *found;
}

TEST(ScanCatalog, states_add_up_and_an_expansion_counts_when_all_parts_are_taken) {
  const Made parts(three("Mish"), {{"MatMul", yes}, {"Softplus", yes}, {"Tanh", yes}, {"Mul", yes}});
  const auto found = parts.scanned();
  EXPECT_EQ(found.native + found.constrained + found.expanded + found.fallback + found.unsupported + found.unknown,
            found.nodes.size());
  EXPECT_EQ(node(found, "Mish_1").state, "expanded");
  EXPECT_EQ(node(found, "Mish_1").priority, "P2");
  EXPECT_EQ(node(found, "Mish_1").form, "rewrite");
  EXPECT_EQ(node(found, "MatMul_0").state, "native");
  const Made lacking(three("Mish"), {{"MatMul", yes}, {"Tanh", yes}});
  EXPECT_EQ(node(lacking.scanned(), "Mish_1").state, "unsupported");
  EXPECT_EQ(node(lacking.scanned(), "Mish_1").priority, "P0");
}

TEST(ScanCatalog, what_is_not_listed_in_an_incomplete_list_is_unknown_and_no_issue) {
  const auto found = Made(three(), {{"MatMul", yes}}, {{"absent", "unknown"}}).scanned();
  EXPECT_EQ(node(found, "Softsign_1").state, "unknown");
  EXPECT_EQ(node(found, "Softsign_1").priority, "");
  EXPECT_EQ(found.p0 + found.p1 + found.p2, 0U);
  EXPECT_EQ(found.unsupported, 0U);
}

TEST(ScanCatalog, a_cast_that_helps_is_a_known_rewrite) {
  const json halves = {{{"since", 1}, {"dtypes", {{"T", 1}}}, {"in", {"T", "T"}}, {"out", {"T"}}}};
  Sketch sketch;
  const ValueId x = sketch.input("x", {2, 8}, DType::BF16);
  const auto found = Made(sketch.done({sketch.node("Relu", {x})}), {{"Relu", halves}}).scanned();
  EXPECT_EQ(found.nodes[0].reason, "dtype");
  EXPECT_EQ(found.nodes[0].priority, "P2");
  EXPECT_NE(found.nodes[0].advice.find("float16"), std::string::npos);
  EXPECT_EQ(found.lacking, std::vector<std::string>{"bfloat16"});
}

TEST(ScanCatalog, an_older_opset_is_one_rewrite_for_the_whole_model) {
  const json old = {{{"since", 1}, {"until", 17}}};
  const auto found = Made(three(), {{"MatMul", old}, {"Softsign", old}}).scanned();
  for (const auto& each : found.nodes) {
    EXPECT_EQ(each.reason, "opset");
    EXPECT_NE(each.advice.find("17"), std::string::npos) << each.advice;
  }
  ASSERT_EQ(found.effort.size(), 1U);
  EXPECT_EQ(found.effort[0].nodes, 3U);
}

TEST(ScanCatalog, effort_is_summed_and_what_decides_comes_first) {
  const auto found = Made(three(), {{"Nothing", yes}}).scanned();
  double low = 0;
  double high = 0;
  for (const auto& each : found.effort) low += each.low, high += each.high;
  EXPECT_EQ(found.effort_low, low);
  EXPECT_EQ(found.effort_high, high);
  EXPECT_TRUE(std::ranges::is_sorted(found.effort, [](const auto& a, const auto& b) { return a.high > b.high; }));
  EXPECT_GT(found.p0, 0U);
}

TEST(ScanCatalog, copies_are_values_that_cross_to_the_host_once_a_direction) {
  // x -> MatMul -> Softsign (host) -> MatMul: 2 x 8 floats to the host and back.
  const auto found = Made(three(), {{"MatMul", yes}}).scanned();
  EXPECT_EQ(found.copied_bytes, 2 * 2 * 8 * 4);
  EXPECT_EQ(Made(three(), {{"MatMul", yes}, {"Softsign", yes}}).scanned().copied_bytes, 0);
}

TEST(ScanCatalog, only_the_nodes_asked_for_count) {
  const Made made(three(), {{"MatMul", yes}});
  EXPECT_EQ(made.scanned({.ops = {"MatMul"}}).nodes.size(), 2U);
  EXPECT_THROW((void)made.scanned({.ops = {"Nosuch"}}), Error);
}

TEST(ScanCatalog, facts_of_the_model) {
  const Graph graph = three();
  const Graph typed = with_shapes(graph, {});
  const FileNodes nodes(graph, typed);
  const ModelFacts facts = model_facts(graph, typed, nodes);
  EXPECT_EQ(facts.parameters, 2 * 64);
  EXPECT_EQ(facts.parameter_bytes, 2 * 64 * 4);
  EXPECT_GE(facts.flop, 2 * 2.0 * 2 * 8 * 8);
  EXPECT_EQ(facts.activation_bytes, 2 * 2 * 8 * 4);  // A node's input and its output.
  EXPECT_EQ(facts.batch, 2);
  EXPECT_EQ(facts.largest_batch(512 + 10 * 128), 20);
  EXPECT_EQ(facts.largest_batch(100), 0);
  EXPECT_TRUE(facts.dynamic_inputs.empty());
}

}  // namespace
}  // namespace unmoor
