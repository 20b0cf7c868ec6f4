#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/runtime/runner.h"

namespace unmoor {

// A foreign engine and where it runs: "ort:cpu", "ort:cuda:0", "torch:npu:0", "py:FILE".
struct EngineName {
  std::string engine;  // ort, torch, py
  std::string device;  // "cpu", "cuda:0"; of py the file.
  std::string text() const;
};
// "ort" and "torch" alone mean their cpu. Empty if the text names no engine. Fails with InvalidArgument if it does, wrongly.
std::optional<EngineName> parse_engine(const std::string& text);
bool is_engine(const std::string& text);  // Starts as an engine's name does.

// What an engine is to run. The engine reads the model's file itself.
struct EngineRequest {
  EngineName name = {};
  std::string model = {};                            // Path of an ONNX file.
  std::string python = {};                           // The interpreter; empty: find_python chooses.
  std::map<std::string, std::string> settings = {};  // "optimize" = "off"; docs/engines.md lists them.
  size_t threads = 0;                                // 0: as many as this process may use.
  bool forbid = false;                               // Its device must take every node, where the engine can be told so.
  std::vector<ValueInfo> inputs = {};                // As the file declares them.
  std::vector<ValueInfo> outputs = {};
  std::vector<ValueInfo> values = {};  // What nodes of the file make: candidates to be shown.
  // Values of the ONNX model of these names, from a run here on these inputs: for those that only their content can match. May be
  // empty.
  std::function<NamedData(const NamedData& inputs, const std::vector<std::string>& names)> known_values = {};
  std::function<void(const std::string&)> note = {};  // Takes what the user should know, a sentence a call.
};

// A runner in a child process of the user's Python. Whatever happens there (a crash, a hang, a missing package, an exception) is
// an Error of kind Device that says what, where and what usually helps; the next call starts a new child. Numbers cross as bytes,
// values one by one. The child dies with this process. Nothing is written to disk.
std::unique_ptr<Runner> make_engine_runner(EngineRequest request);

// A Python program that runs the PyTorch model which an ONNX file was exported from, on a machine without Unmoor, and writes its
// values as a dump under the file's names. Made in the user's Python, without further packages. Fails with Device.
std::string make_dump_script(const std::string& model, const std::string& python);

// An engine as doctor finds it.
struct FoundEngine {
  std::string name;    // ort, torch
  std::string state;   // ready, absent, broken
  std::string reason;  // Empty if ready.
  std::string version;
  std::string python;                           // The interpreter asked.
  std::vector<std::string> runners;             // Spellings that --on takes: "ort:cpu", "torch:cuda:0".
  std::map<std::string, std::string> versions;  // Of what it is made of: "python", "numpy", "cuda".
};
// Every engine, each looked for in a child of its own, since importing one may crash. `python` as in EngineRequest.
std::vector<FoundEngine> find_engines(const std::string& python);

// A Python program that does the same on a machine without Unmoor: `python3 probe.py ort` prints a line "unmoor-engine {…}" with the
// members of FoundEngine but the interpreter.
std::string_view engine_probe_program();

}  // namespace unmoor
