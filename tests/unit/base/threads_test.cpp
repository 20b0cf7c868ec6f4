#include "unmoor/base/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <numeric>
#include <string>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

TEST(ThreadPool, each_piece_is_done_once) {
  for (const size_t threads : std::initializer_list<size_t>{1, 2, 5}) {
    ThreadPool pool(threads);
    for (const size_t count : std::initializer_list<size_t>{0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> done(count);
      pool.each(count, [&](size_t i) { done[i].fetch_add(1); });
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(done[i].load(), 1) << i << " of " << count << ", threads " << threads;
    }
  }
}

TEST(ThreadPool, many_short_jobs_lose_nothing) {
  ThreadPool pool(3);
  std::atomic<size_t> total{0};
  for (size_t job = 0; job < 20000; ++job) pool.each(4, [&](size_t i) { total.fetch_add(i + 1, std::memory_order_relaxed); });
  EXPECT_EQ(total.load(), 20000U * 10);
}

TEST(ThreadPool, ranges_cover_everything_without_overlap) {
  ThreadPool pool(2);
  for (const size_t total : std::initializer_list<size_t>{0, 1, 99, 100000}) {
    std::vector<std::atomic<int>> seen(total);
    pool.ranges(total, 10, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) seen[i].fetch_add(1);
    });
    for (size_t i = 0; i < total; ++i) ASSERT_EQ(seen[i].load(), 1) << i << " of " << total;
  }
}

TEST(ThreadPool, calls_from_a_piece_and_to_another_pool_finish) {
  ThreadPool pool(2);
  ThreadPool other(2);
  std::atomic<int> inner{0};
  pool.each(8, [&](size_t) {
    pool.each(3, [&](size_t) { inner.fetch_add(1); });
    other.each(3, [&](size_t) { inner.fetch_add(1); });
  });
  EXPECT_EQ(inner.load(), 48);
}

TEST(ThreadPool, callers_on_several_threads_share_a_pool) {
  ThreadPool pool(2);
  std::atomic<int> total{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int job = 0; job < 500; ++job) pool.each(5, [&](size_t) { total.fetch_add(1); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 4 * 500 * 5);
}

TEST(ThreadPool, what_a_piece_throws_reaches_the_caller_and_the_pool_goes_on) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  const auto failing = [&](size_t i) {
    if (i == 3) fail(ErrorKind::Device, "piece 3");
    done.fetch_add(1);
  };
  try {
    pool.each(10, failing);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "piece 3");
  }
  EXPECT_EQ(done.load(), 9);
  pool.each(10, [&](size_t) { done.fetch_add(1); });
  EXPECT_EQ(done.load(), 19);
}

TEST(ThreadPool, it_can_be_resized_and_refuses_nonsense) {
  ThreadPool pool(1);
  pool.resize(3);
  EXPECT_EQ(pool.size(), 3U);
  std::atomic<int> done{0};
  pool.each(100, [&](size_t) { done.fetch_add(1); });
  pool.resize(1);
  pool.each(100, [&](size_t) { done.fetch_add(1); });
  EXPECT_EQ(done.load(), 200);
  EXPECT_THROW(pool.resize(0), Error);
  EXPECT_THROW(pool.resize(100000), Error);
}

// Processors that the pool's own threads may run on, at least.
size_t allowed_of(ThreadPool& pool) {
  std::atomic<size_t> least{CPU_SETSIZE};
  const auto caller = std::this_thread::get_id();
  for (int job = 0; job < 100000 && (job < 100 || least == CPU_SETSIZE); ++job) {
    pool.each(8, [&](size_t) {
      if (std::this_thread::get_id() == caller) return std::this_thread::yield();
      const size_t own = usable_threads();
      for (size_t known = least; own < known && !least.compare_exchange_weak(known, own);) {
      }
    });
  }
  return least;
}

TEST(ThreadPool, pinned_threads_stay_on_one_processor_each_until_they_are_let_go) {
  if (usable_threads() < 2) GTEST_SKIP() << "there is one processor only";
  ThreadPool pool(2);
  EXPECT_EQ(allowed_of(pool), usable_threads());
  pool.pin(true);
  EXPECT_EQ(allowed_of(pool), 1U);
  pool.resize(1);
  pool.resize(2);
  EXPECT_EQ(allowed_of(pool), 1U);  // New threads, too.
  pool.pin(false);
  EXPECT_EQ(allowed_of(pool), usable_threads());
}

// Stacks of 128 TiB: no thread starts any more.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    ::pthread_attr_init(&huge);
    ::pthread_attr_setstacksize(&huge, size_t{1} << 47);
    ::pthread_setattr_default_np(&huge);
    ::pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(ThreadPool, threads_that_cannot_be_started_are_an_error_and_the_pool_goes_on) {
  ThreadPool pool(2);
  {
    const NoMoreThreads limit;
    EXPECT_THROW(ThreadPool{3}, Error);
    EXPECT_THROW(pool.resize(4), Error);
  }
  EXPECT_EQ(pool.size(), 1U);
  std::atomic<int> done{0};
  pool.each(100, [&](size_t) { done.fetch_add(1); });
  pool.resize(3);
  pool.each(100, [&](size_t) { done.fetch_add(1); });
  EXPECT_EQ(done.load(), 200);
}

}  // namespace
}  // namespace unmoor
