#include "unmoor/formats/onnx/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/formats/model_text.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;
using testing::HasSubstr;

const TensorType matrix{DType::F32, Shape{2, 3}};

// x -> Relu r -> Add(r, w) a -> Sub(a, s) y, and Tanh(s) t from a second input.
std::string chain() {
  return model(node("Relu", {"x"}, {"r"}, "", "relu") + node("Add", {"r", "w"}, {"a"}, "", "add") + node("Tanh", {"s"}, {"t"}, "", "tanh") +
               node("Sub", {"a", "s"}, {"y"}, "", "sub") + input("x") + input("s") + output("y") + output("t") +
               initializer(tensor("w", 1, {1}, floats({2}))));
}

template <class Do>
std::string error_of_call(Do call) {
  try {
    call();
  } catch (const Error& error) {
    return cat(name(error.kind()), ": ", error.what());
  }
  return "";
}

TEST(OnnxParts, a_part_has_the_nodes_inputs_and_weights_that_it_needs) {
  const ModelFile file(chain());
  const OnnxParts parts(file.path());
  EXPECT_THAT(parts.write({}, {{"a", matrix}}, file.path("part.onnx")), ElementsAre("x"));
  const Graph graph = read_onnx(file.path("part.onnx")).graph;
  EXPECT_EQ(summary(graph), "Relu(x)->r; Add(r,w)->a");
  EXPECT_THAT(graph.output_names(), ElementsAre("a"));
}

TEST(OnnxParts, what_is_given_is_an_input_and_what_is_above_it_is_left_out) {
  const ModelFile file(chain());
  const OnnxParts parts(file.path());
  EXPECT_THAT(parts.write({{"r", matrix}}, {{"y", matrix}}, file.path("part.onnx")), ElementsAre("s"));
  const Graph graph = read_onnx(file.path("part.onnx")).graph;
  EXPECT_EQ(summary(graph), "Add(r,w)->a; Sub(a,s)->y");
  EXPECT_EQ(graph.inputs().size(), 2U);
}

TEST(OnnxParts, opsets_and_functions_come_along) {
  const std::string twice = bytes(25, bytes(1, "Twice") + bytes(10, "local") + bytes(4, "a") + bytes(5, "b") + node("Add", {"a", "a"}, {"b"}, "", "", 7) + opset(21, "", 9));
  const ModelFile file(model(node("Twice", {"x"}, {"u"}, bytes(7, "local")) + node("Relu", {"u"}, {"y"}) + input("x") + output("y"), 21, twice + opset(1, "local")));
  (void)OnnxParts(file.path()).write({}, {{"u", matrix}}, file.path("part.onnx"));
  const Model part = read_onnx(file.path("part.onnx"));
  EXPECT_EQ(summary(part.graph), "Add(x,x)->u");
  EXPECT_EQ(part.opsets.at("ai.onnx"), 21);
}

TEST(OnnxParts, a_node_reads_what_its_subgraphs_take_from_outside) {
  const std::string then = graph_attribute("then_branch", node("Neg", {"r"}, {"n"}) + output("n"));
  const std::string otherwise = graph_attribute("else_branch", output("r"));
  const ModelFile file(model(node("Relu", {"x"}, {"r"}) + node("If", {"c"}, {"y"}, then + otherwise) + input("x") + input("c", {}, 9) + output("y")));
  const OnnxParts parts(file.path());
  EXPECT_THAT(parts.nodes()[1].reads, testing::IsSupersetOf({"c", "r"}));
  EXPECT_THAT(parts.write({}, {{"y", matrix}}, file.path("part.onnx")), ElementsAre("x", "c"));
  EXPECT_THAT(parts.write({{"r", matrix}}, {{"y", matrix}}, file.path("part.onnx")), ElementsAre("c"));
}

TEST(OnnxParts, weights_of_other_files_are_copied_and_stay_where_parts_look_for_them) {
  const std::string outside = tensor("w", 1, {1}, bytes(13, bytes(1, "location") + bytes(2, "data/w.bin")) + number(14, 1));
  const ModelFile file(model(node("Add", {"x", "w"}, {"y"}) + input("x") + output("y") + initializer(outside)));
  std::filesystem::create_directory(file.path("data"));
  write_file(file.path("data/w.bin"), "abcd");
  const TemporaryFolder folder;
  const OnnxParts parts(file.path());
  parts.bring_weights(folder.path());
  EXPECT_EQ(read_file(folder.path() + "/data/w.bin"), "abcd");
  EXPECT_EQ(std::filesystem::hard_link_count(folder.path() + "/data/w.bin"), 1U) << "engines refuse weights that are links";
  EXPECT_THAT(parts.write({}, {{"y", matrix}}, folder.path() + "/part.onnx"), ElementsAre("x"));
  EXPECT_EQ(read_onnx(folder.path() + "/part.onnx").graph.nodes().size(), 1U);
}

TEST(OnnxParts, what_cannot_be_cut_is_an_error) {
  const ModelFile file(chain());
  const OnnxParts parts(file.path());
  EXPECT_THAT(error_of_call([&] { (void)parts.write({}, {{"none", matrix}}, file.path("p.onnx")); }), HasSubstr("makes 'none'"));
  const ModelFile split(model(node("Split", {"x"}, {"a", "b"}, attribute("num_outputs", int64_t{2})) + node("Add", {"a", "b"}, {"y"}) + input("x") + output("y")));
  EXPECT_THAT(error_of_call([&] { (void)OnnxParts(split.path()).write({{"a", matrix}}, {{"y", matrix}}, split.path("p.onnx")); }),
              HasSubstr("makes 'a' too, which is given"));
  const ModelFile late(model(node("Relu", {"a"}, {"y"}) + node("Relu", {"x"}, {"a"}) + input("x") + output("y")));
  EXPECT_THAT(error_of_call([&] { OnnxParts(late.path()); }), HasSubstr("only a later one makes"));
  const ModelFile broken("\x3a\xff\x01");
  EXPECT_THAT(error_of_call([&] { OnnxParts(broken.path()); }), HasSubstr("ModelProto"));
  EXPECT_THAT(parts.write({}, {{"t", matrix}}, file.path("p.onnx")), ElementsAre("s"));
}

}  // namespace
}  // namespace unmoor
