#include "unmoor/base/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "unmoor/base/file.h"

namespace unmoor {
namespace {

using testing::HasSubstr;

Child shell(const std::string& script) { return Child({"/bin/sh", "-c", script}); }

double seconds_of(const std::function<void()>& what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// An environment variable for the length of a test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    if (value == nullptr) ::unsetenv(name);
    else ::setenv(name, value, 1);
  }
  ~Setting() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    else ::unsetenv(name_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Child, what_is_written_comes_back_and_the_end_is_told) {
  Child child({"/bin/sh", "-c", "cat; exit 3"});
  const std::string text(300000, 'x');
  std::string back(text.size(), ' ');
  ASSERT_TRUE(child.write(std::as_bytes(std::span(text.data(), 60000))));
  ASSERT_TRUE(child.read(std::as_writable_bytes(std::span(back.data(), 60000))));
  child.close_input();
  EXPECT_EQ(child.read_some(std::as_writable_bytes(std::span(back))), 0U);
  EXPECT_EQ(child.finish(20).text(), "exit status 3");
}

TEST(Child, one_that_does_not_read_is_given_up) {
  Child child = shell("exec sleep 60");
  const std::vector<std::byte> much(1 << 20);
  EXPECT_LT(seconds_of([&] { EXPECT_FALSE(child.write(much, 0.3)); }), 20);
  EXPECT_EQ(child.finish(30).text(), "killed after 0.3 s of silence");
}

TEST(Child, one_that_says_nothing_is_given_up) {
  Child child = shell("exec sleep 60");
  std::byte next{};
  EXPECT_LT(seconds_of([&] { EXPECT_FALSE(child.read({&next, 1}, 0.3)); }), 20);
  EXPECT_EQ(child.finish(30).text(), "killed after 0.3 s of silence");
}

TEST(Child, a_signal_is_named) {
  Child child = shell("kill -ABRT $$");
  std::byte next{};
  EXPECT_FALSE(child.read({&next, 1}));
  EXPECT_EQ(child.finish(20).text(), "killed by SIGABRT");
}

TEST(Child, one_that_floods_its_error_stream_neither_blocks_nor_fills_memory) {
  Child child = shell("yes error >&2");
  std::string errors;
  EXPECT_LT(seconds_of([&] {
              while (errors.size() < 10000) errors = child.errors();
              for (int i = 0; i < 20; ++i) errors = child.errors();
            }),
            60);
  EXPECT_LE(errors.size(), 16U * 1024);
  EXPECT_THAT(errors, HasSubstr("error"));
}

TEST(Child, a_grandchild_that_keeps_the_pipe_does_not_keep_us) {
  Child child = shell("sleep 60 & echo x");
  std::byte next{};
  EXPECT_TRUE(child.read({&next, 1}, 30));
  EXPECT_LT(seconds_of([&] {
              while (child.read({&next, 1}, 30)) {
              }
            }),
            20);
  EXPECT_EQ(child.finish(20).text(), "exit status 0");
}

TEST(Child, where_nobody_may_wait_for_children_the_end_is_seen_all_the_same) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  {
    Child child = shell("exit 3");
    EXPECT_FALSE(child.finish(20).running);
    EXPECT_EQ(child.end().text(), "ended, and nobody knows how");
  }
  ::signal(SIGCHLD, before);
}

TEST(Child, writing_to_one_that_is_gone_neither_kills_us_nor_touches_our_signals) {
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
  Child child = shell("true");
  child.finish(10);
  EXPECT_FALSE(child.write(std::vector<std::byte>(1 << 20), 1));
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  sigset_t waiting;
  ::sigpending(&waiting);
  EXPECT_EQ(::sigismember(&waiting, SIGPIPE), 0);
}

TEST(OwnProgram, a_program_that_embeds_the_library_starts_an_installed_unmoor) {
  const TemporaryFolder folder;
  const std::string program = folder.path() + "/unmoor";
  std::ofstream(program) << "#!/bin/sh\n";
  const Setting worker("UNMOOR_WORKER", nullptr);
  const std::string path = "/nowhere:" + folder.path();
  const Setting search("PATH", path.c_str());
  EXPECT_NE(own_program(), program) << "it cannot be run yet";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  EXPECT_EQ(own_program(), program);
  const Setting named("UNMOOR_WORKER", "/bin/true");
  EXPECT_EQ(own_program(), "/bin/true");
}

TEST(OwnProgram, without_one_it_is_this_program) {
  const Setting worker("UNMOOR_WORKER", nullptr);
  const Setting search("PATH", "/nowhere");
  EXPECT_EQ(own_program(), std::filesystem::read_symlink("/proc/self/exe").string());
}

}  // namespace
}  // namespace unmoor
