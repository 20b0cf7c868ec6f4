#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/formats/model_text.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;

const std::string domain = bytes(7, "com.microsoft");

// One node of com.microsoft.
Graph read_contrib(std::string_view op, std::string_view inputs, const Names& names, std::string_view attributes = "") {
  return read_text(
      model(cat(inputs, node(op, names, {"y"}, cat(domain, attributes), "n"), output("y")), 21, opset(1, "com.microsoft")));
}

std::string text_attribute(const Graph& graph, std::string_view key) {
  return std::get<std::string>(graph.nodes().back().attributes.find(key)->second);
}

TEST(OnnxContrib, operators_that_mean_the_same_become_those_of_ai_onnx) {
  const Graph graph = read_contrib("Trilu", input("x"), {"x"});
  EXPECT_EQ(summary(graph), "Trilu(x)->y");
  EXPECT_EQ(graph.nodes()[0].origin.op, "com.microsoft:Trilu");
  EXPECT_EQ(summary(read_contrib("QuantizeLinear", cat(input("x"), input("s", {})), {"x", "s"})), "QuantizeLinear(x,s)->y");
  EXPECT_EQ(summary(read_contrib("DequantizeLinear", cat(input("x", {2}, 2), input("s", {})), {"x", "s"})),
            "DequantizeLinear(x,s)->y");
}

TEST(OnnxContrib, an_operator_of_its_own_keeps_its_domain) {
  EXPECT_EQ(summary(read_contrib("QGemm", input("x"), {"x"})), "com.microsoft:QGemm(x)->y");
}

TEST(OnnxContrib, grid_sample_has_the_newest_names_of_modes) {
  const Graph graph = read_contrib("GridSample", cat(input("x", {1, 1, 2, 2}), input("g", {1, 1, 1, 2})), {"x", "g"});
  EXPECT_EQ(graph.nodes().back().op, "GridSample");
  EXPECT_EQ(text_attribute(graph, "mode"), "linear");
}

TEST(OnnxContrib, a_layout_flag_becomes_the_layout) {
  const std::string x = input("x", {1, 4, 4, 2}, 2);
  const Graph conv = read_contrib("QLinearConv", x, {"x"}, attribute("channels_last", int64_t{1}));
  EXPECT_EQ(conv.nodes().back().op, "QLinearConv");
  EXPECT_EQ(text_attribute(conv, "layout"), "NHWC");
  EXPECT_EQ(text_attribute(read_contrib("QLinearConv", x, {"x"}), "layout"), "NCHW");
  EXPECT_EQ(text_attribute(read_contrib("NhwcMaxPool", x, {"x"}), "layout"), "NHWC");
}

TEST(OnnxContrib, pad_takes_its_amounts_as_a_row) {
  const Graph vector = read_contrib("Pad", cat(input("x"), input("p", {4}, 7)), {"x", "p"});
  EXPECT_EQ(vector.nodes().size(), 1U);
  const Graph row = read_contrib("Pad", cat(input("x"), input("p", {1, 4}, 7)), {"x", "p"});
  ASSERT_EQ(row.nodes().size(), 2U);
  EXPECT_EQ(row.nodes()[0].op, "Reshape");
  EXPECT_EQ(row.nodes()[1].op, "Pad");
}

TEST(OnnxContrib, range_steps_by_one_and_takes_vectors_of_one_element) {
  const Graph scalars = read_contrib("Range", cat(input("a", {}, 7), input("b", {}, 7)), {"a", "b"});
  EXPECT_EQ(scalars.nodes().back().op, "Range");
  EXPECT_EQ(scalars.nodes()[0].op, "CastLike");
  ASSERT_EQ(scalars.nodes().back().inputs.size(), 3U);
  const Tensor* const step = scalars.constant_tensor(scalars.nodes()[0].inputs[0]);
  ASSERT_NE(step, nullptr);
  EXPECT_THAT(doubles(*step), ElementsAre(1));
  const Graph vectors = read_contrib("Range", cat(input("a", {1}), input("b", {1}), input("c", {1})), {"a", "b", "c"});
  EXPECT_EQ(vectors.nodes().size(), 4U);
  EXPECT_EQ(vectors.nodes()[0].op, "Reshape");
}

}  // namespace
}  // namespace unmoor
