#include "unmoor/base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor {
namespace {

TEST(FileLock, one_holder_at_a_time) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/lock");
  {
    auto first = FileLock::try_lock(path);
    ASSERT_TRUE(first);
    EXPECT_FALSE(FileLock::try_lock(path));
    const FileLock moved = std::move(*first);
    EXPECT_FALSE(FileLock::try_lock(path));
  }
  EXPECT_TRUE(FileLock::try_lock(path));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(FileLock, what_cannot_be_locked_is_not) {
  const TemporaryFolder folder;
  EXPECT_FALSE(FileLock::try_lock(cat(folder.path(), "/missing/lock")));
  const std::string link = cat(folder.path(), "/link");
  ASSERT_EQ(::symlink("elsewhere", link.c_str()), 0);
  EXPECT_FALSE(FileLock::try_lock(link));
}

}  // namespace
}  // namespace unmoor
