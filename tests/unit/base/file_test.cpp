#include "unmoor/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

size_t count_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

ErrorKind kind_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::Internal;
}

TEST(File, a_folder_or_a_pipe_read_as_a_file_is_an_error) {
  const TemporaryFolder folder;
  const std::string pipe = cat(folder.path(), "/pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder.path(), pipe, std::string("/dev/zero"), cat(folder.path(), "/missing")}) {
    EXPECT_EQ(kind_of([&] { read_file(path); }), ErrorKind::Io) << path;
    EXPECT_EQ(kind_of([&] { MappedFile::open(path); }), ErrorKind::Io) << path;
  }
}

TEST(File, what_was_written_is_read_whatever_its_size) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a");
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{300000}}) {
    const std::string text(size, 'x');
    write_file(path, text);
    EXPECT_EQ(read_file(path), text);
  }
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // Its size is said to be 0.
}

TEST(WriteFile, a_file_is_replaced_whole_and_keeps_its_mode) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a";
  write_file(path, "first, longer");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file(path, "second");
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(count_in(folder.path()), 1U);
}

TEST(WriteFile, a_link_stays_a_link) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/target", "old");
  fs::create_symlink("target", folder.path() + "/link");
  write_file(folder.path() + "/link", "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() + "/link"));
  EXPECT_EQ(read_file(folder.path() + "/target"), "new");
}

TEST(WriteFile, what_is_no_regular_file_is_written_into) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text(100000, 'y');
  std::string got;
  std::thread reader([&] {
    const int file = ::open(path.c_str(), O_RDONLY);
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = ::read(file, part.data(), part.size())) > 0;) got.append(part.data(), static_cast<size_t>(size));
    ::close(file);
  });
  write_file(path, text);
  reader.join();
  EXPECT_EQ(got, text);
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST(WriteFile, a_failure_leaves_nothing_behind) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() + "/taken");
  EXPECT_THROW(write_file(folder.path() + "/taken", "text"), Error);
  EXPECT_THROW(write_file(folder.path() + "/none/file", "text"), Error);
  EXPECT_EQ(count_in(folder.path()), 1U);
}

TEST(NewFile, one_that_is_not_finished_leaves_the_old_file) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a";
  write_file(path, "old");
  {
    const NewFile made(path);
    write_file(made.beside(), "half");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(count_in(folder.path()), 1U);
}

TEST(TemporaryFolder, what_a_killed_process_left_is_removed_a_day_later) {
  const TemporaryFolder base;
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", base.path().c_str(), 1);
  // Process ids end far below this one.
  const std::string old = base.path() + "/unmoor-2000000000-abcdef";
  const std::string young = base.path() + "/unmoor-2000000001-abcdef";
  const std::string foreign = base.path() + "/unmoored-2000000000";
  for (const std::string& path : {old, young, foreign}) fs::create_directory(path);
  for (const std::string& path : {old, foreign}) fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(25));
  { const TemporaryFolder another; }
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(foreign));
  if (before == nullptr) ::unsetenv("TMPDIR");
  else ::setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace unmoor
