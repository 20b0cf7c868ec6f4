#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/formats/model_text.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor constant(const Graph& graph, std::string_view name) {
  return graph.value(graph.find_value(name).value()).constant->tensor();
}

SubGraph body(const Node& node, std::string_view attribute) {
  return std::get<SubGraph>(node.attributes.find(attribute)->second);
}

// The values of one initializer called w.
std::vector<double> values_of(int64_t dtype, const std::vector<int64_t>& dims, std::string_view data) {
  return doubles(constant(read_text(model(initializer(tensor("w", dtype, dims, data)))), "w"));
}

TEST(OnnxRead, raw_weights_stay_in_the_file_at_any_alignment) {
  const ModelFile file(model(initializer(tensor("w", 1, {3}, floats({1, 2, 3})))));
  const Graph graph = file.read().graph;
  const Tensor w = constant(graph, "w");
  EXPECT_THROW(Tensor(w).writable_bytes(), Error);  // A view of the mapped file, no copy.
  EXPECT_THAT(doubles(w), ElementsAre(1, 2, 3));
}

TEST(OnnxRead, typed_fields_hold_every_kind_of_element) {
  EXPECT_THAT(values_of(1, {2}, real(4, 1.5F) + real(4, -2)), ElementsAre(1.5, -2));
  EXPECT_THAT(values_of(10, {2}, number(5, 0x3c00) + number(5, 0xc000)), ElementsAre(1, -2));  // float16
  EXPECT_THAT(values_of(16, {2}, number(5, 0x3f80) + number(5, 0xc000)), ElementsAre(1, -2));  // bfloat16
  EXPECT_THAT(values_of(3, {2}, number(5, -3) + number(5, 4)), ElementsAre(-3, 4));            // int8
  EXPECT_THAT(values_of(9, {2}, number(5, 1) + number(5, 0)), ElementsAre(1, 0));              // bool
  EXPECT_THAT(values_of(22, {3}, number(5, 0x2f) + number(5, 0x08)), ElementsAre(-1, 2, -8));  // int4, two in a byte
  EXPECT_THAT(values_of(21, {3}, number(5, 0x2f) + number(5, 0x08)), ElementsAre(15, 2, 8));   // uint4
  EXPECT_THAT(values_of(7, {2}, number(7, -5) + number(7, 6)), ElementsAre(-5, 6));            // int64
  EXPECT_THAT(values_of(12, {1}, number(11, 0xffffffff)), ElementsAre(4294967295.0));          // uint32
}

TEST(OnnxRead, strings_are_read) {
  const Graph graph = read_text(model(initializer(tensor("w", 8, {2}, bytes(6, "a") + bytes(6, "")))));
  EXPECT_THAT(constant(graph, "w").strings(), ElementsAre("a", ""));
}

TEST(OnnxRead, sparse_initializers_become_dense) {
  const std::string values = bytes(1, tensor("w", 1, {2}, floats({5, 7})));
  const std::string dims = number(3, 2) + number(3, 2);
  const auto read = [&](std::string_view indices) {
    return doubles(constant(read_text(model(bytes(15, values + std::string(indices) + dims))), "w"));
  };
  EXPECT_THAT(read(bytes(2, tensor("", 7, {2}, integers({1, 2})))), ElementsAre(0, 5, 7, 0));
  EXPECT_THAT(read(bytes(2, tensor("", 7, {2, 2}, integers({0, 0, 1, 1})))), ElementsAre(5, 0, 0, 7));
  EXPECT_THAT(error_of(model(bytes(15, values + bytes(2, tensor("", 7, {2}, integers({1, 4}))) + dims))),
              HasSubstr("index 4 is outside"));
  EXPECT_THAT(error_of(model(bytes(15, values + bytes(2, tensor("", 7, {2}, integers({1, 4}))) + number(3, int64_t{1} << 40)))),
              HasSubstr("when dense"));
}

