#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/command.h"
#include "cli/signals.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/sha256.h"
#include "unmoor/base/stop.h"
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
    case ErrorKind::Internal:
    case ErrorKind::Stopped: return Status::internal;
  }
  return Status::internal;
}

Outcome run_tool(const Options& options, json& result) {
  if (options.tool == "run") return run_command(options, result);
  if (options.tool == "scan") return scan_command(options, result);
  if (options.tool == "catalog") return catalog_command(options, result);
  if (options.tool == "align" && options.self_test) return self_test_command(options, result);
  if (options.tool == "align" && options.model.empty()) fail(ErrorKind::InvalidArgument, "MODEL is required: the ONNX file to align; only --self-test takes none");
  if (options.tool == "align") return options.write_dump_script ? dump_script_command(options, result) : align_command(options, result);
  if (options.tool == "bench") return bench_command(options, result);
  if (options.tool == "doctor") return doctor_command(options, result);
  if (options.tool == "conformance") return conformance_command(options, result);
  if (options.tool == "migrate") return migrate_command(options, result);
  if (options.tool == "report") return report_command(options, result);
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
      write_file(options.html, render_report(report_document(std::move(page)), options.language));
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

// JSON in which no character acts on a terminal; nlohmann escapes those below 32 only, and all of them stand in strings.
std::string json_text(const json& result) {
  std::string text;
  const std::string dumped = result.dump(2, ' ', false, json::error_handler_t::replace);
  for (size_t i = 0; i < dumped.size(); ++i) {
    const auto byte = static_cast<unsigned char>(dumped[i]);
    const auto next = static_cast<unsigned char>(i + 1 < dumped.size() ? dumped[i + 1] : 0);
    if (byte == 0x7F) {
      text += "\\u007f";
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      text += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      text += dumped[i];
    }
  }
  return text + "\n";
}

bool put(std::FILE* to, const std::string& text) { return std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0; }

int run(const Options& options) {
  json result = json::object();
  result["tool"] = options.tool;
  result["version"] = UNMOOR_VERSION;
  result["created"] = now_text();
  result["command"] = options.command_line;
  result["environment"] = {{"host", host_json()}, {"devices", json::array()}, {"versions", {{"unmoor", UNMOOR_VERSION}}}};
  const Outcome outcome = guarded(options, result);
  show_progress("", 0, 0);
  if (requested_stop() != 0) {
    (void)std::fprintf(stderr, "%s: stopped\n", command_name(options).c_str());
    end_by_signal();
  }
  const int status = options.exit_zero && outcome.status == Status::finding ? 0 : outcome.status;
  result["status"] = status;
  result["reason"] = outcome.reason;
  const bool is_error = outcome.status > Status::finding || (outcome.status == Status::finding && outcome.text.starts_with("unmoor "));
  const bool written = options.json ? put(stdout, json_text(result)) : put(is_error ? stderr : stdout, printable(outcome.text));
  if (!written) {
    (void)std::fprintf(stderr, "%s: the result could not be written: standard output is closed or full\n", command_name(options).c_str());
    return Status::usage;
  }
  return status;
}

// A standard stream that is closed would be the number of the next file opened, and results would go there. Reading from the end, and failing to
// write, is what is put in its place.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) (void)::open("/dev/null", O_RDONLY);
  }
}

}  // namespace
}  // namespace unmoor::cli

int main(int argc, char** argv) {
  using namespace unmoor::cli;
  try {
    occupy_standard_streams();
    if (argc > 1 && std::string_view(argv[1]).starts_with("--worker")) return worker_main(argc, argv);
    Options options;
    const auto status = parse(argc, argv, options);
    if (status && options.wrong_use.empty()) return *status;
    watch_signals();
    return run(options);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "unmoor: %s\n", unmoor::printable(error.what()).c_str());
    return Status::internal;
  }
}
