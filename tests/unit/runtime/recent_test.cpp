#include "unmoor/runtime/recent.h"

#include <gtest/gtest.h>

#include <string>

namespace unmoor {
namespace {

TEST(Recent, what_was_not_used_for_longest_goes_first) {
  Recent<std::string, int> recent(2);
  recent.put("a", 1);
  recent.put("b", 2);
  ASSERT_NE(recent.find("a"), nullptr);
  recent.put("c", 3);
  EXPECT_EQ(recent.find("b"), nullptr);
  ASSERT_NE(recent.find("a"), nullptr);
  EXPECT_EQ(*recent.find("a"), 1);
  EXPECT_EQ(*recent.find("c"), 3);
  EXPECT_EQ(recent.entries().size(), 2U);
}

}  // namespace
}  // namespace unmoor
