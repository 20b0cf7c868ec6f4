#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/formats/model_text.h"

// Small files that stand for something huge: each must be refused soon, without the memory that it asks for.
namespace unmoor {
namespace {

using namespace model_text;
using testing::HasSubstr;

const std::string local = opset(1, "local");

std::string function(std::string_view name, std::string_view nodes_and_more) {
  return bytes(25, bytes(1, name) + bytes(10, "local") + opset(21, "", 9) + std::string(nodes_and_more));
}

// `count` calls of the function F, each with the output of its own.
std::string calls(size_t count, std::string_view more = "", std::string_view name = "") {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += node("F", {"x"}, {cat("y", i)}, bytes(7, "local") + std::string(more), name);
  return text;
}

std::string error_of_calls(std::string_view function_body, size_t count, std::string_view more = "", std::string_view name = "") {
  return error_of(model(input("x") + calls(count, more, name), 21, function("F", function_body) + local));
}

TEST(OnnxBombs, a_node_of_many_inputs_in_a_function_called_often) {
  std::string inputs;
  for (int i = 0; i < 20000; ++i) inputs += bytes(1, "p");
  const std::string body = bytes(4, "p") + bytes(5, "q") + bytes(7, inputs + bytes(2, "q") + bytes(4, "Sum"));
  EXPECT_THAT(error_of_calls(body, 20000), HasSubstr("copy more than"));
}

TEST(OnnxBombs, a_node_of_many_outputs_in_a_function_called_often) {
  std::string outputs;
  for (int i = 0; i < 20000; ++i) outputs += bytes(2, cat("o", i));
  const std::string body = bytes(4, "p") + bytes(5, "o0") + bytes(7, bytes(1, "p") + outputs + bytes(4, "Split"));
  EXPECT_THAT(error_of_calls(body, 20000), HasSubstr("nodes and values"));
}

TEST(OnnxBombs, a_function_of_many_declared_inputs_called_often) {
  std::string declared;
  for (int i = 0; i < 20000; ++i) declared += bytes(4, cat("p", i));
  const std::string body = declared + bytes(5, "q") + node("Abs", {"p0"}, {"q"}, "", "", 7);
  EXPECT_THAT(error_of_calls(body, 20000), HasSubstr("copy more than"));
}

TEST(OnnxBombs, a_long_name_before_every_node_of_a_function) {
  std::string body = bytes(4, "p") + bytes(5, "q0");
  for (int i = 0; i < 10000; ++i) body += node("Abs", {"p"}, {cat("q", i)}, "", "", 7);
  EXPECT_THAT(error_of_calls(body, 1, "", std::string(1 << 20, 'n')), HasSubstr("copy more than"));
}

TEST(OnnxBombs, a_large_default_of_a_function_called_often) {
  std::string numbers = bytes(1, "numbers");
  for (int i = 0; i < 20000; ++i) numbers += number(8, i);
  const std::string body = bytes(4, "p") + bytes(5, "q") + bytes(11, numbers + number(20, 7)) + node("Abs", {"p"}, {"q"}, "", "", 7);
  EXPECT_THAT(error_of_calls(body, 20000), HasSubstr("copy more than"));
}

std::string nested_ifs(std::string graph, int depth) {
  for (int i = 0; i < depth; ++i) {
    graph = node("If", {"c"}, {"m"}, graph_attribute("then_branch", graph) + graph_attribute("else_branch", output("c"))) + output("m");
  }
  return graph;
}

TEST(OnnxBombs, many_values_captured_through_many_levels) {
  std::string inputs, outputs;
  for (int i = 0; i < 200000; ++i) {
    const std::string name = cat("v", i);
    outputs += bytes(2, name);
    inputs += bytes(1, name);
  }
  const std::string split = bytes(1, bytes(1, "x") + outputs + bytes(4, "Split"));
  const std::string deepest = bytes(1, inputs + bytes(2, "d") + bytes(4, "Sum")) + output("d");
  EXPECT_THAT(error_of(model(input("x") + input("c", {}, 9) + split + nested_ifs(deepest, 28))), HasSubstr("values from outside"));
}

TEST(OnnxBombs, bodies_in_functions_in_bodies_end_before_the_stack_does) {
  std::string functions;
  for (int i = 0; i < 60; ++i) {
    const std::string call = node(cat("F", i + 1), {"c"}, {"d"}, bytes(7, "local")) + output("d");
    // The nodes of a graph, as those of a function.
    const std::string branches = graph_attribute("then_branch", nested_ifs(call, 25)) + graph_attribute("else_branch", output("c"));
    functions += function(cat("F", i), bytes(4, "c") + bytes(5, "q") + node("If", {"c"}, {"q"}, branches, "", 7));
  }
  functions += function("F60", bytes(4, "c") + bytes(5, "q") + node("Not", {"c"}, {"q"}, "", "", 7));
  EXPECT_THAT(error_of(model(input("c", {}, 9) + node("F0", {"c"}, {"y"}, bytes(7, "local")) + output("y"), 21, functions + local)),
              HasSubstr("nested more than"));
}

}  // namespace
}  // namespace unmoor
