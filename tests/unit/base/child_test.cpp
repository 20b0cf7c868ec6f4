#include "unmoor/base/child.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Child, what_it_is_told_comes_back) {
  Child child({"cat"});
  const std::string text(1000, 'x');
  ASSERT_TRUE(child.write(bytes_of(text)));
  std::string back(text.size(), ' ');
  ASSERT_TRUE(child.read(std::as_writable_bytes(std::span(back.data(), back.size())), 10));
  EXPECT_EQ(back, text);
  child.close_input();
  EXPECT_EQ(child.finish(10).text(), "exit status 0");
}

TEST(Child, one_that_reads_nothing_does_not_hang_its_writer) {
  Child child({"sleep", "60"});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(child.write(bytes_of(std::string(1 << 20, 'x')), 0.3));
  EXPECT_LT(seconds_since(start), 10);
  child.kill();
  EXPECT_EQ(child.end().text(), "killed by SIGKILL");
}

TEST(Child, one_that_floods_its_error_stream_does_not_keep_its_reader) {
  Child child({"sh", "-c", "yes words >&2; true"});  // The shell keeps its output open.
  std::byte next{};
  const auto start = std::chrono::steady_clock::now();
  while (child.errors().empty() && seconds_since(start) < 30) EXPECT_FALSE(child.read({&next, 1}, 0.1));
  EXPECT_FALSE(child.read({&next, 1}, 0.3));
  EXPECT_TRUE(child.end().running);
  EXPECT_LT(seconds_since(start), 40);
  EXPECT_LE(child.errors().size(), 16U * 1024);
  EXPECT_NE(child.errors().find("words"), std::string::npos);
}

TEST(Child, writing_to_one_that_is_gone_neither_kills_us_nor_touches_our_signals) {
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
  Child child({"true"});
  child.finish(10);
  EXPECT_FALSE(child.write(bytes_of(std::string(1 << 20, 'x')), 1));
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  sigset_t waiting;
  ::sigpending(&waiting);
  EXPECT_EQ(::sigismember(&waiting, SIGPIPE), 0);
}

TEST(Child, its_end_is_seen_where_the_system_reaps_children) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  {
    Child child({"true"});
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(child.finish(10).running);
    EXPECT_LT(seconds_since(start), 9);
  }
  ::signal(SIGCHLD, before);
}

TEST(Child, a_program_that_is_not_there_is_named) {
  try {
    Child child({"no-such-program-anywhere"});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Io);
    EXPECT_NE(std::string(error.what()).find("no-such-program-anywhere"), std::string::npos);
  }
}

}  // namespace
}  // namespace unmoor
