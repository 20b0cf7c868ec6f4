#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/formats/model_text.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;
using testing::HasSubstr;

std::string list(std::string_view name, const std::vector<std::string>& texts) {
  std::string text = bytes(1, name);
  for (const auto& each : texts) text += bytes(9, each);
  return bytes(5, cat(text, number(20, 8)));
}

std::string list(std::string_view name, const std::vector<float>& values) {
  std::string text = bytes(1, name);
  for (const float value : values) text += real(7, value);
  return bytes(5, cat(text, number(20, 6)));
}

// A LabelEncoder as an opset had it, with an input of this dtype.
std::string encoder(int64_t version, std::string_view attributes, int64_t dtype) {
  const std::string domain = bytes(7, "ai.onnx.ml");
  const std::string graph =
      cat(input("x", {3}, dtype), node("LabelEncoder", {"x"}, {"y"}, cat(attributes, domain), "n"), output("y"));
  return model(graph, 21, version == 0 ? "" : opset(version, "ai.onnx.ml"));
}

constexpr int64_t float_type = 1;
constexpr int64_t int64_type = 7;
constexpr int64_t string_type = 8;

template <class T>
T attribute_of(const Graph& graph, std::string_view name) {
  return std::get<T>(graph.nodes().back().attributes.find(name)->second);
}

TEST(MlOpsets, a_list_of_classes_becomes_keys_and_values) {
  const std::string classes = list("classes_strings", std::vector<std::string>{"a", "b"});
  const Graph from_texts = read_text(encoder(1, classes, string_type));
  EXPECT_THAT(attribute_of<std::vector<std::string>>(from_texts, "keys_strings"), ElementsAre("a", "b"));
  EXPECT_THAT(attribute_of<std::vector<int64_t>>(from_texts, "values_int64s"), ElementsAre(0, 1));
  const Graph from_numbers = read_text(encoder(1, classes, int64_type));
  EXPECT_THAT(attribute_of<std::vector<int64_t>>(from_numbers, "keys_int64s"), ElementsAre(0, 1));
  EXPECT_THAT(attribute_of<std::vector<std::string>>(from_numbers, "values_strings"), ElementsAre("a", "b"));
  EXPECT_EQ(from_numbers.nodes().back().op, "ai.onnx.ml:LabelEncoder");
  EXPECT_THAT(error_of(encoder(1, "", int64_type)), HasSubstr("'classes_strings' is missing"));
}

TEST(MlOpsets, float_keys_are_compared_bit_by_bit_before_opset_4) {
  const std::string attributes =
      cat(list("keys_floats", std::vector<float>{0, 2}), list("values_floats", std::vector<float>{5, 6}));
  EXPECT_EQ(summary(read_text(encoder(2, attributes, float_type))),
            "BitCast(x)->n/BitCast; ai.onnx.ml:LabelEncoder(n/BitCast)->y");
  EXPECT_THAT(integers(attribute_of<Tensor>(read_text(encoder(3, attributes, float_type)), "keys_tensor")),
              ElementsAre(0, 0x40000000));
  EXPECT_EQ(summary(read_text(encoder(4, attributes, float_type))), "ai.onnx.ml:LabelEncoder(x)->y");
  const std::string plain = cat(list("keys_floats", std::vector<float>{1, 2}), list("values_floats", std::vector<float>{5, 6}));
  EXPECT_EQ(summary(read_text(encoder(2, plain, float_type))), "ai.onnx.ml:LabelEncoder(x)->y");
}

TEST(MlOpsets, unknown_and_missing_ones_are_refused) {
  const std::string attributes = cat(list("keys_floats", std::vector<float>{1}), list("values_floats", std::vector<float>{5}));
  EXPECT_THAT(error_of(encoder(6, attributes, float_type)), HasSubstr("opset 6 of ai.onnx.ml; the newest one known here is 5"));
  EXPECT_THAT(error_of(encoder(0, attributes, float_type)), HasSubstr("imports no opset of it"));
}

}  // namespace
}  // namespace unmoor
