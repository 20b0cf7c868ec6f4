#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"
#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

// Where a finding can be replayed: a folder in ONNX's test layout, and commands that run it.
struct Replay {
  std::string folder;
  std::vector<std::string> commands;  // Here, then under plain ONNX Runtime.
};
struct ReplayOptions {
  std::string folder;      // New, or empty.
  std::string device;      // That the command names.
  std::string model_file;  // The ONNX file; empty: not known.
};

// Writes the one node of a region with what the target was given and the outputs it should have, in float64 arithmetic stored as
// `stored`. Fails with InvalidArgument where the region is several nodes, with Unsupported on what ONNX cannot hold, with Io.
Replay write_replay(const Region& region, DType stored, const ReplayOptions& options);

// Runs the target's kernel again on other inputs, by the names that the region was given them under; its results by output of the
// region. Fails as the kernel does.
using RunAgain = std::function<std::vector<Data>(const std::vector<std::pair<ValueId, Data>>& given)>;

// Of causes that the recorded inputs cannot tell apart, leaves those that generated ones (causes/probe.h) do not rule out, where
// the region is one node. Returns what there is to add to the cause, in words; empty if nothing was ruled out. Fails with Stopped.
std::string break_tie(Cause& cause, const Region& region, size_t output, const RunAgain& run, uint64_t seed);

}  // namespace unmoor
