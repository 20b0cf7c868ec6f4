#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/ops/one_call.h"

namespace unmoor {
namespace {

using test::refusal;
using test::result;
using test::run;
using test::whole_result;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CenterCropPad, cuts_and_pads_around_the_middle) {
  EXPECT_THAT(result("CenterCropPad f32[5]{1,2,3,4,5} i64[1]{2}"), ElementsAre(2, 3));
  EXPECT_THAT(result("CenterCropPad f32[2]{1,2} i64[1]{5}"), ElementsAre(0, 1, 2, 0, 0));
  EXPECT_THAT(refusal("CenterCropPad f32[2,2] i64[1]{5}"), HasSubstr("1 sizes were given for 2 axes"));
  EXPECT_THAT(refusal("CenterCropPad f32[2] i64[1]{-5}"), HasSubstr("-5"));
}

TEST(Col2Im, adds_where_blocks_overlap) {
  EXPECT_THAT(result("Col2Im f32[1,2,3]{1,2,3,10,20,30} i64[1]{4} i64[1]{2}"), ElementsAre(1, 12, 23, 30));
  EXPECT_THAT(whole_result("Col2Im i8[1,2,3]{100,2,3,10,100,30} i64[1]{4} i64[1]{2}"), ElementsAre(100, 12, 103, 30));
  EXPECT_THAT(refusal("Col2Im f32[1,3,4] i64[2]{3,3} i64[2]{2,2}"), HasSubstr("3 rows do not hold blocks of 4"));
  EXPECT_THAT(refusal("Col2Im f32[1,4,5] i64[2]{3,3} i64[2]{2,2}"), HasSubstr("number of blocks"));
  EXPECT_THAT(refusal("Col2Im f32[1,4,4] i64[2]{3,3} i64[1]{2}"), HasSubstr("block_shape"));
  EXPECT_THAT(refusal("Col2Im f32[1,4,4] i64[2]{3,0} i64[2]{2,2}"), HasSubstr("size 0"));
}

TEST(DeformConv, without_offsets_is_a_convolution) {
  const std::string sizes = "f32[1,1,3,3]{1,2,3,4,5,6,7,8,9} f32[1,1,2,2]{1,10,100,1000}";
  const std::string zeros = " f32[1,8,2,2]{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}";
  EXPECT_EQ(result(cat("DeformConv ", sizes, zeros)), result(cat("Conv ", sizes)));
}

TEST(DeformConv, samples_between_pixels_and_zeros_outside) {
  EXPECT_THAT(result("DeformConv f32[1,1,2,2]{1,2,3,4} f32[1,1,1,1]{1} f32[1,2,2,2]{0.5,0,-0.5,0,0.5,0,0,-9}"),
              ElementsAre(2.5, 2, 2, 0));
  const auto outside = result("DeformConv f32[1,1,1,2]{1,2} f32[1,1,1,1]{1} f32[1,2,1,2]{inf,nan,0,0}");
  EXPECT_THAT(outside, ElementsAre(0, 0));
  EXPECT_THAT(refusal("DeformConv f32[1,1,3,3] f32[1,1,2,2] f32[1,8,3,3]"), HasSubstr("a size of input 2"));
  EXPECT_THAT(refusal("DeformConv f32[1,3,3,3] f32[1,3,2,2] f32[1,16,2,2] offset_group=2"), HasSubstr("offset_group is 2"));
}

TEST(MaxRoiPool, takes_the_greatest_of_each_bin) {
  const std::string image = "f32[1,1,3,3]{1,2,3,4,5,6,7,8,9}";
  EXPECT_THAT(result(cat("MaxRoiPool ", image, " f32[1,5]{0,0,0,2,2} pooled_shape=[2,2]")), ElementsAre(5, 6, 8, 9));
  EXPECT_THAT(result(cat("MaxRoiPool ", image, " f32[1,5]{0,2,2,7,7} pooled_shape=[1,2]")), ElementsAre(9, 0));
  EXPECT_THAT(refusal(cat("MaxRoiPool ", image, " f32[1,5]{1,0,0,2,2} pooled_shape=[2,2]")), HasSubstr("item 1 of a batch of 1"));
  EXPECT_THAT(refusal(cat("MaxRoiPool ", image, " f32[1,5]{0,0,nan,2,2} pooled_shape=[2,2]")), HasSubstr("coordinate nan"));
  EXPECT_THAT(refusal(cat("MaxRoiPool ", image, " f32[1,5]{0,0,0,2,2} pooled_shape=[0,2]")), HasSubstr("pooled_shape"));
}

TEST(MaxUnpool, undoes_max_pool) {
  const std::string pooling = " kernel_shape=[2,2] strides=[2,2]";
  const auto pooled = run(cat("MaxPool f32[1,1,4,4]{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16} outputs=2", pooling));
  EXPECT_THAT(integers(pooled[1].tensor()), ElementsAre(5, 7, 13, 15));
  EXPECT_THAT(result(cat("MaxUnpool f32[1,1,2,2]{6,8,14,16} i64[1,1,2,2]{5,7,13,15}", pooling)),
              ElementsAre(0, 0, 0, 0, 0, 6, 0, 8, 0, 0, 0, 0, 0, 14, 0, 16));
  EXPECT_THAT(refusal(cat("MaxUnpool f32[1,1,2,2] i64[1,1,2,2]{5,7,13,16}", pooling)), HasSubstr("place 16"));
  EXPECT_THAT(refusal(cat("MaxUnpool f32[1,1,2,2] i64[1,1,2,2]{5,7,13,15} i64[4]{1,1,3,5}", pooling)), HasSubstr("smaller than"));
}

TEST(Det, is_of_a_permutation_its_sign) {
  EXPECT_THAT(result("Det f32[2,2,2]{0,1,1,0,1,2,3,4}"), ElementsAre(-1, -2));
  EXPECT_THAT(result("Det f32[2,0,0]"), ElementsAre(1, 1));
  EXPECT_THAT(refusal("Det f32[2,3]"), HasSubstr("square"));
}

TEST(Loss, leaves_out_what_is_ignored) {
  const std::string scores = "f32[2,2]{-1,-2,-4,-8} i64[2]{0,1}";
  EXPECT_THAT(result(cat("NegativeLogLikelihoodLoss ", scores)), ElementsAre(4.5));
  EXPECT_THAT(result(cat("NegativeLogLikelihoodLoss ", scores, " ignore_index=0")), ElementsAre(8));
  EXPECT_THAT(result(cat("NegativeLogLikelihoodLoss ", scores, " f32[2]{1,3}")), ElementsAre(25.0 / 4));
  EXPECT_TRUE(std::isnan(result("NegativeLogLikelihoodLoss f32[1,2] i64[1]{0} ignore_index=0")[0]));
  EXPECT_THAT(refusal("NegativeLogLikelihoodLoss f32[1,2] i64[1]{2}"), HasSubstr("target 2 is none of 2 classes"));
  EXPECT_THAT(refusal("SoftmaxCrossEntropyLoss f32[1,2] i64[1]{-1} ignore_index=-2"), HasSubstr("target -1"));
  EXPECT_THAT(refusal("SoftmaxCrossEntropyLoss f32[1,2] i64[1]{0} reduction=median"), HasSubstr("median"));
}

TEST(Training, refuses_tensors_without_their_gradients) {
  EXPECT_THAT(refusal("ai.onnx.preview.training:Adam f32[] i64[]{0} f32[2] f32[2] f32[2]"), HasSubstr("3 tensors are not 4"));
  EXPECT_THAT(refusal("ai.onnx.preview.training:Adagrad f32[2] i64[]{0} f32[2] f32[2] f32[2]"), HasSubstr("not one element"));
  EXPECT_THAT(refusal("ai.onnx.preview.training:Adagrad f32[] i64[]{0} f32[2] f32[3] f32[2]"),
              HasSubstr("input 3 has shape [3]"));
  EXPECT_THAT(refusal("ai.onnx.preview.training:Momentum f32[] i64[]{0} f32[2] f32[2] f32[2] mode=standard beta=0.5"),
              HasSubstr("'alpha'"));
  EXPECT_THAT(why_absent("ai.onnx.preview.training:Gradient"), HasSubstr("derivatives"));
}

}  // namespace
}  // namespace unmoor
