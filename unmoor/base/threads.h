#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace unmoor {

// Threads that share out the pieces of one job at a time; the caller works too, so a pool of size 1 has no thread of its own.
// Any thread may call. A call from inside a piece, or while another caller's job runs, is done by the caller alone: nothing
// ever waits for a pool while it holds a piece, so pools cannot block each other.
class ThreadPool {
 public:
  // 0 counts as 1. Fails with OutOfMemory where the system gives no more threads.
  explicit ThreadPool(size_t threads = 1);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Waits for the job that runs, so not to be called from a piece. Fails with InvalidArgument on 0 or over 1024, with OutOfMemory
  // where the system gives no more threads; then the pool has size 1.
  void resize(size_t threads);
  // Whether each thread of the pool's own stays on one processor, of those that the process may run on and another for each as
  // far as there are enough; the first is left to the caller. For machines that do nothing else. Waits as resize does; what the
  // system refuses is let be.
  void pin(bool on);

  // Calls body(i) once for each i in [0, count), and returns when all are done. The pieces are taken in order by whoever is
  // free; a thread that is late delays nothing but the piece it holds. Throws the first exception that a piece threw.
  template <class Body>
  void each(size_t count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        count, [](void* it, size_t i) { (*static_cast<Plain*>(it))(i); }, const_cast<std::remove_const_t<Plain>*>(&body));
  }
  // Splits [0, total) into about equal ranges of at least `grain` and calls body(begin, end) on each.
  template <class Body>
  void ranges(size_t total, size_t grain, Body&& body) {
    const size_t pieces = range_pieces(total, grain);
    each(pieces, [&](size_t i) { body(total * i / pieces, total * (i + 1) / pieces); });
  }

 private:
  using Call = void (*)(void*, size_t);
  void run(size_t count, Call call, void* body);
  void serve(uint32_t seen);  // What a thread does until the pool ends: jobs after generation `seen`.
  void work(uint64_t generation);
  void start(size_t threads);
  void stop();
  void place_workers();
  size_t range_pieces(size_t total, size_t grain) const;

  std::mutex job_;  // Held by the caller whose job runs.
  std::atomic<size_t> size_{1};
  std::vector<std::thread> workers_;
  // Job number, piece count and next piece in one word, so that a late worker can never mix two jobs.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<size_t> done_{0};
  std::atomic<bool> quit_{false};
  Call call_ = nullptr;  // Written before ticket_ is, read after a piece is taken.
  void* body_ = nullptr;
  size_t grouped_ = 1;  // Pieces that are taken together, where there are more than a ticket counts.
  size_t count_ = 0;
  std::mutex failure_lock_;
  std::exception_ptr failure_;
  bool pinned_ = false;
};

// Threads that this process may run on at once.
size_t usable_threads();

}  // namespace unmoor
