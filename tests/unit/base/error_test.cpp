#include "unmoor/base/error.h"

#include <gtest/gtest.h>

namespace unmoor {
namespace {

TEST(Error, joins_parts_of_any_kind) { EXPECT_EQ(cat("a ", 1, ' ', 2.5, " ", true, size_t{7}), "a 1 2.5 true7"); }

TEST(Error, notes_are_appended_innermost_first) {
  Error error(ErrorKind::Io, "no file");
  error.note("in Conv 'a'");
  EXPECT_STREQ(error.what(), "no file\n  in Conv 'a'");
}

}  // namespace
}  // namespace unmoor
