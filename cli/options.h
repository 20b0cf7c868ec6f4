#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace unmoor::cli {

// What the user asked for. Every flag is defined once, in parse.cpp; a tool reads those that it declares there.
struct Options {
  std::string tool;
  std::string model;
  std::string command_line;           // As typed, for reports.
  std::string wrong_use;              // Why the command line could not be understood.
  std::vector<std::string> devices;   // --on, --to
  std::string reference = "reference";
  std::string target = "cpu";
  std::string baseline;               // align: the platform that the model comes from; empty: none
  std::string fallback = "report";
  std::vector<std::string> inputs;    // name=FILE, FILE.npz, FILE.npy
  std::string shapes;
  std::string output;
  std::string dump;
  std::string html;
  std::string language = "en";        // Of the page.
  std::vector<std::string> settings;  // --set DEVICE.KEY=VALUE
  std::string python;                 // The interpreter for engines; empty: UNMOOR_PYTHON, the active environment's, python3.
  std::vector<std::string> nodes;     // --node
  std::vector<std::string> ops;       // --op
  std::string action;                 // catalog: list, show, diff, import
  std::vector<std::string> names;     // What the action is about.
  std::string platform;               // catalog import: NAME@VERSION
  std::string source;                 // catalog import: where the table is from
  std::string code;                   // scan --source: a folder of PyTorch code
  std::string patch;                  // scan --diff: the file to write
  std::string memory;                 // scan: of the target, 16G
  std::string link;                   // scan: bytes a second between host and target
  std::string category;
  std::string case_text;
  std::string onnx_tests;             // A folder of ONNX's test layout.
  uint64_t seed = 0;
  std::string range;                  // LOW,HIGH for generated floats
  size_t threads = 0;                 // 0: as many as cores
  double seconds = 1;
  std::optional<double> atol = std::nullopt;
  std::optional<double> rtol = std::nullopt;
  std::vector<std::string> results;   // report: files that hold results
  bool open = false;                  // report: shows the page
  std::string serve_folder;           // report: the folder whose results a local page lists
  unsigned port = 0;                  // report: of that page; 0: a free one
  bool json = false;
  bool explain = false;
  bool kernels = false;
  bool no_fuse = false;
  bool no_causes = false;
  bool exact = false;                 // No kernel that rounds otherwise than plain arithmetic does.
  bool hash = false;
  bool exit_zero = false;
  std::string lock;                   // doctor: the lock file to write
  std::string verify;                 // doctor: the lock file to compare this machine with
  bool collector = false;             // doctor: only prints a script for another machine
  std::string from_dump;              // doctor: what that script collected
  std::string reproductions;          // align: a folder for what replays each finding
  std::string write_cases;            // A folder for cases in ONNX's test layout.
  bool write_dump_script = false;     // align: only prints a script for another machine
  std::vector<std::string> values;    // run --dump, align: patterns of the values to look at; none: all
  size_t every = 1;                   // The first and every n-th of them
  bool dump_stats = false;            // run --dump: statistics instead of values
  bool bisect = false;                // align: outputs only, and parts of the model where one is off
  bool is_part = false;               // Of a part of a model: what is to be noted was noted with the whole.
  std::string junit;                  // align: a file for continuous integration
  bool self_test = false;             // align: of the comparison itself
  std::string data;                   // align: a folder of samples or a Python file that yields them
  std::string task;                   // With it: what the model is for
  std::string task_output;            // With it: the output to judge
  std::string keep_float32;           // run, align: a file that names nodes to run in float32
  std::string keep_curve;             // align: the file to write, of nodes to keep in float32
  double keep_error = 0.5;            // With it: as many as bring the error to this part of what it is
  bool dry_run = false;               // conformance: only where each case would run
  bool serve = false;                 // bench: answer requests on standard input
};

// Exit status, as documented in --help.
enum Status : int { fine = 0, finding = 1, usage = 2, environment = 3, internal = 4 };

// Parses the command line. Returns an exit status if there is nothing more to do (help, version) or it was wrong: then `wrong_use`, `tool` and
// `json` are set.
std::optional<int> parse(int argc, char** argv, Options& options);

}  // namespace unmoor::cli
