#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/formats/model_text.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;
using testing::HasSubstr;

using Ints = std::vector<int64_t>;

// One node with inputs x (float32[2,3]) and output y, as an opset had it.
Graph read_node(int64_t version, std::string_view op, std::string_view attributes, const Names& inputs = {"x"},
                const Names& outputs = {"y"}) {
  return read_text(model(input("x") + input("b", {3}) + node(op, inputs, outputs, attributes, "n") + output("y"), version));
}

// The constant at an input of the last node.
std::vector<double> constant_input(const Graph& graph, size_t i) {
  const Tensor* const tensor = graph.constant_tensor(graph.nodes().back().inputs.at(i));
  return tensor == nullptr ? std::vector<double>{} : doubles(*tensor);
}

template <class T>
T attribute_of(const Graph& graph, std::string_view name) {
  return std::get<T>(graph.nodes().back().attributes.find(name)->second);
}

TEST(OnnxOpsets, attributes_that_became_inputs_are_moved) {
  EXPECT_THAT(constant_input(read_node(11, "Squeeze", attribute("axes", Ints{0, -1})), 1), ElementsAre(0, -1));
  EXPECT_THAT(constant_input(read_node(11, "Unsqueeze", attribute("axes", Ints{1})), 1), ElementsAre(1));
  EXPECT_THAT(constant_input(read_node(13, "ReduceMax", attribute("axes", Ints{1})), 1), ElementsAre(1));
  EXPECT_THAT(constant_input(read_node(9, "TopK", attribute("k", int64_t{2})), 1), ElementsAre(2));
  EXPECT_THAT(constant_input(read_node(13, "ReduceSum", attribute("keepdims", int64_t{0}), {"x", "b"}), 1), ElementsAre());
  EXPECT_EQ(read_node(11, "ReduceSum", attribute("axes", Ints{})).nodes()[0].inputs.size(), 1U);

  const Graph slice =
      read_node(9, "Slice", attribute("starts", Ints{1}) + attribute("ends", Ints{2}) + attribute("axes", Ints{0}));
  EXPECT_THAT(constant_input(slice, 1), ElementsAre(1));
  EXPECT_THAT(constant_input(slice, 2), ElementsAre(2));
  EXPECT_THAT(constant_input(slice, 3), ElementsAre(0));
  EXPECT_TRUE(slice.nodes()[0].attributes.empty());
}

TEST(OnnxOpsets, split_says_sizes_or_number) {
  EXPECT_THAT(constant_input(read_node(11, "Split", attribute("split", Ints{1, 2}), {"x"}, {"y", "z"}), 1), ElementsAre(1, 2));
  EXPECT_EQ(attribute_of<int64_t>(read_node(13, "Split", "", {"x"}, {"y", "z"}), "num_outputs"), 2);
}

