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
  std::string version;
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

// What a plan says about each node of the file. `version` names the platform's driver or runtime.
ScannedPlatform scan_plan(const Graph& file, const PlanInfo& plan, const std::string& platform, const std::string& version);

// Low, medium or high: what it takes to write a kernel of this category.
std::string difficulty(const std::string& category);

}  // namespace unmoor
