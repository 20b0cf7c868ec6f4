#include "unmoor/runtime/loop_limit.h"

#include <atomic>
#include <charconv>
#include <cstdlib>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

constexpr int64_t sane_rounds = 10'000'000;

std::atomic<int64_t>& limit() {
  static std::atomic<int64_t> rounds{[] {
    const char* const wanted = std::getenv("UNMOOR_LOOP_LIMIT");
    return wanted != nullptr && *wanted != '\0' ? parse_loop_limit(wanted) : sane_rounds;
  }()};
  return rounds;
}

}  // namespace

int64_t loop_limit() { return limit(); }
void set_loop_limit(int64_t rounds) { limit() = rounds; }

int64_t parse_loop_limit(std::string_view text) {
  int64_t rounds = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, rounds);
  if (result.ec != std::errc() || result.ptr != end || rounds < 1) {
    fail(ErrorKind::InvalidArgument, "'", text, "' is no number of rounds; write UNMOOR_LOOP_LIMIT as 1000000");
  }
  return rounds;
}

}  // namespace unmoor