TEST(OnnxRead, nodes_out_of_order_are_sorted) {
  const Graph graph = read_text(model(node("Relu", {"a"}, {"y"}) + node("Abs", {"x"}, {"a"}) + input("x") + output("y")));
  EXPECT_EQ(summary(graph), "Abs(x)->a; Relu(a)->y");
}

TEST(OnnxRead, cycles_missing_and_repeated_values_are_named) {
  EXPECT_THAT(error_of(model(node("Add", {"x", "b"}, {"a"}, "", "first") + node("Abs", {"a"}, {"b"}) + input("x"))),
              AllOf(HasSubstr("cycle"), HasSubstr("'first'"), HasSubstr("'b'")));
  EXPECT_THAT(error_of(model(node("Abs", {"nowhere"}, {"b"}))), AllOf(HasSubstr("'nowhere'"), HasSubstr("'Abs:b'")));
  EXPECT_THAT(error_of(model(node("Abs", {"x"}, {"b"}) + node("Neg", {"x"}, {"b"}) + input("x"))),
              HasSubstr("'b' is made twice"));
  EXPECT_THAT(error_of(model(node("Abs", {"x"}, {"x"}) + input("x"))), HasSubstr("an input or a constant already"));
  EXPECT_THAT(error_of(model(input("x") + output("y"))), HasSubstr("output 'y'"));
}

TEST(OnnxRead, every_form_of_constant_becomes_a_constant) {
  const Graph graph = read_text(model(node("Constant", {}, {"a"}, attribute("value_float", 2.5F)) +
                                      node("Constant", {}, {"b"}, attribute("value_ints", {int64_t{3}, int64_t{4}})) +
                                      node("Constant", {}, {"c"}, attribute("value_string", std::string_view("text"))) +
                                      node("Constant", {}, {"d"}, attribute("value_int", int64_t{7})) +
                                      node("Constant", {}, {"e"}, tensor_attribute("value", tensor("", 1, {1}, floats({9}))))));
  EXPECT_TRUE(graph.nodes().empty());
  EXPECT_THAT(doubles(constant(graph, "a")), ElementsAre(2.5));
  EXPECT_EQ(constant(graph, "a").shape(), Shape());
  EXPECT_THAT(integers(constant(graph, "b")), ElementsAre(3, 4));
  EXPECT_THAT(constant(graph, "c").strings(), ElementsAre("text"));
  EXPECT_THAT(integers(constant(graph, "d")), ElementsAre(7));
  EXPECT_THAT(doubles(constant(graph, "e")), ElementsAre(9));
  EXPECT_THAT(error_of(model(node("Constant", {}, {"a"}))), HasSubstr("one attribute"));
}

TEST(OnnxRead, initializers_listed_as_inputs_are_constants) {
  const Graph graph = read_text(model(input("x") + input("w", {1}) + initializer(tensor("w", 1, {1}, floats({1}))) +
                                      node("Add", {"x", "w"}, {"y"}) + output("y")));
  EXPECT_EQ(graph.inputs().size(), 1U);
  EXPECT_TRUE(graph.value(graph.find_value("w").value()).constant);
}

TEST(OnnxRead, dimensions_without_a_number_are_unknown) {
  const std::string dims =
      bytes(1, bytes(2, "batch")) + bytes(1, number(1, -1)) + bytes(1, bytes(2, "?")) + bytes(1, "") + bytes(1, number(1, 3));
  const Graph graph = read_text(model(value(11, "x", bytes(1, number(1, 1) + bytes(2, dims)))));
  EXPECT_EQ(to_text(graph.value(graph.inputs()[0]).type), "float32[batch,?,?,?,3]");
}

TEST(OnnxRead, types_of_any_kind_are_read) {
  const std::string sequence = bytes(4, bytes(1, type(7, {2})));
  const Graph graph = read_text(model(value(11, "s", sequence) + value(11, "o", bytes(9, bytes(1, sequence))) +
                                      value(11, "m", bytes(5, number(1, 7) + bytes(2, type(1, {}))))));
  const auto& s = std::get<SequenceType>(graph.value(graph.inputs()[0]).type);
  EXPECT_EQ(to_text(*s.element), "int64[2]");
  EXPECT_TRUE(std::holds_alternative<SequenceType>(*std::get<OptionalType>(graph.value(graph.inputs()[1]).type).element));
  EXPECT_EQ(std::get<MapType>(graph.value(graph.inputs()[2]).type).key, DType::I64);
}

