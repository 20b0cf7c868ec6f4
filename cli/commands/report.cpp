#include "unmoor/workbench/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "cli/serve.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/report_list.h"

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
std::string open_in_browser(std::string address) {
  if (!has_display()) return "there is no display";
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_RDWR, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string program = "xdg-open";
  char* const arguments[] = {program.data(), address.data(), nullptr};
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

Response respond(ReportFolder& folder, const Request& request) {
  // What a stored page's script may do is no more than in a page opened from disk: it has no name here, and asks nobody.
  constexpr const char* stored_policy =
      "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
      "script-src 'unsafe-inline'";
  constexpr const char* list_policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'";
  constexpr std::string_view stored = "/stored/";
  Response response;
  try {
    if (request.path == "/") {
      response.policy = list_policy;
      response.body = folder.list();
    } else if (request.path == "/page") {
      std::vector<std::string> names;
      for (const auto& [key, value] : request.query) {
        if (key == "file") names.push_back(value);
      }
      response.body = folder.page(names);
    } else if (request.path.starts_with(stored)) {
      response.policy = stored_policy;
      response.body = folder.stored_page(request.path.substr(stored.size()));
    } else {
      return {404, "text/plain; charset=utf-8", {}, "There is no such page: see the list at /\n"};
    }
  } catch (const Error& error) {
    return {404, "text/plain; charset=utf-8", {}, fmt::format("{}\n", error.what())};
  }
  return response;
}

// Until somebody stops it. The address is said at once: there is no later.
Outcome serve(const Options& options) {
  if (options.json) fail(ErrorKind::InvalidArgument, "--serve has no result to print as JSON: it says its address and runs until Ctrl-C");
  ReportFolder folder(options.serve_folder, options.language);
  LocalServer server(static_cast<uint16_t>(options.port), [&folder](const Request& request) { return respond(folder, request); });
  const std::string address = fmt::format("http://127.0.0.1:{}/", server.port());
  fmt::print("results in {}: {}\nCtrl-C ends it\n", printable(options.serve_folder), address);
  (void)std::fflush(stdout);
  if (options.open) {
    if (const std::string problem = open_in_browser(address); !problem.empty()) show_note(fmt::format("not opened: {}", problem));
  }
  server.run();
  return {};
}

}  // namespace

Outcome report_command(const Options& options, nlohmann::json& result) {
  if (!options.serve_folder.empty()) return serve(options);
  if (options.results.empty()) fail(ErrorKind::InvalidArgument, "name the results that the page is made from, or a folder of them with --serve");
  if (options.output.empty()) fail(ErrorKind::InvalidArgument, "name the page to write with -o");
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
  const std::string problem = open_in_browser(fs::absolute(options.output).string());
  result["opened"] = problem.empty();
  if (!problem.empty())
    outcome.text += fmt::format("not opened: {}; the page lies in {}\n", problem, fs::absolute(options.output).string());
  return outcome;
}

}  // namespace unmoor::cli
