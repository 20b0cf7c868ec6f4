#include "unmoor/base/demangle.h"

#include <gtest/gtest.h>

namespace unmoor {
namespace {

TEST(Demangled, symbols_in_a_message_are_named) {
  EXPECT_EQ(demangled("a.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs (needed)"),
            "a.so: undefined symbol: c10::Error::Error(c10::SourceLocation, std::string) [_ZN3c105ErrorC2ENS_14SourceLocationESs] "
            "(needed)");
  EXPECT_EQ(demangled("_Z1fv,_Z1gv"), "f() [_Z1fv],g() [_Z1gv]");
}

TEST(Demangled, what_is_no_symbol_stays) {
  for (const char* const text : {"", "_", "_Z", "_Zx", "undefined symbol: cuInit", "my_Z1fv", "libc_Z.so", "_ZN3c10"})
    EXPECT_EQ(demangled(text), text);
}

// Each level is a pair of the one before, twice: unfolded, 2^60 times the text.
TEST(Demangled, a_symbol_that_would_grow_without_end_stays) {
  std::string bomb = "_Z1fSt4pairIiiE";
  for (int i = 0; i < 60; ++i) bomb += i == 0 ? "S_IS0_S0_E" : "S_IS1_S1_E";
  EXPECT_EQ(demangled(bomb), bomb);
  const std::string deep = "_Z1f" + std::string(100'000, 'P') + "i";
  EXPECT_EQ(demangled(deep), deep);
}

}  // namespace
}  // namespace unmoor
