#include "unmoor/graph/graph.h"

#include <gtest/gtest.h>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

TEST(Graph, a_node_may_use_only_values_added_before_it) {
  Graph graph;
  const ValueId x = graph.add_input("x", TensorType{DType::F32, {2}});
  Node node;
  node.op = "Relu";
  node.inputs = {x};
  node.outputs = {ValueId{7}};
  EXPECT_THROW(graph.add_node(node), Error);
}

TEST(Graph, uses_count_nodes_and_outputs) {
  Graph graph;
  const ValueId x = graph.add_input("x", TensorType{DType::F32, {2}});
  Node node;
  node.op = "Mul";
  node.inputs = {x, x};
  Value y;
  y.name = "y";
  node.outputs = {graph.add_value(y)};
  const ValueId out = node.outputs[0];
  graph.add_node(node);
  graph.mark_output(out, "y");
  EXPECT_EQ(use_counts(graph), (std::vector<uint32_t>{2, 1}));
}

}  // namespace
}  // namespace unmoor
