#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Op example() {
  Op op;
  op.name = "Example";
  op.inputs = {{"X", {DType::F32, DType::F16}}, {"S", {DType::I64}, Arity::Optional}};
  op.attributes = {{"alpha", 1.0F}, {"mode", std::string("a")}};
  return op;
}

std::vector<std::string> texts_of(const std::vector<Case>& cases) {
  std::vector<std::string> texts;
  for (const auto& a_case : cases) texts.push_back(a_case.text);
  return texts;
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Cases, alternatives_and_dtypes_multiply) {
  Op op = example();
  op.cases = {"T[2,17] axis=-1,0"};
  EXPECT_THAT(texts_of(cases_of(op, {DType::F32, DType::I64, DType::F16})),
              ElementsAre("Example f32[2,17] axis=-1", "Example f32[2,17] axis=0", "Example f16[2,17] axis=-1",
                          "Example f16[2,17] axis=0"));
}

TEST(Cases, a_text_without_T_gives_one_case) {
  Op op = example();
  op.cases = {"f16[2] i64[1]{4}"};
  EXPECT_EQ(cases_of(op, {DType::F32, DType::F16}).size(), 1U);
}

TEST(Cases, integers_are_given_no_fractions) {
  Op op = example();
  op.inputs[0].dtypes = {DType::F32, DType::I32};
  op.cases = {"T[1]{0.5}", "T[1]{2}"};
  EXPECT_THAT(texts_of(cases_of(op, {DType::F32, DType::I32})),
              ElementsAre("Example f32[1]{0.5}", "Example f32[1]{2}", "Example i32[1]{2}"));
  EXPECT_THAT(error_of([] { (void)parse_case("Example i32[1]{0.5}"); }), HasSubstr("fraction"));
}