TEST(OnnxRead, absent_inputs_and_outputs_have_no_value) {
  const Graph graph = read_text(
      model(input("x") + node("Clip", {"x", "", "x"}, {"y"}) + node("Dropout", {"x", "", ""}, {"z", ""}) + output("y")));
  EXPECT_EQ(summary(graph), "Clip(x,,x)->y; Dropout(x)->z");
}

TEST(OnnxRead, nodes_are_named_by_the_file_or_by_their_first_output) {
  const Graph graph = read_text(model(input("x") + node("Abs", {"x"}, {"a"}, "", "n") + node("Neg", {"x"}, {"b"}, "", "twice") +
                                          node("Relu", {"x"}, {"c"}, "", "twice") + node("Exp", {"x"}, {"d"}) +
                                          node("BiasGelu", {"x", "x"}, {"e"}, bytes(7, "com.microsoft")),
                                      21, opset(1, "com.microsoft")));
  std::vector<std::string> names;
  for (const auto& each : graph.nodes()) names.push_back(each.origin.name);
  EXPECT_THAT(names, ElementsAre("n", "Neg:b", "Relu:c", "Exp:d", "BiasGelu:e"));
  EXPECT_EQ(graph.nodes()[0].origin.opset, 21);
  EXPECT_EQ(graph.nodes()[4].origin.opset, 1);
  EXPECT_EQ(graph.nodes()[4].origin.op, "com.microsoft:BiasGelu");
  EXPECT_EQ(graph.value(graph.nodes()[3].outputs[0]).origin.name, "d");
}

TEST(OnnxRead, declared_types_of_inner_values_are_kept) {
  const Graph graph = read_text(model(input("x") + node("Mystery", {"x"}, {"y"}) + value(13, "y", type(7, {5})) + output("y")));
  EXPECT_EQ(to_text(graph.value(graph.outputs()[0]).type), "int64[5]");
}

std::string branch(std::string_view nodes, std::string_view result) { return std::string(nodes) + output(result); }

TEST(OnnxRead, captured_values_become_the_last_inputs_of_both_branches) {
  const std::string then_branch = branch(node("Add", {"a", "w"}, {"t"}), "t");
  const std::string else_branch = branch(node("Sub", {"b", "a"}, {"e"}), "e");
  const Graph graph = read_text(
      model(input("c", {}, 9) + input("a") + input("b") + initializer(tensor("w", 1, {1}, floats({4}))) +
            node("If", {"c"}, {"y"}, graph_attribute("then_branch", then_branch) + graph_attribute("else_branch", else_branch)) +
            output("y")));
  const Node& node = graph.nodes()[0];
  EXPECT_EQ(summary(graph), "If(c,a,b)->y");
  EXPECT_EQ(std::get<int64_t>(node.attributes.at("captures")), 2);
  for (const auto* name : {"then_branch", "else_branch"}) {
    const SubGraph inner = body(node, name);
    ASSERT_EQ(inner->inputs().size(), 2U);
    EXPECT_EQ(inner->value(inner->inputs()[0]).name, "a");
    EXPECT_EQ(inner->value(inner->inputs()[1]).name, "b");
    EXPECT_EQ(to_text(inner->value(inner->inputs()[0]).type), "float32[2,3]");
  }
  const Tensor outer = constant(graph, "w");
  EXPECT_TRUE(constant(*body(node, "then_branch"), "w").shares_storage(outer));
}

