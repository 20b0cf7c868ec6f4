#include "unmoor/workbench/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor::cli {
namespace {

namespace fs = std::filesystem;

bool has_display() {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

// Starts xdg-open apart from us, since it may stay as long as the browser does. Says why the page was not opened; empty if
// nothing speaks against it.
std::string open_in_browser(const std::string& page) {
  if (!has_display()) return "there is no display";
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_RDWR, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string program = "xdg-open";
  std::string file = fs::absolute(page).string();
  char* const arguments[] = {program.data(), file.data(), nullptr};
  pid_t id = -1;
  const int failed = ::posix_spawnp(&id, program.c_str(), &files, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return "xdg-open is not here";
  constexpr int tries = 100;
  constexpr auto pause = std::chrono::milliseconds(20);
  for (int i = 0; i < tries; ++i) {
    int status = 0;
    if (::waitpid(id, &status, WNOHANG) == id) return status == 0 ? "" : "xdg-open failed";
    std::this_thread::sleep_for(pause);
  }
  return "";
}

// A result is not written over by the page.
void check_output(const Options& options) {
  for (const std::string& file : options.results) {
    std::error_code ignored;
    if (fs::equivalent(file, options.output, ignored))
      fail(ErrorKind::InvalidArgument, "'", options.output, "' is one of the results; the page needs a name of its own");
  }
}

}  // namespace

Outcome report_command(const Options& options, nlohmann::json& result) {
  check_output(options);
  nlohmann::json page = joined_report(options.results);
  for (const char* key : {"version", "created", "command"}) page[key] = result[key];
  write_file(options.output, render_report(page, options.language));
  result["page"] = options.output;
  result["sources"] = page["sources"];
  result["notes"] = page["notes"];
  result["opened"] = false;
  Outcome outcome;
  for (const auto& source : page["sources"]) {
    const auto said = [&source](const char* key) { return source[key].get<std::string>(); };
    outcome.text += fmt::format("{}: {} of {}", shortened(said("file"), 40), said("tool"), said("date"));
    outcome.text += said("shown").empty() ? "\n" : fmt::format("; shows {}\n", said("shown"));
    if (!said("left_out").empty()) outcome.text += fmt::format("  left out: {}\n", said("left_out"));
  }
  for (const auto& note : page["notes"]) outcome.text += wrapped(note.get<std::string>());
  outcome.text += fmt::format("wrote {}\n", options.output);
  if (!options.open) return outcome;
  const std::string problem = open_in_browser(options.output);
  result["opened"] = problem.empty();
  if (!problem.empty())
    outcome.text += fmt::format("not opened: {}; the page lies in {}\n", problem, fs::absolute(options.output).string());
  return outcome;
}

}  // namespace unmoor::cli
