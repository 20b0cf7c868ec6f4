#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "unmoor/runtime/session.h"

namespace unmoor {

// What a worker is to run. The worker opens the model and the device itself.
struct WorkerRequest {
  std::string model;   // Path of an ONNX file.
  std::string device;  // "opencl:0"; then the host device "cpu" for fallback.
  PlanOptions options = {};
  std::map<std::string, std::string> settings = {};  // Device options, "threads" = "2".
};

// A runner in a child process of this program (`unmoor --worker`). A crash or a hang there is an Error of kind Device that says how
// the child ended and what it printed last; the next call starts a new child. Arrays cross as bytes, values one by one as the
// observer is shown them.
std::unique_ptr<Runner> make_worker_runner(const WorkerRequest& request);

// The child's side: serves requests on standard input and output until the input ends. `open` makes the runner for a request;
// it is the only part that knows backends. Returns the exit status.
using OpenRunner = std::function<std::unique_ptr<ModelRunner>(const WorkerRequest&)>;
int serve_worker(const OpenRunner& open);

// Runs `unmoor ARGUMENTS…` as a child process and takes what it prints. `ended` says how it went if the output is not complete.
struct ToolOutput {
  std::string json;
  std::string ended;   // Empty if it ran to its end.
  std::string errors;  // The last of its error stream.
  int status = 0;
};
ToolOutput run_tool(const std::vector<std::string>& arguments, double seconds);

}  // namespace unmoor
