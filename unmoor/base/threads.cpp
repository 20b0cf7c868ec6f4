#include "unmoor/base/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "unmoor/base/error.h"

namespace unmoor {

namespace {

constexpr unsigned field_bits = 22;  // Of a ticket's piece count and next piece; the job number has the other 20.
constexpr uint64_t field_mask = (uint64_t{1} << field_bits) - 1;
constexpr uint64_t generation_mask = (uint64_t{1} << (64 - 2 * field_bits)) - 1;
constexpr auto spin_time = std::chrono::microseconds(60);

thread_local bool inside_piece = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Spins until `ready` or the time is over; says which.
template <class Ready>
bool spin(Ready ready) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) {
        return true;
      }
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

}  // namespace

ThreadPool::ThreadPool(size_t threads) { start(std::max<size_t>(threads, 1)); }

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::start(size_t threads) {
  quit_ = false;
  const uint32_t first = generation_.load();
  workers_.reserve(threads - 1);
  try {
    while (workers_.size() + 1 < threads) {
      workers_.emplace_back([this, first] { serve(first); });
    }
  } catch (const std::system_error& problem) {
    const size_t made = workers_.size() + 1;
    stop();
    fail(ErrorKind::OutOfMemory, "thread ", made + 1, " of ", threads, " cannot be started: ", problem.code().message());
  }
  size_ = threads;
  if (pinned_) place_workers();
}

void ThreadPool::place_workers() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  for (size_t i = 0; i < workers_.size() && !processors.empty(); ++i) {
    cpu_set_t own = allowed;
    if (pinned_) {
      CPU_ZERO(&own);
      CPU_SET(processors[(i + 1) % processors.size()], &own);
    }
    (void)pthread_setaffinity_np(workers_[i].native_handle(), sizeof own, &own);
  }
}

void ThreadPool::pin(bool on) {
  const std::lock_guard lock(job_);
  if (on == pinned_) return;
  pinned_ = on;
  place_workers();
}

void ThreadPool::serve(uint32_t seen) {
  inside_piece = true;  // Whatever a piece calls is done where it is.
  while (true) {
    const auto changed = [&] { return generation_.load(std::memory_order_acquire) != seen; };
    if (!spin(changed)) {
      generation_.wait(seen, std::memory_order_acquire);
    }
    seen = generation_.load(std::memory_order_acquire);
    if (quit_) {
      return;
    }
    work(seen);
  }
}

void ThreadPool::stop() {
  quit_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
  workers_.clear();
  size_ = 1;
}

void ThreadPool::resize(size_t threads) {
  if (threads == 0 || threads > 1024) {
    fail(ErrorKind::InvalidArgument, "threads is ", threads, ", not 1 to 1024");
  }
  const std::lock_guard lock(job_);
  if (threads != size()) {
    stop();
    start(threads);
  }
}

void ThreadPool::work(uint64_t generation) {
  for (;;) {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    const uint64_t next = ticket & field_mask;
    if (ticket >> (2 * field_bits) != (generation & generation_mask) || next >= ((ticket >> field_bits) & field_mask)) {
      return;
    }
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1)) {
      continue;
    }
    try {
      const size_t begin = static_cast<size_t>(next) * grouped_;
      const size_t end = std::min(begin + grouped_, count_);
      for (size_t i = begin; i < end; ++i) {
        call_(body_, i);
      }
    } catch (...) {
      const std::lock_guard lock(failure_lock_);
      if (!failure_) {
        failure_ = std::current_exception();
      }
    }
    done_.fetch_add(1, std::memory_order_release);
  }
}

void ThreadPool::run(size_t count, Call call, void* body) {
  std::unique_lock job(job_, std::defer_lock);
  if (count <= 1 || inside_piece || size() == 1 || !job.try_lock()) {
    for (size_t i = 0; i < count; ++i) {
      call(body, i);
    }
    return;
  }
  call_ = call;
  body_ = body;
  count_ = count;
  grouped_ = (count + field_mask - 1) / field_mask;
  const size_t tickets = (count + grouped_ - 1) / grouped_;
  done_.store(0, std::memory_order_relaxed);
  const uint32_t generation = generation_.load() + 1;
  ticket_.store((uint64_t{generation} & generation_mask) << (2 * field_bits) | uint64_t{tickets} << field_bits);
  generation_.store(generation);
  generation_.notify_all();
  inside_piece = true;
  work(generation);
  inside_piece = false;
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == tickets; };
  while (!spin(finished)) {
    std::this_thread::yield();
  }
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

size_t ThreadPool::range_pieces(size_t total, size_t grain) const {
  const size_t most = size() == 1 ? 1 : size() * 4;
  return std::clamp<size_t>(total / std::max<size_t>(grain, 1), total == 0 ? 0 : 1, most);
}

size_t usable_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return static_cast<size_t>(std::max(CPU_COUNT(&set), 1));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace unmoor
