#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "unmoor/backends/gpu/compiler.h"
#include "unmoor/base/file.h"

namespace {

// The folders that tests write to: a private cache and a private PoCL cache, so that nothing of the user's is read or written.
class PrivateFolders : public testing::Environment {
 public:
  PrivateFolders() {
    ::setenv("OCL_ICD_VENDORS", "pocl.icd", 0);
    if (std::getenv("UNMOOR_TEST_CACHE") != nullptr) {
      ::setenv("XDG_CACHE_HOME", std::getenv("UNMOOR_TEST_CACHE"), 1);  // To repeat a run without compiling.
    } else {
      ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    }
    ::setenv("POCL_CACHE_DIR", folder_.path().c_str(), 1);
  }

 private:
  unmoor::TemporaryFolder folder_;
};

}  // namespace

// This program is its own compile worker, as `unmoor` is.
int main(int count, char** arguments) {
  if (count > 1 && std::string_view(arguments[1]) == "--worker-compile") return unmoor::gpu::compile_worker();
  ::setenv("UNMOOR_WORKER", std::filesystem::read_symlink("/proc/self/exe").c_str(), 1);
  testing::InitGoogleTest(&count, arguments);
  testing::AddGlobalTestEnvironment(new PrivateFolders);
  return RUN_ALL_TESTS();
}