TEST(OnnxRead, one_branch_may_define_what_the_other_captures) {
  const std::string then_branch = branch(node("Abs", {"a"}, {"v"}), "v");
  const std::string else_branch = branch(node("Neg", {"v"}, {"e"}), "e");
  const Graph graph = read_text(
      model(input("c", {}, 9) + input("a") + node("Exp", {"a"}, {"v"}) +
            node("If", {"c"}, {"y"}, graph_attribute("then_branch", then_branch) + graph_attribute("else_branch", else_branch))));
  EXPECT_EQ(summary(graph), "Exp(a)->v; If(c,a,v)->y");
  EXPECT_EQ(body(graph.nodes()[1], "then_branch")->inputs().size(), 2U);
}

TEST(OnnxRead, values_are_captured_through_several_levels) {
  const std::string deepest = branch(node("Neg", {"a"}, {"d"}), "d");
  const std::string inner_if =
      node("If", {"c"}, {"m"}, graph_attribute("then_branch", deepest) + graph_attribute("else_branch", deepest));
  const std::string middle = branch(inner_if, "m");
  const Graph graph =
      read_text(model(input("c", {}, 9) + input("x") + node("Abs", {"x"}, {"a"}) +
                      node("If", {"c"}, {"y"}, graph_attribute("then_branch", middle) + graph_attribute("else_branch", middle))));
  EXPECT_EQ(summary(graph), "Abs(x)->a; If(c,c,a)->y");
  EXPECT_EQ(summary(*body(graph.nodes()[1], "then_branch")), "If(c,a)->m");
}

TEST(OnnxRead, absent_inputs_of_a_loop_keep_their_places_before_captured_ones) {
  const std::string loop_body = value(11, "i", type(7, {})) + value(11, "go", type(9, {})) + node("Identity", {"go"}, {"more"}) +
                                node("Abs", {"x"}, {"out"}) + output("more") + output("out");
  const Graph graph =
      read_text(model(input("x") + input("n", {}, 7) + node("Loop", {"n", ""}, {"y"}, graph_attribute("body", loop_body))));
  EXPECT_EQ(summary(graph), "Loop(n,,x)->y");
  EXPECT_EQ(body(graph.nodes()[0], "body")->inputs().size(), 3U);
}

TEST(OnnxRead, a_loop_without_count_and_condition_keeps_their_places) {
  const std::string loop_body = value(11, "i", type(7, {})) + value(11, "go", type(9, {})) + node("Identity", {"i"}, {"out"}) +
                                node("Identity", {"go"}, {"more"}) + output("more") + output("out");
  const Graph graph = read_text(model(node("Loop", {"", ""}, {"y"}, graph_attribute("body", loop_body)) + output("y")));
  EXPECT_EQ(summary(graph), "Loop(,)->y");
}

TEST(OnnxRead, an_attribute_given_twice_is_an_error) {
  const std::string branches = graph_attribute("then_branch", output("x")) + graph_attribute("else_branch", output("x"));
  EXPECT_THAT(error_of(model(input("x") + input("c", {}, 9) +
                             node("If", {"c"}, {"y"}, branches + graph_attribute("then_branch", output("x"))))),
              HasSubstr("'then_branch' is given twice"));
}

TEST(OnnxRead, errors_in_a_tensor_name_it) {
  EXPECT_THAT(error_of(model(initializer(tensor("weights", 1, {1}, bytes(3, ""))))),
              AllOf(HasSubstr("segments"), HasSubstr("'weights'")));
}

std::string function(std::string_view name, const Names& inputs, const Names& outputs, std::string_view nodes_and_more) {
  std::string text = bytes(1, name) + bytes(10, "local") + opset(21, "", 9);
  for (const auto input_name : inputs) text += bytes(4, input_name);
  for (const auto output_name : outputs) text += bytes(5, output_name);
  return bytes(25, text + std::string(nodes_and_more));
}

