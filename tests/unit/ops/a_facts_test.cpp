#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/ops/one_call.h"

// What operators do at the edges. ONNX's own node tests cover the middle.
namespace unmoor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::refusal;
using test::result;
using test::run;
using test::whole_result;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

void expect_same(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(wanted[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << "element " << i << " is " << found[i];
    } else {
      EXPECT_EQ(found[i], wanted[i]) << "element " << i;
      EXPECT_EQ(std::signbit(found[i]), std::signbit(wanted[i])) << "element " << i;
    }
  }
}

TEST(Arithmetic, integers_wrap_around) {
  EXPECT_THAT(whole_result("Add u8[2]{255,1} u8[2]{1,1}"), ElementsAre(0, 2));
  EXPECT_THAT(whole_result("Mul i8[1]{100} i8[1]{3}"), ElementsAre(44));
  EXPECT_THAT(whole_result("Sub u32[1]{0} u32[1]{1}"), ElementsAre(4294967295));
  EXPECT_THAT(whole_result("Neg i8[1]{-128}"), ElementsAre(-128));
  EXPECT_THAT(whole_result("Pow i32[2]{3,2} i32[2]{2,31}"), ElementsAre(9, -2147483648));
}

TEST(Arithmetic, integer_division_truncates_and_survives_zero) {
  EXPECT_THAT(whole_result("Div i32[4]{7,-7,7,-7} i32[4]{2,2,-2,0}"), ElementsAre(3, -3, -3, 0));
  EXPECT_THAT(whole_result("Div i8[1]{-128} i8[1]{-1}"), ElementsAre(-128));
  EXPECT_THAT(whole_result("Mod i32[3]{-7,7,7} i32[3]{3,-3,0}"), ElementsAre(2, -2, 0));
  EXPECT_THAT(whole_result("Mod i32[2]{-7,7} i32[2]{3,-3} fmod=1"), ElementsAre(-1, 1));
}

TEST(Arithmetic, float_modulo_has_the_sign_that_onnx_says) {
  expect_same(result("Mod f64[5]{0,-3,3,-1,1} f64[5]{-2,inf,inf,-inf,0}"), {-0.0, infinity, 3, -1, nan});
}

TEST(Arithmetic, maximum_and_minimum_keep_nan) {
  expect_same(result("Max f32[3]{nan,1,2} f32[3]{1,nan,1}"), {nan, nan, 2});
  expect_same(result("Min f32[3]{nan,1,2} f32[3]{1,nan,1}"), {nan, nan, 1});
}

TEST(Unary, round_goes_to_even) { expect_same(result("Round f32[6]{-2.5,-1.5,-0.5,0.5,1.5,2.5}"), {-2, -2, -0.0, 0, 2, 2}); }

TEST(Clip, gives_the_maximum_where_bounds_cross) {
  expect_same(result("Clip f32[3]{-9,0,nan} f32[]{2} f32[]{-2}"), {-2, -2, nan});
}

TEST(Activation, relu_keeps_nan) { expect_same(result("Relu f32[3]{nan,-1,2}"), {nan, 0, 2}); }

TEST(Shift, keeps_the_sign_to_the_right) {
  EXPECT_THAT(whole_result("BitShift i8[3]{-8,4,-1} i8[3]{1,-1,8} direction=RIGHT"), ElementsAre(-4, 0, -1));
  EXPECT_THAT(whole_result("BitShift u64[1]{9223372036854775807} u64[1]{64} direction=RIGHT"), ElementsAre(0));
}

TEST(Reduce, of_nothing_is_the_neutral_element) {
  expect_same(result("ReduceSum f32[2,0] i64[1]{1}! keepdims=0"), {0, 0});
  expect_same(result("ReduceMax f32[1,0] i64[1]{1}! keepdims=0"), {-infinity});
  EXPECT_THAT(whole_result("ReduceMin u8[1,0] i64[1]{1}! keepdims=0"), ElementsAre(255));
  EXPECT_THAT(whole_result("ReduceMax i64[1,0] i64[1]{1}! keepdims=0"), ElementsAre(std::numeric_limits<int64_t>::min()));
}

