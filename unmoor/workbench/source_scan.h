#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace unmoor {

// What every finding of one kind has in common.
struct SourceRule {
  std::string id;        // "cuda-call"
  std::string priority;  // P0: fails on another device. P1: runs, but on the wrong device, slower or otherwise. P2: to be reproduced elsewhere.
  std::string why;       // Why it blocks.
  std::string portable;  // What to write instead.
};
const std::vector<SourceRule>& source_rules();

struct SourceFinding {
  std::string file;  // Below the folder.
  size_t line = 0;
  size_t column = 0;  // From 0, in bytes.
  std::string rule;
  std::string what;      // What stands there, in short.
  bool patched = false;  // The patch mends it.
};

struct SourceScan {
  std::string root;
  size_t files = 0;  // That were looked at.
  std::string python;
  std::vector<std::pair<std::string, std::string>> skipped = {};  // File and why.
  std::vector<SourceFinding> findings = {};                       // By file and line.
  std::string patch = {};                                         // For `git apply` in the folder; empty if nothing can be mended safely.

  size_t count(const std::string& priority) const;
  nlohmann::json to_json() const;
  std::string text() const;  // Lines of at most 80 columns.
};

// Finds what ties the PyTorch code of a folder to one vendor's devices. The user's Python parses the files, all in one process, and runs
// none of them. Fails with Io if there is no such folder, with Device as run_python does, with Unsupported on more files than are read.
SourceScan scan_source(const std::string& folder, const std::string& python);

}  // namespace unmoor