TEST(Cases, lists_quotes_and_tensors_are_single_alternatives) {
  Op op = example();
  op.cases = {"T[2] pads=[1,1],[0,1] mode=\"a,b c\" value=T[2]{3,4} to=T,i64"};
  const auto cases = cases_of(op, {DType::F16});
  ASSERT_EQ(cases.size(), 4U);
  EXPECT_EQ(std::get<std::vector<int64_t>>(cases[0].attributes.at("pads")), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(std::get<std::string>(cases[0].attributes.at("mode")), "a,b c");
  EXPECT_EQ(std::get<Tensor>(cases[0].attributes.at("value")).dtype(), DType::F16);
  EXPECT_EQ(std::get<int64_t>(cases[0].attributes.at("to")), onnx_number(DType::F16));
  EXPECT_EQ(std::get<int64_t>(cases[1].attributes.at("to")), onnx_number(DType::I64));
}

TEST(Cases, the_default_decides_between_integer_and_float) {
  Op op = example();
  op.cases = {"T[2] alpha=2 other=2 mode=7"};
  const auto cases = cases_of(op, {DType::F32});
  EXPECT_EQ(std::get<float>(cases.at(0).attributes.at("alpha")), 2.0F);
  EXPECT_EQ(std::get<int64_t>(cases.at(0).attributes.at("other")), 2);
}

TEST(Cases, inputs_can_be_absent_given_constant_or_generated) {
  const Case a_case = parse_case("Example f32[3]~positive - i64[2]{6,-4} f32[4]! string[2]{a,\"b, c\"} bool[] outputs=2");
  ASSERT_EQ(a_case.inputs.size(), 6U);
  EXPECT_EQ(a_case.inputs[0].generator, "positive");
  EXPECT_FALSE(a_case.inputs[0].constant);
  EXPECT_FALSE(a_case.inputs[1].present);
  EXPECT_THAT(a_case.inputs[2].values, ElementsAre(6, -4));
  EXPECT_TRUE(a_case.inputs[2].constant);
  EXPECT_TRUE(a_case.inputs[3].constant);
  EXPECT_THAT(a_case.inputs[4].texts, ElementsAre("a", "b, c"));
  EXPECT_EQ(a_case.inputs[5].type.shape.rank(), 0U);
  EXPECT_EQ(a_case.outputs, 2U);
}

TEST(Cases, a_constant_can_name_its_generator) {
  for (const char* text : {"Example f32[3]!~positive", "Example f32[3]~positive!"}) {
    const Case a_case = parse_case(text);
    EXPECT_TRUE(a_case.inputs[0].constant);
    EXPECT_EQ(a_case.inputs[0].generator, "positive");
  }
}

TEST(Cases, a_text_can_be_pasted_back) {
  const std::string text = "Example f32[3]~unit - i64[2]{6,4} axis=-1 pads=[1,2]";
  EXPECT_EQ(parse_case(text).text, text);
}

TEST(Cases, broken_texts_say_what_is_wrong) {
  EXPECT_THAT(error_of([] { (void)parse_case(""); }), HasSubstr("needs an operator's name"));
  EXPECT_THAT(error_of([] { (void)parse_case("Relu f99[2]"); }), HasSubstr("'f99[2]'"));
  EXPECT_THAT(error_of([] { (void)parse_case("Relu f32[2"); }), HasSubstr("not closed"));
  EXPECT_THAT(error_of([] { (void)parse_case("Relu f32[2]{1}"); }), HasSubstr("1 values for 2 elements"));
  EXPECT_THAT(error_of([] { (void)parse_case("Relu f32[2]?"); }), HasSubstr("makes no sense"));
  EXPECT_THAT(error_of([] { (void)parse_case("Relu f32[99999999,99999999]"); }), HasSubstr("elements"));
  EXPECT_THAT(error_of([] { (void)parse_case("Relu f32[2] axis=1,2"); }), HasSubstr("alternatives"));
  EXPECT_THAT(error_of([] { (void)build_case(parse_case("Relu f32[2]~nothing")); }), HasSubstr("'nothing'"));
  EXPECT_THAT(error_of([] { (void)build_case(parse_case("Relu f32[2]~index:x")); }), HasSubstr("positive number"));
}

std::vector<double> generated(const std::string& word) {
  return doubles(build_case(parse_case(cat("Nobody ", word))).inputs.at(0).tensor());
}

TEST(Cases, the_text_seeds_the_inputs) {
  EXPECT_EQ(generated("f32[50]"), generated("f32[50]"));
  EXPECT_NE(generated("f32[50] a=1"), generated("f32[50] a=2"));
}

TEST(Cases, default_floats_have_what_breaks_kernels) {
  bool negative_zero = false;
  bool denormal = false;
  bool large = false;
  bool tie = false;
  for (const double value : generated("f32[1000]")) {
    negative_zero |= value == 0 && std::signbit(value);
    denormal |= value != 0 && std::abs(value) < 1e-38;
    large |= std::abs(value) >= 60000;
    tie |= value == 2.5;
  }
  EXPECT_TRUE(negative_zero && denormal && large && tie);
}

TEST(Cases, generators_keep_their_ranges) {
  for (const double value : generated("f32[500]~positive")) EXPECT_GT(value, 0);
  for (const double value : generated("f32[500]~unit")) EXPECT_TRUE(value >= 0 && value <= 1);
  for (const double value : generated("f32[500]~small")) EXPECT_LT(std::abs(value), 10);
  for (const double value : generated("i64[500]~index:7")) EXPECT_TRUE(value >= 0 && value < 7);
  double least = 0;
  for (const double value : generated("i64[500]~signed_index:7")) {
    EXPECT_TRUE(value >= -7 && value < 7);
    least = std::min(least, value);
  }
  EXPECT_EQ(least, -7);
  size_t nans = 0;
  for (const double value : generated("f32[500]~special")) nans += std::isnan(value) ? 1U : 0U;
  EXPECT_GE(nans, 1U);
  const auto mask = generated("f32[8,3]~mask");
  for (size_t i = 0; i < mask.size(); ++i) EXPECT_TRUE(mask[i] == 0 || (std::isinf(mask[i]) && i % 3 != 0));
}

TEST(Cases, constants_stay_in_the_graph) {
  const CaseGraph built = build_case(parse_case("Nobody f32[3] i64[2]{6,9223372036854775807} f32[2]!"));
  EXPECT_EQ(built.inputs.size(), 1U);
  const Node& node = built.graph.node(NodeId{0});
  ASSERT_EQ(node.inputs.size(), 3U);
  const Tensor* constant = built.graph.constant_tensor(node.inputs[1]);
  ASSERT_NE(constant, nullptr);
  EXPECT_THAT(integers(*constant), ElementsAre(6, INT64_MAX));
  EXPECT_NE(built.graph.constant_tensor(node.inputs[2]), nullptr);
}

}  // namespace
}  // namespace unmoor
