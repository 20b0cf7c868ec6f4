#include "unmoor/workbench/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace unmoor {
namespace {

using testing::HasSubstr;

Metrics errors(double e, double p) {
  Metrics metrics;
  metrics.elements = 100;
  metrics.excess_e = e;
  metrics.excess_p = p;
  metrics.rel_l2 = e * 1e-7;
  metrics.max_abs = p * 1e-7;
  return metrics;
}

Metrics nan_at(const std::vector<bool>& places) {
  Metrics metrics = errors(1, 1);
  metrics.excess_e = metrics.excess_p = std::nullopt;
  metrics.class_mismatch = static_cast<size_t>(std::ranges::count(places, true));
  metrics.mismatched = places;
  return metrics;
}

// A baseline that shows x and y, and has these errors in y.
Baseline baseline_with(const Metrics& metrics, ValueVerdict verdict, DType dtype = DType::F32) {
  AlignResult result;
  result.target = "old";
  AlignedValue x{"x", "", "", DType::F32};
  AlignedValue y{"y", "node", "Op", dtype};
  y.single = y.entire = metrics;
  y.single_verdict = y.entire_verdict = verdict;
  result.values = {x, y};
  return {std::move(result), {}};
}

Judgement weighed(const Baseline& baseline, const Metrics& target, std::vector<std::string> reads = {"x"}, ValueVerdict verdict = ValueVerdict::Differ) {
  Judgement judged{target, verdict};
  baseline.weigh_kernel(reads, "y", DType::F32, judged);
  return judged;
}

TEST(Baseline, an_error_up_to_twice_the_baselines_is_as_the_baseline) {
  const Baseline baseline = baseline_with(errors(10, 40), ValueVerdict::Differ);
  EXPECT_EQ(weighed(baseline, errors(20, 80)).verdict, ValueVerdict::AsBaseline);
  EXPECT_EQ(weighed(baseline, errors(20.1, 40)).verdict, ValueVerdict::Differ);
  EXPECT_EQ(weighed(baseline, errors(10, 81)).verdict, ValueVerdict::Differ) << "one element is further off than any of the baseline's";
}

TEST(Baseline, what_rounding_explains_of_the_target_is_not_held_against_the_baseline) {
  const Baseline baseline = baseline_with(errors(1, 20), ValueVerdict::Suspicious);
  EXPECT_EQ(weighed(baseline, errors(2.9, 21)).verdict, ValueVerdict::AsBaseline) << "E is 2.9 times the baseline's, and explained";
}

TEST(Baseline, a_right_baseline_excuses_nothing) {
  Metrics right = errors(0, 0);
  right.excess_e = right.excess_p = std::nullopt;  // No noise had to be looked at.
  right.rel_l2 = right.max_abs = 1e300;
  EXPECT_EQ(weighed(baseline_with(right, ValueVerdict::Match), errors(6, 6)).verdict, ValueVerdict::Differ);
}

TEST(Baseline, a_match_stays_one_whatever_the_baseline_is) {
  const Judgement judged = weighed(baseline_with(errors(1e6, 1e6), ValueVerdict::Differ), errors(1, 1), {"x"}, ValueVerdict::Explained);
  EXPECT_EQ(judged.verdict, ValueVerdict::Explained);
  EXPECT_EQ(judged.note, "");
}

TEST(Baseline, nan_where_the_baseline_has_them_are_shared_and_others_are_not) {
  const Baseline baseline = baseline_with(nan_at({true, false, true, false}), ValueVerdict::Differ);
  EXPECT_EQ(weighed(baseline, nan_at({true, false, true, false})).verdict, ValueVerdict::AsBaseline);
  EXPECT_EQ(weighed(baseline, nan_at({true, false, false, false})).verdict, ValueVerdict::AsBaseline);
  EXPECT_EQ(weighed(baseline, nan_at({false, true, false, false})).verdict, ValueVerdict::Differ);
  Metrics unplaced = nan_at({});
  unplaced.class_mismatch = 1;
  EXPECT_EQ(weighed(baseline, unplaced).verdict, ValueVerdict::Differ) << "statistics do not say where they are";
  Metrics far = nan_at({true, false, false, false});
  far.over = far.rel_l2 = 5;
  EXPECT_EQ(weighed(baseline, far).verdict, ValueVerdict::Differ) << "the numbers beside the NaN are wrong, too";
}

TEST(Baseline, another_shape_is_shared_only_if_it_is_the_same) {
  Metrics shape;
  shape.problem = "the shape is [2], not [3]";
  const Baseline baseline = baseline_with(shape, ValueVerdict::Differ);
  EXPECT_EQ(weighed(baseline, shape).verdict, ValueVerdict::AsBaseline);
  Metrics other;
  other.problem = "the shape is [1], not [3]";
  EXPECT_EQ(weighed(baseline, other).verdict, ValueVerdict::Differ);
  EXPECT_EQ(weighed(baseline, errors(6, 6)).verdict, ValueVerdict::Differ);
}

TEST(Baseline, integers_are_weighed_by_how_many_differ_and_how_far) {
  Metrics base;
  base.elements = 100;
  base.max_abs = 1;
  base.frac_over = 0.1;
  const Baseline baseline = baseline_with(base, ValueVerdict::Differ);
  EXPECT_EQ(weighed(baseline, base).verdict, ValueVerdict::AsBaseline);
  Metrics more = base;
  more.frac_over = 0.3;
  EXPECT_EQ(weighed(baseline, more).verdict, ValueVerdict::Differ);
  EXPECT_EQ(weighed(baseline_with(base, ValueVerdict::Match), base).verdict, ValueVerdict::Differ) << "ties that are right there";
}

TEST(Baseline, what_cannot_be_weighed_is_judged_without_and_said) {
  const Baseline baseline = baseline_with(errors(10, 40), ValueVerdict::Differ);
  const Judgement wide = weighed(baseline, errors(10, 40), {"z"});
  EXPECT_EQ(wide.verdict, ValueVerdict::Differ);
  EXPECT_THAT(wide.note, HasSubstr("does not show what it is made of"));
  const Judgement other = weighed(baseline_with(errors(10, 40), ValueVerdict::Differ, DType::F16), errors(10, 40));
  EXPECT_EQ(other.verdict, ValueVerdict::Differ);
  EXPECT_THAT(other.note, HasSubstr("float16"));
  Judgement missing{errors(10, 40), ValueVerdict::Differ};
  baseline.weigh_run("unknown", DType::F32, missing);
  EXPECT_EQ(missing.verdict, ValueVerdict::Differ);
  EXPECT_THAT(missing.note, HasSubstr("does not show it"));
}

}  // namespace
}  // namespace unmoor
