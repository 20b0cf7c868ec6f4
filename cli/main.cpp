#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/command.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/sha256.h"
#include "unmoor/workbench/report.h"

namespace unmoor::cli {
namespace {

using nlohmann::json;

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidModel:
    case ErrorKind::InvalidArgument:
    case ErrorKind::Io: return Status::usage;
    case ErrorKind::Unsupported: return Status::finding;
    case ErrorKind::Device:
    case ErrorKind::OutOfMemory: return Status::environment;
    case ErrorKind::Internal: return Status::internal;
  }
  return Status::internal;
}

Outcome run_tool(const Options& options, json& result) {
  if (options.tool == "run") return run_command(options, result);
  if (options.tool == "scan") return scan_command(options, result);
  if (options.tool == "align") return align_command(options, result);
  if (options.tool == "bench") return bench_command(options, result);
  if (options.tool == "doctor") return doctor_command(options, result);
  if (options.tool == "conformance") return conformance_command(options, result);
  if (options.tool == "migrate") return migrate_command(options, result);
  fail(ErrorKind::Internal, "there is no tool '", options.tool, "'");
}

std::string file_hash(const std::string& path) {
  Sha256 hash;
  hash.add(MappedFile::open(path)->bytes());
  return hash.finish();
}

std::string command_name(const Options& options) { return options.tool.empty() ? "unmoor" : cat("unmoor ", options.tool); }

// The tool's outcome; what it throws becomes one too.
Outcome guarded(const Options& options, json& result) {
  Outcome outcome;
  if (!options.wrong_use.empty()) {
    outcome.status = Status::usage;
    outcome.reason = options.wrong_use;
    outcome.text = fmt::format("{}: {}\nTry '{} --help'.\n", command_name(options), options.wrong_use, command_name(options));
    return outcome;
  }
  try {
    outcome = run_tool(options, result);
    if (options.hash && result.contains("model")) result["model"]["sha256"] = file_hash(options.model);
    if (!options.html.empty()) {
      json page = result;
      page["status"] = outcome.status;
      page["reason"] = outcome.reason;
      page["command"] = options.command_line;
      page["created"] = now_text();
      write_file(options.html, render_report(page));
      outcome.text += fmt::format("wrote {}\n", options.html);
    }
    return outcome;
  } catch (const Error& error) {
    outcome.status = status_of(error.kind());
    outcome.reason = error.what();
  } catch (const std::bad_alloc&) {
    outcome.status = Status::environment;
    outcome.reason = "memory ran out";
  } catch (const std::exception& error) {
    outcome.status = Status::internal;
    outcome.reason = error.what();
  }
  outcome.text = fmt::format("unmoor {}: {}\n", options.tool, outcome.reason);
  return outcome;
}

int run(const Options& options) {
  json result = json::object();
  result["tool"] = options.tool;
  result["version"] = UNMOOR_VERSION;
  result["environment"] = {{"host", host_json()}, {"devices", json::array()}, {"versions", {{"unmoor", UNMOOR_VERSION}}}};
  const Outcome outcome = guarded(options, result);
  show_progress("", 0, 0);
  const int status = options.exit_zero && outcome.status == Status::finding ? 0 : outcome.status;
  result["status"] = status;
  result["reason"] = outcome.reason;
  if (options.json) {
    fmt::print("{}\n", result.dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    std::FILE* const to = outcome.status > Status::finding || (outcome.status == Status::finding && outcome.text.starts_with("unmoor ")) ? stderr : stdout;
    fmt::print(to, "{}", outcome.text);
  }
  if (std::fflush(stdout) != 0) {
    fmt::print(stderr, "{}: the result could not be written: standard output is closed or full\n", command_name(options));
    return Status::usage;
  }
  return status;
}

}  // namespace
}  // namespace unmoor::cli

int main(int argc, char** argv) {
  using namespace unmoor::cli;
  try {
    if (argc > 1 && std::string_view(argv[1]).starts_with("--worker")) return worker_main(argc, argv);
    Options options;
    const auto status = parse(argc, argv, options);
    if (status && options.wrong_use.empty()) return *status;
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "unmoor: {}\n", error.what());
    return Status::internal;
  }
}