TEST(OnnxOpsets, pad_and_clip_take_the_type_of_their_input) {
  const Graph pad = read_node(2, "Pad", attribute("pads", Ints{0, 1, 0, 0}) + attribute("value", 2.0F));
  EXPECT_THAT(constant_input(pad, 1), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(constant_input(pad, 2), ElementsAre(2));
  EXPECT_EQ(read_node(10, "Pad", attribute("pads", Ints{0, 1, 0, 0})).nodes()[0].inputs.size(), 2U);

  const std::string half = value(11, "x", type(10, {2}));
  const Graph clip = read_text(model(half + node("Clip", {"x"}, {"y"}, attribute("max", 6.0F)), 6));
  EXPECT_EQ(summary(clip), "Clip(x,,Clip:y/constant)->y");
  EXPECT_EQ(clip.constant_tensor(clip.nodes()[0].inputs[2])->dtype(), DType::F16);
  EXPECT_THAT(constant_input(clip, 2), ElementsAre(6));
}

TEST(OnnxOpsets, old_softmax_works_on_rows_of_a_matrix) {
  EXPECT_EQ(summary(read_node(11, "Softmax", "")), "Softmax(x)->y");  // Rank 2 and axis 1.
  EXPECT_EQ(attribute_of<int64_t>(read_node(11, "Softmax", ""), "axis"), -1);
  EXPECT_EQ(summary(read_node(11, "Softmax", attribute("axis", int64_t{0}))),
            "Shape(x)->n/Shape; Flatten(x)->n/Flatten; Softmax(n/Flatten)->n/Softmax; Reshape(n/Softmax,n/Shape)->y");
  const std::string unranked = value(11, "x", bytes(1, number(1, 1)));
  EXPECT_EQ(read_text(model(unranked + node("Softmax", {"x"}, {"y"}, attribute("axis", int64_t{-2})), 11)).nodes().size(), 4U);
  EXPECT_EQ(read_text(model(unranked + node("Softmax", {"x"}, {"y"}, attribute("axis", int64_t{-1})), 11)).nodes().size(), 1U);
  EXPECT_EQ(attribute_of<int64_t>(read_node(13, "Softmax", attribute("axis", int64_t{0})), "axis"), 0);
  EXPECT_THAT(error_of(model(input("x") + node("Hardmax", {"x"}, {"y"}, attribute("axis", int64_t{5})), 11)),
              HasSubstr("axis 5"));
}

TEST(OnnxOpsets, resize_and_upsample_take_their_old_coordinates) {
  const std::string scales = initializer(tensor("s", 1, {2}, floats({1, 2})));
  for (const auto* op : {"Upsample", "Resize"}) {
    const Graph graph =
        read_text(model(input("x") + scales + node(op, {"x", "s"}, {"y"}, attribute("mode", std::string_view("nearest"))),
                        std::string_view(op) == "Resize" ? 10 : 9));
    EXPECT_EQ(summary(graph), "Resize(x,,s)->y");
    EXPECT_EQ(attribute_of<std::string>(graph, "coordinate_transformation_mode"), "asymmetric");
    EXPECT_EQ(attribute_of<std::string>(graph, "nearest_mode"), "floor");
  }
  const std::string mixed = initializer(tensor("s", 1, {2}, floats({0.5F, 2})));
  const Graph both = read_text(model(input("x") + mixed + node("Resize", {"x", "s"}, {"y"}, "", "n"), 10));
  EXPECT_EQ(summary(both), "Resize(x,,n/constant)->n/Resize; Resize(n/Resize,,n/constant#2)->y");
  EXPECT_EQ(attribute_of<std::string>(both, "nearest_mode"), "ceil");
  EXPECT_THAT(constant_input(both, 2), ElementsAre(0.5, 1));
  const std::string empty = initializer(tensor("e", 1, {0}, ""));
  const std::string sizes = initializer(tensor("z", 7, {2}, integers({2, 6})));
  EXPECT_EQ(summary(read_text(model(input("x") + empty + sizes + node("Resize", {"x", "e", "e", "z"}, {"y"}), 11))),
            "Resize(x,,,z)->y");
}

TEST(OnnxOpsets, dropout_and_batch_normalization_are_for_inference) {
  EXPECT_TRUE(read_node(7, "Dropout", attribute("ratio", 0.5F)).nodes()[0].attributes.empty());
  const std::string mask = input("x") + node("Dropout", {"x"}, {"y", "m"}) + output("y") + output("m");
  EXPECT_THAT(error_of(model(mask, 9)), HasSubstr("a mask of the data's type"));
  EXPECT_EQ(summary(read_text(model(mask, 10))), "Dropout(x)->y,m");
  const std::string five = input("s", {3}) + input("o", {3}) + input("m", {3}) + input("v", {3});
  const auto normalize = [&five](std::string_view attributes, const Names& outputs, std::string_view more = "") {
    return model(
        input("x") + five + node("BatchNormalization", {"x", "s", "o", "m", "v"}, outputs, attributes) + std::string(more), 8);
  };
  EXPECT_EQ(summary(read_text(normalize("", {"y", "a", "c", "d", "e"}))), "BatchNormalization(x,s,o,m,v)->y");
  EXPECT_THAT(error_of(normalize("", {"y", "a"}, output("a"))), HasSubstr("only made in training"));
  EXPECT_EQ(read_text(normalize(attribute("spatial", int64_t{0}), {"y"})).nodes().back().op, "Add");
}

TEST(OnnxOpsets, renamed_things_get_their_new_names) {
  EXPECT_EQ(attribute_of<std::string>(read_node(16, "GridSample", "", {"x", "x"}), "mode"), "linear");
  EXPECT_EQ(
      attribute_of<std::string>(read_node(16, "GridSample", attribute("mode", std::string_view("bicubic")), {"x", "x"}), "mode"),
      "cubic");
  EXPECT_EQ(attribute_of<std::string>(read_node(10, "RoiAlign", ""), "coordinate_transformation_mode"), "output_half_pixel");
  EXPECT_EQ(read_node(10, "Scatter", "").nodes()[0].op, "ScatterElements");
  EXPECT_THAT(constant_input(read_node(17, "DFT", ""), 2), ElementsAre(1));
  EXPECT_EQ(read_node(10, "Scatter", "").nodes()[0].origin.op, "Scatter");
}

TEST(OnnxOpsets, broadcasting_of_opset_6_follows_its_axis) {
  const std::string b = input("b", {2});
  const auto add = [](const std::string& second, int64_t axis) {
    return model(
        input("x") + second + node("Add", {"x", "b"}, {"y"}, attribute("broadcast", int64_t{1}) + attribute("axis", axis), "n"),
        6);
  };
  const Graph graph = read_text(add(b, 0));
  EXPECT_EQ(summary(graph), "Unsqueeze(b,n/constant)->n/Unsqueeze; Add(x,n/Unsqueeze)->y");
  EXPECT_EQ(summary(read_text(add(input("b", {3}), 1))), "Add(x,b)->y");
  EXPECT_THAT(error_of(add(input("b", {2, 3}), 1)), HasSubstr("does not fit"));
  for (const int64_t axis : {INT64_MIN, INT64_MAX, int64_t{-3}}) EXPECT_THAT(error_of(add(b, axis)), HasSubstr("does not fit"));
}

TEST(OnnxOpsets, group_normalization_gets_scales_by_channel) {
  const Graph graph =
      read_text(model(input("x", {1, 4, 2}) + input("s", {2}) + input("o", {2}) +
                          node("GroupNormalization", {"x", "s", "o"}, {"y"}, attribute("num_groups", int64_t{2}), "n"),
                      18));
  EXPECT_EQ(summary(graph).substr(summary(graph).rfind("Group")), "GroupNormalization(x,n/Reshape,n/Reshape#2)->y");
}

TEST(OnnxOpsets, types_are_told_by_the_operators_before) {
  // The rank of r is not declared; where Abs tells it, the last axis needs no matrix.
  const Graph graph = read_text(model(
      input("x", {4, 2, 3}) + node("Abs", {"x"}, {"r"}) + node("Softmax", {"r"}, {"y"}, attribute("axis", int64_t{2})), 11));
  EXPECT_EQ(summary(graph), "Abs(x)->r; Softmax(r)->y");
}

TEST(OnnxOpsets, old_softmax_of_an_empty_tensor_keeps_its_shape) {
  const Graph graph = read_text(
      model(input("x", {2, 3, 0}) + node("Softmax", {"x"}, {"y"}, attribute("axis", int64_t{1}), "n") + output("y"), 11));
  EXPECT_EQ(attribute_of<int64_t>(graph, "allowzero"), 1);
}

TEST(OnnxOpsets, unsqueeze_along_no_axes_stays_one) {
  EXPECT_EQ(summary(read_node(11, "Unsqueeze", attribute("axes", Ints{}))), "Unsqueeze(x,n/constant)->y");
}

TEST(OnnxOpsets, resize_of_opset_10_by_unknown_scales_grows_and_shrinks_apart) {
  const auto read = [](const char* op, int64_t version, std::string_view mode) {
    return summary(read_text(model(
        input("x") + input("s", {2}) + node(op, {"x", "s"}, {"y"}, attribute("mode", mode), "n") + output("y"), version)));
  };
  EXPECT_EQ(read("Resize", 10, "nearest"),
            "Max(s,n/constant)->n/Max; Min(s,n/constant)->n/Min; Resize(x,,n/Max)->n/Resize; Resize(n/Resize,,n/Min)->y");
  EXPECT_EQ(read("Resize", 10, "linear"), "Resize(x,,s)->y");
  EXPECT_EQ(read("Upsample", 9, "nearest"), "Resize(x,,s)->y");  // It only grows.
}

TEST(OnnxOpsets, dropped_operators_become_those_that_took_their_place) {
  EXPECT_EQ(summary(read_node(9, "DynamicSlice", "", {"x", "b", "b", "b"})), "Slice(x,b,b,b)->y");
  const Graph filled = read_node(7, "ConstantFill", attribute("extra_shape", Ints{2}) + attribute("value", 3.0F) + attribute("dtype", int64_t{6}));
  EXPECT_THAT(summary(filled), HasSubstr("Shape(x)"));
  EXPECT_EQ(filled.nodes().back().op, "ConstantOfShape");
  EXPECT_EQ(attribute_of<Tensor>(filled, "value").dtype(), DType::I32);
  EXPECT_EQ(summary(read_node(7, "ConstantFill", attribute("shape", Ints{2}), {})).substr(0, 16), "ConstantOfShape(");
}

TEST(OnnxOpsets, the_old_half_pixel_of_nearest_neighbors_is_rounded_otherwise) {
  const auto resized = [](std::string_view nearest, std::string_view mode = "nearest") {
    return read_node(11, "Resize", attribute("coordinate_transformation_mode", "tf_half_pixel_for_nn") + attribute("nearest_mode", nearest) +
                                       attribute("mode", mode), {"x", "", "b"});
  };
  EXPECT_EQ(attribute_of<std::string>(resized("floor"), "nearest_mode"), "round_prefer_ceil");
  EXPECT_EQ(attribute_of<std::string>(resized("round_prefer_floor"), "nearest_mode"), "ceil");
  EXPECT_THROW(resized("ceil"), Error);
  EXPECT_THROW(resized("floor", "linear"), Error);
}

TEST(OnnxOpsets, a_scan_of_batches_becomes_a_scan_of_scans) {
  const std::string step = value(11, "s", type(1, {})) + value(11, "e", type(1, {})) + node("Add", {"s", "e"}, {"t"}) +
                           node("Mul", {"t", "c"}, {"o"}) + output("t") + output("o");
  const std::string attributes = graph_attribute("body", step) + attribute("num_scan_inputs", int64_t{1}) + attribute("directions", Ints{1});
  const std::string inputs = input("c", {}) + input("s0", {2}) + input("x", {2, 3});
  const Graph plain = read_text(model(inputs + node("Scan", {"", "s0", "x"}, {"last", "all"}, attributes, "n"), 8));
  EXPECT_EQ(summary(plain), "Scan(s0,x,c)->last,all");
  EXPECT_EQ(attribute_of<int64_t>(plain, "num_scan_inputs"), 2);
  const auto item = attribute_of<SubGraph>(plain, "body");
  EXPECT_EQ(summary(*item), "Scan(item_0,item_1,captured_2)->n/Scan_0:0,n/Scan_0:1");
  EXPECT_EQ(attribute_of<Ints>(*item, "scan_input_directions"), Ints{1});

  const Graph lengths = read_text(model(inputs + input("l", {2}, 7) + node("Scan", {"l", "s0", "x"}, {"last", "all"}, attributes, "n"), 8));
  EXPECT_EQ(summary(lengths), "Scan(s0,x,l,c)->last,all");
  EXPECT_THAT(summary(*attribute_of<SubGraph>(lengths, "body")), HasSubstr("Split(item_1,n/Concat_3:0)->n/Split_5:0,n/Split_5:1; Scan(item_0,n/Split_5:0,captured_2)"));
}

TEST(OnnxOpsets, forms_that_cannot_be_rewritten_say_so) {
  EXPECT_THAT(error_of(model(input("x") + node("Scan", {"x"}, {"y"}), 8)), HasSubstr("no body"));
  EXPECT_THAT(error_of(model(input("x") + node("Tile", {"x"}, {"y"}), 1)), HasSubstr("opset 1"));
  EXPECT_THAT(error_of(model(input("x") + node("Slice", {"x"}, {"y"}), 9)), HasSubstr("'starts' is missing"));
  EXPECT_THAT(error_of(model(input("x") + node("Slice", {"x"}, {"y"}, attribute("starts", int64_t{1})), 9)),
              HasSubstr("wrong type"));
}

TEST(OnnxOpsets, unknown_operators_load_as_themselves) {
  const Graph graph = read_node(11, "Mystery", attribute("axes", Ints{1}));
  EXPECT_EQ(summary(graph), "Mystery(x)->y");
  EXPECT_EQ(attribute_of<Ints>(graph, "axes"), Ints{1});
}

// In opset 23 a mask of one column counts for every key.
TEST(OnnxOpsets, a_mask_column_of_old_attention_counts_for_every_key) {
  const auto read = [](int64_t version, const Names& inputs) {
    return read_text(model(input("q", {1, 2, 3, 4}) + input("k", {1, 2, 5, 4}) + input("m", {3, 1}) + input("p", {1, 2, 6, 4}) +
                               node("Attention", inputs, {"y"}, "", "n") + output("y"),
                           version));
  };
  EXPECT_EQ(summary(read(24, {"q", "k", "k", "m"})), "Attention(q,k,k,m)->y");
  EXPECT_EQ(summary(read(23, {"q", "k", "k"})), "Attention(q,k,k)->y");
  EXPECT_EQ(summary(read(23, {"q", "k", "k", "m"})),
            "Shape(k)->n/Shape; Expand(m,n/Shape)->n/Expand; Attention(q,k,k,n/Expand)->y");
  EXPECT_THAT(summary(read(23, {"q", "k", "k", "m", "p", "p"})), HasSubstr("Add(n/Shape,n/Shape#2)->n/Add; Expand(m,n/Add)"));
}

Graph read_contrib(std::string_view op, std::string_view attributes, const Names& inputs) {
  const std::string graph = input("x", {1, 3, 4, 4}) + input("w", {2, 3, 1, 1}) + input("b", {2}) + input("z", {1, 2, 4, 4}) +
                            node(op, inputs, {"y"}, bytes(7, "com.microsoft") + std::string(attributes), "n") + output("y");
  return read_text(model(graph, 21, opset(1, "com.microsoft")));
}

TEST(OnnxOpsets, what_onnx_runtime_fused_is_taken_apart) {
  const Graph conv = read_contrib("FusedConv", attribute("activation", "Relu"), {"x", "w", "b", "z"});
  EXPECT_EQ(summary(conv), "Conv(x,w,b)->n/Conv; Add(n/Conv,z)->n/Add; Relu(n/Add)->y");
  EXPECT_EQ(summary(read_contrib("NhwcConv", "", {"x", "w"})), "Conv(x,w)->y");
  EXPECT_EQ(attribute_of<std::string>(read_contrib("NhwcConv", "", {"x", "w"}), "layout"), "NHWC");
  const Graph gemm =
      read_contrib("FusedGemm", attribute("activation", "LeakyRelu") + attribute("activation_alpha", 0.25F), {"b", "b"});
  EXPECT_EQ(gemm.nodes()[0].op, "Gemm");
  EXPECT_EQ(gemm.nodes()[1].op, "LeakyRelu");
  EXPECT_EQ(attribute_of<float>(gemm, "alpha"), 0.25F);
  EXPECT_EQ(gemm.nodes()[1].origin.op, "com.microsoft:FusedGemm");
  EXPECT_EQ(summary(read_contrib("FusedGemm", "", {"b", "b"})), "Gemm(b,b)->y");
}

}  // namespace
}  // namespace unmoor
