#include "unmoor/catalog/versions.h"

#include <gtest/gtest.h>

namespace unmoor {
namespace {

TEST(CatalogVersions, ranges_go_by_value_and_hold_what_goes_on) {
  EXPECT_TRUE(in_range("12.6.77", {"12.6", "12.6"}));
  EXPECT_FALSE(in_range("12.60", {"12.6", "12.6"}));
  EXPECT_FALSE(in_range("2.10", {"2.1", "2.1"}));
  EXPECT_TRUE(in_range("2.10", {"2.6", "2.11"}));
  EXPECT_TRUE(in_range("525.60.13", {"525.60.13", ""}));
  EXPECT_FALSE(in_range("525.60.9", {"525.60.13", ""}));
  EXPECT_TRUE(in_range("gfx90a", {"gfx90a", "gfx90a"}));
  EXPECT_FALSE(in_range("gfx906", {"gfx90a", "gfx90a"}));
  EXPECT_TRUE(in_range("anything", {"", ""}));
  EXPECT_TRUE(in_range("2.6.0+cu126", {"2.6", "2.6"}));
}

TEST(CatalogVersions, a_candidate_comes_before_its_release) {
  EXPECT_FALSE(in_range("8.0.RC3", {"8.0.0", ""}));
  EXPECT_TRUE(in_range("8.0.0", {"8.0.RC3", ""}));
  EXPECT_TRUE(in_range("24.1.rc3", {"24.1.RC3", "24.1.RC3"}));
}

TEST(CatalogVersions, odd_texts_are_versions_too) {
  for (const char* const text : {"", ".", "..", "+", "rc", "99999999999999999999999", "-1", "\xff"}) {
    EXPECT_TRUE(in_range(text, {"", ""}));
    (void)in_range(text, {"1.2", "1.3"});
  }
}

TEST(CatalogVersions, what_does_not_fit_comes_first_with_what_would) {
  const auto pairs = judge_versions(
      {{"cuda runtime", "12.6", ""}, {"nvidia driver", "470.82.01", ""}, {"torch", "2.6.0", ""}, {"python", "3.11.2", ""}});
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_EQ(pairs[0].a + "/" + pairs[0].b + "/" + pairs[0].verdict, "cuda runtime 12.6/nvidia driver 470.82.01/does not");
  EXPECT_NE(pairs[0].would.find("525.60.13 or newer"), std::string::npos);
  EXPECT_NE(pairs[0].would.find("11"), std::string::npos);
  EXPECT_FALSE(pairs[0].source.empty());
  EXPECT_EQ(pairs[1].verdict, "fits");
  EXPECT_TRUE(pairs[1].would.empty());
}

TEST(CatalogVersions, no_rule_no_pair_and_no_word_no_verdict) {
  EXPECT_TRUE(judge_versions({{"torch", "2.6.0", ""}, {"kettle", "1", ""}}).empty());
  const auto pairs = judge_versions({{"torch", "9.9", ""}, {"python", "3.11.2", ""}});
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].verdict, "unknown");
}

}  // namespace
}  // namespace unmoor
