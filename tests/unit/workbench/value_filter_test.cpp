#include "unmoor/workbench/value_filter.h"

#include <gtest/gtest.h>

namespace unmoor {
namespace {

TEST(ValueFilter, a_star_is_any_text_and_a_question_mark_one_character) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("block*.norm", "block12.norm"));
  EXPECT_TRUE(matches_glob("*norm*", "/encoder/layer.0/norm/Add"));
  EXPECT_TRUE(matches_glob("block?", "block1"));
  EXPECT_FALSE(matches_glob("block?", "block12"));
  EXPECT_FALSE(matches_glob("norm", "norm1"));
  EXPECT_FALSE(matches_glob("a*b", "a"));
  EXPECT_TRUE(matches_glob("a*b*", "axxbyy"));
}

TEST(ValueFilter, many_stars_take_no_time) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches_glob(pattern + "b", std::string(5000, 'a')));
}

TEST(ValueFilter, takes_the_first_and_every_nth_that_matches) {
  ValueFilter filter({"v*"}, 3);
  std::vector<bool> taken;
  for (const char* const name : {"x", "v0", "v1", "v2", "v3", "v4"}) taken.push_back(filter.takes(name));
  EXPECT_EQ(taken, (std::vector<bool>{false, true, false, false, true, false}));
  EXPECT_EQ(filter.asked(), 6U);
  EXPECT_EQ(filter.taken(), 2U);
}

TEST(ValueFilter, answers_the_same_when_it_is_asked_again) {
  ValueFilter filter({}, 2);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(filter.takes("a"));
    EXPECT_FALSE(filter.takes("b"));
  }
}

TEST(ValueFilter, a_name_with_a_star_is_taken_as_it_stands) { EXPECT_TRUE(ValueFilter({"a[0]*"}, 1).takes("a[0]*")); }

}  // namespace
}  // namespace unmoor
