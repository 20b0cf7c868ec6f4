#include "unmoor/workbench/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/workbench/scan_nodes.h"

namespace unmoor {
namespace {

std::string advice_for(const ScannedNode& node) {
  if (node.state == "expanded") return "runs as simpler operators; a kernel of its own would be faster";
  if (node.state == "unsupported") return "nobody here runs it: rewrite it in the model, or add the operator";
  if (node.state != "fallback") return "";
  if (node.op == "ai.onnx.ml:ZipMap") return "export without it (skl2onnx: zipmap=False): its input has the same scores";
  if (node.reason == "dynamic") return "give shapes that do not depend on data, or pad to a fixed size";
  if (node.reason == "dtype") return "convert its inputs to a type that the device takes";
  if (node.reason == "attribute" || node.reason == "rank" || node.reason == "layout")
    return "rewrite the node in a form that the device takes";
  return "the host runs it; a kernel for the device would save the copies";
}

using Placements = std::map<std::string, const PlacementInfo*, std::less<>>;

// The placement that covers each node of the file, by name.
Placements by_name(const PlanInfo& plan) {
  Placements found;
  const auto rank = [](const PlacementInfo& placed) {
    return placed.state == "unsupported" ? 3 : placed.state == "fallback" ? 2 : placed.state == "expanded" ? 1 : 0;
  };
  for (const PlacementInfo& placed : plan.placements) {
    auto names = placed.also;
    names.push_back(placed.node);
    for (const std::string& each : names) {
      const PlacementInfo*& entry = found[each];
      if (entry == nullptr || rank(placed) > rank(*entry)) entry = &placed;
    }
  }
  return found;
}

// The placement of a body that could not be planned, for the nodes in it; null if there is none.
const PlacementInfo* unplanned_body(const Placements& placed, const std::string& node) {
  for (size_t slash = node.find('/'); slash != std::string::npos; slash = node.find('/', slash + 1)) {
    const auto around = placed.find(node.substr(0, slash));
    if (around != placed.end() && around->second->state == "unknown") return around->second;
  }
  return nullptr;
}

ScannedNode scanned(const FileNode& file, const PlacementInfo* placed, const std::string& platform) {
  ScannedNode node{file.name, file.op, platform, "native", "", "", "", "", file.category};
  if (placed == nullptr) {
    node.detail = "nothing to run: computed when the model is prepared, or not needed";
    return node;
  }
  if (placed->state == "fallback" || placed->state == "unsupported" || placed->state == "expanded" || placed->state == "unknown")
    node.state = placed->state;
  if (placed->state == "host") node.detail = "small work of the host: control flow or shape arithmetic";
  if (placed->state == "choice") node.detail = "the device could, but its neighbours run on the host";
  if (node.state == "native" && node.detail.empty()) node.detail = placed->kernel;
  if (node.state == "native" || placed->refusals.empty()) return node;
  const auto* why = &placed->refusals[0];
  for (const auto& refused : placed->refusals) {
    if (refused.device == platform) why = &refused;
  }
  node.reason = why->reason;
  node.detail = why->detail;
  return node;
}

}  // namespace

void add_node(ScannedPlatform& platform, ScannedNode node, double flop) {
  platform.native += node.state == "native" ? 1 : 0;
  platform.constrained += node.state == "constrained" ? 1 : 0;
  platform.expanded += node.state == "expanded" ? 1 : 0;
  platform.fallback += node.state == "fallback" ? 1 : 0;
  platform.unsupported += node.state == "unsupported" ? 1 : 0;
  platform.unknown += node.state == "unknown" ? 1 : 0;
  platform.p0 += node.priority == "P0" ? 1 : 0;
  platform.p1 += node.priority == "P1" ? 1 : 0;
  platform.p2 += node.priority == "P2" ? 1 : 0;
  if (flop > 0) platform.flop[node.state] += flop;
  platform.nodes.push_back(std::move(node));
}

std::string difficulty(const std::string& category) {
  static const std::set<std::string> low{"arithmetic", "activation", "layout", "reduction", "text"};
  static const std::set<std::string> high{"attention",    "recurrent", "sampling", "dynamic output",
                                          "control flow", "sequence",  "signal",   "other"};
  return low.contains(category) ? "low" : high.contains(category) ? "high" : "medium";
}

std::string alternative(const std::string& category) {
  static const std::map<std::string, std::string> words{
      {"arithmetic", "direct"},
      {"reduction", "direct"},
      {"matmul", "direct; mind transposed operands"},
      {"conv", "mind padding, dilation and groups"},
      {"pool", "mind padding and rounding of sizes"},
      {"norm", "mind epsilon, and which axes"},
      {"activation", "mind the form: erf or tanh"},
      {"attention", "take it apart into products and softmax, or write a fused kernel"},
      {"recurrent", "unroll it, or run it on the host"},
      {"layout", "direct; often cancels out"},
      {"quantization", "run it in float, or quantise anew for the target"},
      {"sampling", "compare results one by one, or run it on the host"},
      {"dynamic output", "pad to a fixed bound, or run it on the host"},
      {"control flow", "unroll it, or run it on the host: the host decides"},
      {"signal", "write it as a product with a constant matrix"}};
  const auto found = words.find(category);
  return found == words.end() ? "run it on the host, before or after the rest" : found->second;
}

namespace {

// The work on one operator for one reason: days, and what they go into. Nothing where there is nothing to do.
ScanEffort effort_for(const ScannedNode& node) {
  ScanEffort effort{fmt::format("{}: {}", node.op, node.reason), "", node.node};
  const bool urgent = node.priority == "P0" || node.priority == "P1";
  const std::string level = difficulty(node.category);
  if (urgent) {
    effort.low = level == "low" ? 0.5 : level == "medium" ? 1 : 3;
    effort.high = level == "low" ? 1 : level == "medium" ? 3 : 10;
    effort.why = level == "high"     ? "a kernel to write, its results to verify one by one"
                 : level == "medium" ? "a kernel with attributes to mind"
                                     : "a simple kernel, or none";
  } else if (node.priority == "P2" && node.form == "rewrite") {
    effort.low = 0.25;
    effort.high = 1;
    effort.why = "a rewrite of the model, known step by step";
  } else if (node.state == "constrained") {
    effort.high = 0.25;
    effort.why = "conditions to check";
  }
  return effort;
}

}  // namespace

// A model that is written in another opset is written so once, whatever the operators.
void add_effort(ScannedPlatform& platform) {
  std::map<std::string, size_t> places;
  for (const ScannedNode& node : platform.nodes) {
    ScanEffort effort = effort_for(node);
    if (effort.high == 0) continue;
    const bool of_model = node.reason == "opset" && node.form == "rewrite";
    if (of_model) effort.what = "the whole model: opset";
    const auto [place, fresh] = places.emplace(effort.what, platform.effort.size());
    if (fresh) platform.effort.push_back(std::move(effort));
    ScanEffort& entry = platform.effort[place->second];
    ++entry.nodes;
    if (!fresh && effort.high > entry.high) entry.low = effort.low, entry.high = effort.high, entry.why = effort.why;
  }
  for (const ScanEffort& entry : platform.effort) {
    platform.effort_low += entry.low;
    platform.effort_high += entry.high;
  }
  std::ranges::stable_sort(platform.effort, [](const ScanEffort& a, const ScanEffort& b) {
    return a.high != b.high ? a.high > b.high : a.nodes > b.nodes;
  });
}

bool is_misfit(const Error& error) {
  return error.kind() == ErrorKind::InvalidModel || error.kind() == ErrorKind::InvalidArgument || error.kind() == ErrorKind::Unsupported;
}

void check_names(const FileNodes& nodes, const ScanOptions& options) {
  for (const std::string& node : options.nodes) {
    if (std::ranges::find(nodes.all(), node, &FileNode::name) == nodes.all().end())
      fail(ErrorKind::InvalidArgument, "the model has no node '", node, "'");
  }
  for (const std::string& op : options.ops) {
    if (std::ranges::find(nodes.all(), op, &FileNode::op) == nodes.all().end())
      fail(ErrorKind::InvalidArgument, "the model has no operator '", op, "'");
  }
}

bool is_asked_for(const ScanOptions& options, const std::string& node, const std::string& op) {
  const auto listed = [](const std::vector<std::string>& list, const std::string& each) {
    return list.empty() || std::ranges::find(list, each) != list.end();
  };
  return listed(options.nodes, node) && listed(options.ops, op);
}

ScannedPlatform scan_plan(const Graph& file, const Graph& typed, const PlanInfo& plan, const std::string& platform,
                          const ScanOptions& options) {
  return scan_plan(FileNodes(file, typed), plan, platform, options);
}

ScannedPlatform scan_plan(const FileNodes& nodes, const PlanInfo& plan, const std::string& platform, const ScanOptions& options) {
  ScannedPlatform result;
  result.name = platform;
  if (!plan.versions.empty()) {
    for (const auto& [what, version] : plan.versions[0])
      result.version += fmt::format("{}{} {}", result.version.empty() ? "" : ", ", what, version);
  }
  if (result.version.empty()) result.version = options.own_version;
  check_names(nodes, options);
  const Placements placed = by_name(plan);
  const bool any_heavy = nodes.any_heavy();
  for (const FileNode& node : nodes.all()) {
    if (!is_asked_for(options, node.name, node.op)) continue;
    const auto found = placed.find(node.name);
    ScannedNode entry = scanned(node, found == placed.end() ? unplanned_body(placed, node.name) : found->second, platform);
    entry.priority = priority_of(node, entry.state, any_heavy, false);
    entry.advice = advice_for(entry);
    add_node(result, std::move(entry), node.flop);
  }
  add_effort(result);
  for (const CopyInfo& copy : plan.copies) result.copied_bytes += static_cast<double>(copy.bytes);
  return result;
}

size_t ScanResult::open_issues() const {
  size_t open = 0;
  for (const ScannedPlatform& platform : platforms) open += platform.p0 + platform.p1;
  return open;
}

}  // namespace unmoor
