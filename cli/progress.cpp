#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "cli/command.h"

namespace unmoor::cli {

void show_progress(const std::string& what, size_t done, size_t total) {
  static const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  static std::string last;
  static auto start = std::chrono::steady_clock::now();
  if (!on_terminal || (what.empty() && last.empty())) return;
  const auto now = std::chrono::steady_clock::now();
  if (what != last) start = now;
  last = what;
  if (what.empty()) {
    fmt::print(stderr, "\r\033[K");
  } else if (total == 0) {
    fmt::print(stderr, "\r\033[K{} ...", what);
  } else {
    const double passed = std::chrono::duration<double>(now - start).count();
    const double left = done == 0 ? 0 : passed / static_cast<double>(done) * static_cast<double>(total - done);
    fmt::print(stderr, "\r\033[K{} {}/{}{}", what, done, total, done == 0 ? "" : fmt::format(", {:.0f} s left", left));
  }
  std::fflush(stderr);
}

void show_note(const std::string& text) {
  if (!text.empty()) (void)std::fprintf(stderr, "note: %s\n", printable(text).c_str());
}

}  // namespace unmoor::cli