TEST(Reduce, log_sum_exp_does_not_overflow) {
  EXPECT_NEAR(result("ReduceLogSumExp f32[2]{1000,1000}").at(0), 1000.6931, 1e-3);
  expect_same(result("ReduceLogSumExp f32[2]{-inf,-inf}"), {-infinity});
}

TEST(Arg, prefers_the_first_or_the_last_and_nan) {
  EXPECT_THAT(whole_result("ArgMax f32[4]{1,3,3,2}"), ElementsAre(1));
  EXPECT_THAT(whole_result("ArgMax f32[4]{1,3,3,2} select_last_index=1"), ElementsAre(2));
  EXPECT_THAT(whole_result("ArgMin f32[4]{1,nan,-3,nan}"), ElementsAre(1));
}

TEST(Pool, ceil_mode_starts_no_window_in_the_padding) {
  EXPECT_EQ(run("MaxPool f32[1,1,6,6] kernel_shape=[2,2] strides=[3,3] pads=[1,1,1,1] ceil_mode=1")[0].tensor().shape(),
            (Shape{1, 1, 3, 3}));
  EXPECT_EQ(run("AveragePool f32[1,1,4] kernel_shape=[2] strides=[3] pads=[1,1] ceil_mode=1")[0].tensor().shape(),
            (Shape{1, 1, 2}));
}

TEST(Conv, gives_the_same_in_both_layouts) {
  expect_same(result("Conv f32[1,1,2,2]{1,2,3,4} f32[1,1,2,2]{1,10,100,1000} f32[1]{5}"), {4326});
  expect_same(result("Conv f32[1,2,2,1]{1,2,3,4} f32[1,1,2,2]{1,10,100,1000} f32[1]{5} layout=NHWC"), {4326});
}

TEST(Recurrent, a_short_sequence_leaves_zeros) {
  const auto out =
      run("RNN f32[3,1,1]{1,1,1} f32[1,1,1]{1} f32[1,1,1]{0} - i32[1]{2} hidden_size=1 activations=[Relu] outputs=2");
  EXPECT_THAT(doubles(out[0].tensor()), ElementsAre(1, 1, 0));
  EXPECT_THAT(doubles(out[1].tensor()), ElementsAre(1));
}

TEST(Quantize, rounds_ties_to_even_and_saturates) {
  EXPECT_THAT(whole_result("QuantizeLinear f32[6]{-2.5,-0.5,0.5,1.5,300,-300} f32[]{1} i8[]{0}"),
              ElementsAre(-2, 0, 0, 2, 127, -128));
  EXPECT_THAT(whole_result("QuantizeLinear f32[2]{nan,inf} f32[]{1} u8[]{3}"), ElementsAre(3, 255));
}

TEST(Refusals, name_what_does_not_fit) {
  EXPECT_THAT(refusal("MatMul f32[2,3] f32[4,5]"), HasSubstr("3 = 4"));
  EXPECT_THAT(refusal("Conv f32[1,3,8,8] f32[4,2,3,3]"), HasSubstr("do not fit with group 1"));
  EXPECT_THAT(refusal("Conv f32[1,3,2,2] f32[4,3,3,3]"), HasSubstr("does not fit in spatial axis 0"));
  EXPECT_THAT(refusal("Conv f32[1,3,8,8] f32[4,3,3,3] strides=[0,1]"), HasSubstr("strides has the value 0"));
  EXPECT_THAT(refusal("Softmax f32[2,3] axis=2"), HasSubstr("axis 2"));
  EXPECT_THAT(refusal("Add f32[2] f64[2]"), HasSubstr("float64, not float32"));
  EXPECT_THAT(refusal("MaxPool f32[1,1,4,4] kernel_shape=[2]"), HasSubstr("spatial axes"));
  EXPECT_THAT(refusal("GroupNormalization f32[1,6,2] f32[6] f32[6] num_groups=4"), HasSubstr("num_groups is 4"));
  EXPECT_THAT(refusal("Einsum f32[2,3] equation=\"i->i\""), HasSubstr("does not fit its term"));
  EXPECT_THAT(refusal("unmoor:FusedMatMul f32[2,3] f32[3,4] activation=Nope"), HasSubstr("Nope"));
}

}  // namespace
}  // namespace unmoor
