#include "unmoor/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

ErrorKind kind_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::Internal;
}

size_t files_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
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

TEST(File, writing_into_a_pipe_leaves_the_pipe) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    std::FILE* const file = std::fopen(path.c_str(), "r");
    for (int c = 0; (c = std::fgetc(file)) != EOF;) got += static_cast<char>(c);
    std::fclose(file);
  });
  write_file(path, "text");
  reader.join();
  EXPECT_EQ(got, "text");
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(File, writing_to_a_link_keeps_the_link_and_the_permissions) {
  const TemporaryFolder folder;
  const std::string file = cat(folder.path(), "/file");
  const std::string link = cat(folder.path(), "/link");
  write_file(file, "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(file, link);
  write_file(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(file), "new");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(File, what_cannot_be_written_leaves_nothing) {
  const TemporaryFolder folder;
  EXPECT_EQ(kind_of([&] { write_file(folder.path(), "x"); }), ErrorKind::Io);
  EXPECT_EQ(kind_of([&] { write_file(cat(folder.path(), "/none/a"), "x"); }), ErrorKind::Io);
  EXPECT_EQ(kind_of([&] { write_file("/dev/full", "x"); }), ErrorKind::Io);
  EXPECT_EQ(files_in(folder.path()), 0U);
}

}  // namespace
}  // namespace unmoor