TEST(OnnxRead, functions_are_inlined_with_their_attributes) {
  const std::string scaled = function("Scaled", {"p"}, {"q"},
                                      node("LeakyRelu", {"p"}, {"m"}, referring_attribute("alpha", "slope", 1), "leak", 7) +
                                          node("Neg", {"m"}, {"q"}, "", "", 7) + bytes(6, "slope"));
  const std::string outer =
      function("Outer", {"p"}, {"q"}, node("Scaled", {"p"}, {"q"}, bytes(7, "local") + attribute("slope", 0.5F), "in", 7));
  const Graph graph =
      read_text(model(input("x") + node("Outer", {"x"}, {"y"}, bytes(7, "local"), "call") + output("y"), 21, scaled + outer));
  EXPECT_EQ(summary(graph), "LeakyRelu(x)->call/in/m; Neg(call/in/m)->y");
  EXPECT_EQ(graph.nodes()[0].origin.name, "call/in/leak");
  EXPECT_EQ(std::get<float>(graph.nodes()[0].attributes.at("alpha")), 0.5F);
}

TEST(OnnxRead, two_calls_of_a_function_do_not_mix) {
  const std::string twice =
      function("F", {"p"}, {"q"}, node("Abs", {"p"}, {"m"}, "", "", 7) + node("Exp", {"m"}, {"q"}, "", "", 7));
  const Graph graph = read_text(
      model(input("x") + node("F", {"x"}, {"a"}, bytes(7, "local")) + node("F", {"a"}, {"b"}, bytes(7, "local")), 21, twice));
  EXPECT_EQ(summary(graph), "Abs(x)->F:a/m; Exp(F:a/m)->a; Abs(a)->F:b/m; Exp(F:b/m)->b");
}

TEST(OnnxRead, functions_that_call_themselves_or_explode_are_errors) {
  const std::string self = function("F", {"p"}, {"q"}, node("F", {"p"}, {"q"}, bytes(7, "local"), "", 7));
  EXPECT_THAT(error_of(model(input("x") + node("F", {"x"}, {"y"}, bytes(7, "local")), 21, self)), HasSubstr("calls itself"));

  std::string doubling = function("F0", {"p"}, {"q"}, node("Abs", {"p"}, {"q"}, "", "", 7));
  for (int i = 1; i < 40; ++i) {
    const std::string inner = cat("F", i - 1);
    doubling +=
        function(cat("F", i), {"p"}, {"q"},
                 node(inner, {"p"}, {"m"}, bytes(7, "local"), "", 7) + node(inner, {"m"}, {"q"}, bytes(7, "local"), "", 7));
  }
  EXPECT_THAT(error_of(model(input("x") + node("F39", {"x"}, {"y"}, bytes(7, "local")), 21, doubling)),
              HasSubstr("functions make more than"));
}

TEST(OnnxRead, a_function_that_passes_its_input_on_keeps_the_callers_name) {
  const std::string pass = function("F", {"p"}, {"p"}, "");
  const Graph graph = read_text(model(input("x") + node("F", {"x"}, {"y"}, bytes(7, "local")) + output("y"), 21, pass));
  EXPECT_EQ(summary(graph), "Identity(x)->y");
}

TEST(OnnxRead, the_models_own_data_is_told) {
  const Model read =
      ModelFile(model(input("x"), 17,
                      bytes(2, "maker") + bytes(3, "1.2") + bytes(14, bytes(1, "k") + bytes(2, "v")) + opset(3, "ai.onnx.ml")))
          .read();
  EXPECT_EQ(read.producer, "maker 1.2");
  EXPECT_EQ(read.ir_version, 8);
  EXPECT_EQ(read.opsets.at("ai.onnx"), 17);
  EXPECT_EQ(read.opsets.at("ai.onnx.ml"), 3);
  EXPECT_EQ(read.metadata.at("k"), "v");
}

TEST(OnnxRead, opsets_nobody_knows_and_missing_ones_are_errors) {
  EXPECT_THAT(error_of(model(input("x"), 999)), HasSubstr("999"));
  EXPECT_THAT(error_of(number(1, 8) + bytes(7, input("x") + node("Abs", {"x"}, {"y"}))), HasSubstr("imports no opset"));
  EXPECT_THAT(error_of(""), HasSubstr("no graph"));
}

}  // namespace
}  // namespace unmoor
