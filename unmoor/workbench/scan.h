#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/workbench/result.h"

namespace unmoor {

// A node of the file on one platform.
struct ScannedNode {
  std::string node;
  std::string op;
  std::string platform;
  std::string state;     // native constrained expanded fallback unsupported unknown
  std::string reason;    // As in cli.md, empty if native.
  std::string detail;
  std::string advice;
  std::string priority;  // P0 P1 P2, empty if there is nothing to do.
  std::string category;
};

struct ScannedPlatform {
  std::string name;
  std::string version;             // Of its driver and runtime, as far as it says.
  size_t native = 0, constrained = 0, expanded = 0, fallback = 0, unsupported = 0, unknown = 0;
  size_t p0 = 0, p1 = 0, p2 = 0;
  double effort_low = 0;  // Days.
  double effort_high = 0;
  std::vector<ScannedNode> nodes;  // Every node of the file, bodies of control flow included, in its order.
};

struct ScanResult {
  std::vector<ScannedPlatform> platforms;

  size_t open_issues() const;  // P0 and P1 on all platforms.
  nlohmann::json to_json() const;
  std::string text() const;
};

struct ScanOptions {
  std::vector<std::string> nodes = {};  // Only these, if any.
  std::vector<std::string> ops = {};
  std::string own_version = {};         // Of the program, for devices that are a part of it.
};
// What a plan says about each node of the file. `typed` is the file with its types inferred: the arithmetic of its nodes tells which are heavy. Fails
// with InvalidArgument on a node or an operator that the file does not have.
ScannedPlatform scan_plan(const Graph& file, const Graph& typed, const PlanInfo& plan, const std::string& platform, const ScanOptions& options);

// Low, medium or high: what it takes to write a kernel of this category.
std::string difficulty(const std::string& category);

}  // namespace unmoor
