#include "unmoor/base/stop.h"

#include <atomic>
#include <cstring>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

std::atomic<int> stop{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler writes it");

}  // namespace

void request_stop(int signal) { stop.store(signal, std::memory_order_relaxed); }
int requested_stop() { return stop.load(std::memory_order_relaxed); }

void check_stop() {
  const int signal = requested_stop();
  if (signal == 0) return;
  const char* const abbreviation = ::sigabbrev_np(signal);
  fail(ErrorKind::Stopped, "stopped by ", abbreviation == nullptr ? cat("signal ", signal) : cat("SIG", abbreviation));
}

}  // namespace unmoor
