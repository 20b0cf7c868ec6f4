#include "unmoor/workbench/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

Metrics compared(const Tensor& expected, const Tensor& actual) { return compare(expected, actual, actual.dtype(), std::nullopt); }

Tensor floats(const std::vector<float>& values) { return Tensor::from<float>(Shape{static_cast<int64_t>(values.size())}, values); }

TEST(Compare, equal_values_are_fine_and_others_are_not) {
  EXPECT_TRUE(compared(floats({1, -2, 3}), floats({1, -2, 3})).fine());
  const Metrics metrics = compared(floats({1, -2, 3}), floats({1, -2, 3.01F}));
  EXPECT_FALSE(metrics.fine());
  EXPECT_EQ(metrics.worst, 2U);
  EXPECT_NEAR(metrics.max_abs, 0.01, 1e-6);
}

TEST(Compare, a_mask_does_not_hide_what_lies_beside_it) {
  for (const float mask : {-1e4F, -65504.F, -1e9F, -3.4e38F}) {
    std::vector<float> scores{0.5F, -1.5F, 2, 3, mask, mask, mask};
    const Tensor expected = floats(scores);
    scores[0] = 0.6F;
    EXPECT_FALSE(compared(expected, floats(scores)).fine()) << mask;
    scores[0] = 0.500001F;
    EXPECT_TRUE(compared(expected, floats(scores)).fine()) << mask;
  }
  EXPECT_FALSE(compared(floats({0, 0, -1e9F, -1e9F}), floats({0, 5, -1e9F, -1e9F})).fine());
}

TEST(Compare, large_values_that_are_no_mask_count_for_the_size) {
  // One value, positive ones, and values of many sizes: sums that round as the largest of them do.
  EXPECT_TRUE(compared(floats({1, 2, -3e4F}), floats({1.1F, 2, -3e4F})).fine());
  EXPECT_TRUE(compared(floats({1, 2, 3e4F, 3e4F}), floats({1.1F, 2, 3e4F, 3e4F})).fine());
  EXPECT_TRUE(compared(floats({1, 2, -900, -3e4F, -3e4F}), floats({1.1F, 2, -900, -3e4F, -3e4F})).fine());
}

TEST(Compare, integers_beyond_the_digits_of_a_double_are_compared_exactly) {
  const int64_t large = (int64_t{1} << 60) + 1;
  const Metrics metrics = compared(Tensor::from<int64_t>({2}, {1, large}), Tensor::from<int64_t>({2}, {1, large + 1}));
  EXPECT_FALSE(metrics.fine());
  EXPECT_EQ(metrics.max_abs, 1);
  EXPECT_EQ(metrics.worst, 1U);
  EXPECT_TRUE(compared(Tensor::from<int64_t>({1}, {large}), Tensor::from<int64_t>({1}, {large})).fine());
}

TEST(Compare, quantised_integers_may_fall_to_the_next_step_seldom) {
  std::vector<uint8_t> values(100, 7);
  const Tensor expected = Tensor::from<uint8_t>({100}, values);
  values[3] = 8;
  EXPECT_TRUE(agrees_as_quantised(compared(expected, Tensor::from<uint8_t>({100}, values))));
  values[3] = 9;
  EXPECT_FALSE(agrees_as_quantised(compared(expected, Tensor::from<uint8_t>({100}, values))));
  values.assign(100, 8);
  EXPECT_FALSE(agrees_as_quantised(compared(expected, Tensor::from<uint8_t>({100}, values))));
}

TEST(Compare, sixteen_bits_are_counted_in_stored_steps) {
  const auto stored = [](DType dtype, const std::vector<double>& values) {
    Tensor tensor(TensorType{dtype, Shape{static_cast<int64_t>(values.size())}});
    store(tensor, std::span<const double>(values));
    return tensor;
  };
  const auto steps = [&](DType dtype, double expected, double actual) {
    return compared(stored(dtype, {expected, 1000}), stored(dtype, {actual, 1000})).ulp_max;
  };
  EXPECT_EQ(steps(DType::F16, 1, 1 + 0x1p-10), 1);
  EXPECT_EQ(steps(DType::F16, 1.5, 1.5 + 0x1p-9), 2);
  EXPECT_EQ(steps(DType::BF16, -3, -3 - 0x1p-6), 1);
  EXPECT_EQ(steps(DType::F16, 0, 0x1p-24), 1);
  EXPECT_EQ(steps(DType::F16, 0x1p-24, 3 * 0x1p-24), 2);
  // The tolerance that is scaled by the tensor's size would let this pass.
  const Metrics small = compared(stored(DType::F16, {0.01, 1000}), stored(DType::F16, {0.02, 1000}));
  EXPECT_TRUE(small.fine());
  EXPECT_FALSE(within_steps(small, 2));
}

TEST(Compare, nan_and_infinities_must_stand_where_they_are_expected) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compared(floats({nan, infinity, 1}), floats({nan, infinity, 1})).fine());
  EXPECT_FALSE(compared(floats({nan, 1}), floats({0, 1})).fine());
  EXPECT_FALSE(compared(floats({infinity, 1}), floats({-infinity, 1})).fine());
  EXPECT_FALSE(compared(floats({0, 1}), floats({nan, 1})).fine());
}

TEST(Compare, a_sequence_is_as_bad_as_its_worst_item) {
  const Sequence expected{{Data(floats({1, 2})), Data(floats({3}))}};
  const Sequence actual{{Data(floats({1, 2})), Data(floats({4}))}};
  const Metrics metrics = compare(expected, actual, DType::F32, std::nullopt);
  EXPECT_FALSE(metrics.fine());
  EXPECT_EQ(metrics.max_abs, 1);
  EXPECT_EQ(metrics.elements, 3U);
  EXPECT_FALSE(compare(expected, Sequence{{Data(floats({1, 2}))}}, DType::F32, std::nullopt).fine());
}

TEST(Compare, other_shapes_and_types_are_a_problem) {
  EXPECT_NE(compared(floats({1, 2}), floats({1})).problem, "");
  EXPECT_NE(compared(floats({1}), Tensor::from<int64_t>({1}, {1})).problem, "");
}

}  // namespace
}  // namespace unmoor
