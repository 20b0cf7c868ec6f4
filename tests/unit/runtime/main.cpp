#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "tests/unit/runtime/worker_model.h"
#include "unmoor/base/child.h"

// This program is its own worker.
int main(int count, char** arguments) {
  if (count > 1 && std::string_view(arguments[1]) == "--worker") {
    unmoor::die_with_parent();
    return unmoor::serve_worker(unmoor::test::open_test_model);
  }
  ::setenv("UNMOOR_WORKER", std::filesystem::read_symlink("/proc/self/exe").c_str(), 1);
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
