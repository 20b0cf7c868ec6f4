#include "unmoor/workbench/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/ops/op.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr double heavy_share = 0.01;  // Of the floating-point operations of the model.

// A node of the file with what its place in the graph says about it.
struct FileNode {
  std::string name;
  std::string op;
  std::string category;
  bool heavy = false;
  bool shape_only = false;    // Makes integers only: no part of a path.
  bool after_heavy = false;
  bool before_heavy = false;
};

std::string label(const Node& node) { return node.origin.name.empty() ? node.name : node.origin.name; }

template <class What>
void each_body(const Node& node, const std::string& prefix, const What& what) {
  for (const auto& [key, attribute] : node.attributes) {
    const auto* body = std::get_if<SubGraph>(&attribute);
    if (body != nullptr && *body != nullptr) what(**body, fmt::format("{}{}/{}/", prefix, label(node), key));
  }
}

using Flops = std::map<std::string, double, std::less<>>;  // By node.

// Floating-point operations of every node of a graph with inferred types, as far as these are known; bodies count once.
void add_flops(const Graph& typed, const std::string& prefix, Flops& flops) {
  for (const Node& node : typed.nodes()) {
    each_body(node, prefix, [&](const Graph& body, const std::string& inside) { add_flops(body, inside, flops); });
    const OpCall call = call_for(typed, node);
    const auto known = [](const std::optional<Type>& type) { return !type || is_known(*type); };
    if (!std::ranges::all_of(call.inputs, known) || !std::ranges::all_of(call.outputs, [](const Type& type) { return is_known(type); })) continue;
    flops[prefix + label(node)] += cost_of(call).flop;
  }
}

// What the nodes of a file are, and what lies before and after them.
class FileNodes {
 public:
  FileNodes(const Graph& file, const Graph& typed) {
    add_flops(typed, "", flops_);
    for (const auto& [name, flop] : flops_) total_ += flop;
    list(file, "", false, false);
  }

  const std::vector<FileNode>& all() const { return nodes_; }

 private:
  // A matrix product, convolution, attention or recurrent network, whatever takes a share of the arithmetic, a body that holds one of these, or
  // what nobody knows.
  bool is_heavy(const Node& node, const std::string& prefix) const {
    const Op* const op = all_ops().find(node.op);
    if (op == nullptr || op->category == Category::Matrix || op->category == Category::Convolution || op->category == Category::Attention ||
        op->category == Category::Recurrent || op->category == Category::Trees) {
      return true;
    }
    const auto flop = flops_.find(prefix + label(node));
    if (flop != flops_.end() && total_ > 0 && flop->second >= heavy_share * total_) return true;
    bool inside = false;
    each_body(node, prefix, [&](const Graph& body, const std::string& place) {
      inside = inside || std::ranges::any_of(body.nodes(), [&](const Node& each) { return is_heavy(each, place); });
    });
    return inside;
  }

  // Lists a graph; `after`, `before`: whether something heavy lies around it.
  void list(const Graph& graph, const std::string& prefix, bool after, bool before) {
    const size_t first = nodes_.size();
    for (const Node& node : graph.nodes()) {
      const Op* const op = all_ops().find(node.op);
      FileNode entry{prefix + label(node), node.origin.op.empty() ? node.op : node.origin.op,
                     op == nullptr ? "other" : std::string(name(op->category)), is_heavy(node, prefix)};
      entry.shape_only = node.op == "Shape" || node.op == "Size";
      nodes_.push_back(std::move(entry));
    }
    mark_paths(graph, first, after, before);
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const FileNode outer = nodes_[first + i];
      const bool again = graph.nodes()[i].op != "If" && outer.heavy;  // The next round follows.
      each_body(graph.nodes()[i], prefix, [&](const Graph& body, const std::string& place) {
        list(body, place, outer.after_heavy || again, outer.before_heavy || again);
      });
    }
  }

  void mark_paths(const Graph& graph, size_t first, bool after_outside, bool before_outside) {
    std::vector<bool> after(graph.values().size());
    std::vector<bool> before(graph.values().size());
    const auto any = [](const std::vector<ValueId>& ids, const std::vector<bool>& marks) {
      return std::ranges::any_of(ids, [&](ValueId id) { return id != no_value && marks[Graph::index(id)]; });
    };
    const auto set = [](const std::vector<ValueId>& ids, std::vector<bool>& marks) {
      for (const ValueId id : ids) {
        if (id != no_value) marks[Graph::index(id)] = true;
      }
    };
    if (after_outside) set(graph.inputs(), after);
    if (before_outside) set(graph.outputs(), before);
    const size_t count = graph.nodes().size();
    for (size_t i = 0; i < count; ++i) {
      FileNode& node = nodes_[first + i];
      node.after_heavy = any(graph.nodes()[i].inputs, after);
      if ((node.after_heavy || node.heavy) && !node.shape_only) set(graph.nodes()[i].outputs, after);
    }
    for (size_t i = count; i-- > 0;) {
      FileNode& node = nodes_[first + i];
      node.before_heavy = any(graph.nodes()[i].outputs, before);
      if ((node.before_heavy || node.heavy) && !node.shape_only) set(graph.nodes()[i].inputs, before);
    }
  }

  Flops flops_;
  double total_ = 0;
  std::vector<FileNode> nodes_;
};

std::string priority_of(const FileNode& node, const std::string& state, bool any_heavy) {
  if (state == "expanded") return "P2";
  if (state != "fallback" && state != "unsupported") return "";
  return !any_heavy || node.heavy || (node.after_heavy && node.before_heavy) ? "P0" : "P1";
}

std::string advice_for(const ScannedNode& node) {
  if (node.state == "expanded") return "runs as simpler operators; a kernel of its own would be faster";
  if (node.state == "unsupported") return "nobody here runs it: rewrite it in the model, or add the operator";
  if (node.state != "fallback") return "";
  if (node.op == "ai.onnx.ml:ZipMap") return "export without it (skl2onnx: zipmap=False): its input has the same scores";
  if (node.reason == "dynamic") return "give shapes that do not depend on data, or pad to a fixed size";
  if (node.reason == "dtype") return "convert its inputs to a type that the device takes";
  if (node.reason == "attribute" || node.reason == "rank" || node.reason == "layout") return "rewrite the node in a form that the device takes";
  return "the host runs it; a kernel for the device would save the copies";
}

using Placements = std::map<std::string, const PlacementInfo*, std::less<>>;

// The placement that covers each node of the file, by name.
Placements by_name(const PlanInfo& plan) {
  Placements found;
  const auto rank = [](const PlacementInfo& placed) { return placed.state == "unsupported" ? 3 : placed.state == "fallback" ? 2 : placed.state == "expanded" ? 1 : 0; };
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
  if (placed->state == "fallback" || placed->state == "unsupported" || placed->state == "expanded" || placed->state == "unknown") node.state = placed->state;
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

void count(ScannedPlatform& platform, const ScannedNode& node) {
  platform.native += node.state == "native" ? 1 : 0;
  platform.constrained += node.state == "constrained" ? 1 : 0;
  platform.expanded += node.state == "expanded" ? 1 : 0;
  platform.fallback += node.state == "fallback" ? 1 : 0;
  platform.unsupported += node.state == "unsupported" ? 1 : 0;
  platform.unknown += node.state == "unknown" ? 1 : 0;
  platform.p0 += node.priority == "P0" ? 1 : 0;
  platform.p1 += node.priority == "P1" ? 1 : 0;
  platform.p2 += node.priority == "P2" ? 1 : 0;
}

// Each operator and reason is worked on once, however many nodes have it.
void add_effort(ScannedPlatform& platform) {
  std::set<std::string> seen;
  for (const ScannedNode& node : platform.nodes) {
    if (node.priority != "P0" && node.priority != "P1") continue;
    if (!seen.insert(fmt::format("{}|{}", node.op, node.reason)).second) continue;
    const std::string level = difficulty(node.category);
    platform.effort_low += level == "low" ? 0.5 : level == "medium" ? 1 : 3;
    platform.effort_high += level == "low" ? 1 : level == "medium" ? 3 : 10;
  }
}

}  // namespace

std::string difficulty(const std::string& category) {
  static const std::set<std::string> low{"arithmetic", "activation", "layout", "reduction", "text"};
  static const std::set<std::string> high{"attention", "recurrent", "sampling", "dynamic output", "control flow", "sequence", "signal", "other"};
  return low.contains(category) ? "low" : high.contains(category) ? "high" : "medium";
}

namespace {

// Fails with InvalidArgument on a name that selects nothing.
void check_names(const std::vector<FileNode>& nodes, const ScanOptions& options) {
  for (const std::string& node : options.nodes) {
    if (std::ranges::find(nodes, node, &FileNode::name) == nodes.end()) fail(ErrorKind::InvalidArgument, "the model has no node '", node, "'");
  }
  for (const std::string& op : options.ops) {
    if (std::ranges::find(nodes, op, &FileNode::op) == nodes.end()) fail(ErrorKind::InvalidArgument, "the model has no operator '", op, "'");
  }
}

}  // namespace

ScannedPlatform scan_plan(const Graph& file, const Graph& typed, const PlanInfo& plan, const std::string& platform, const ScanOptions& options) {
  ScannedPlatform result;
  result.name = platform;
  if (!plan.versions.empty()) {
    for (const auto& [what, version] : plan.versions[0]) result.version += fmt::format("{}{} {}", result.version.empty() ? "" : ", ", what, version);
  }
  if (result.version.empty()) result.version = options.own_version;
  const FileNodes nodes(file, typed);
  check_names(nodes.all(), options);
  const Placements placed = by_name(plan);
  const bool any_heavy = std::ranges::any_of(nodes.all(), &FileNode::heavy);
  const auto listed = [](const std::vector<std::string>& list, const std::string& each) { return list.empty() || std::ranges::find(list, each) != list.end(); };
  for (const FileNode& node : nodes.all()) {
    if (!listed(options.nodes, node.name) || !listed(options.ops, node.op)) continue;
    const auto found = placed.find(node.name);
    ScannedNode entry = scanned(node, found == placed.end() ? unplanned_body(placed, node.name) : found->second, platform);
    entry.priority = priority_of(node, entry.state, any_heavy);
    entry.advice = advice_for(entry);
    count(result, entry);
    result.nodes.push_back(std::move(entry));
  }
  add_effort(result);
  return result;
}

size_t ScanResult::open_issues() const {
  size_t open = 0;
  for (const ScannedPlatform& platform : platforms) open += platform.p0 + platform.p1;
  return open;
}

json ScanResult::to_json() const {
  json result{{"platforms", json::array()}, {"nodes", json::array()}};
  for (const ScannedPlatform& p : platforms) {
    result["platforms"].push_back({{"name", p.name}, {"version", p.version}, {"nodes", p.nodes.size()}, {"native", p.native},
                                   {"constrained", p.constrained}, {"expanded", p.expanded}, {"fallback", p.fallback},
                                   {"unsupported", p.unsupported}, {"unknown", p.unknown}, {"p0", p.p0}, {"p1", p.p1}, {"p2", p.p2},
                                   {"effort_days", {p.effort_low, p.effort_high}}});
    for (const ScannedNode& node : p.nodes) {
      result["nodes"].push_back({{"node", node.node}, {"op", node.op}, {"platform", node.platform}, {"state", node.state}, {"reason", node.reason},
                                 {"detail", node.detail}, {"advice", node.advice}, {"priority", node.priority}});
    }
  }
  return result;
}

std::string ScanResult::text() const {
  Table table({"platform", "nodes", "native", "expanded", "fallback", "unsupp.", "unknown", "P0", "P1", "P2", "days"}, "lrrrrrrrrrr");
  for (const ScannedPlatform& p : platforms) {
    const auto number_text = [](size_t value) { return std::to_string(value); };
    table.add({p.name, number_text(p.nodes.size()), number_text(p.native), number_text(p.expanded), number_text(p.fallback),
               number_text(p.unsupported), number_text(p.unknown), number_text(p.p0), number_text(p.p1), number_text(p.p2),
               p.effort_high == 0 ? "0" : fmt::format("{:g}-{:g}", p.effort_low, p.effort_high)});
  }
  std::string text = table.text();
  for (const ScannedPlatform& p : platforms) {
    std::map<std::string, std::pair<size_t, std::string>> groups;
    for (const ScannedNode& node : p.nodes) {
      if (node.priority.empty()) continue;
      auto& [times, first] = groups[fmt::format("{} {} {}: {}: {}", node.priority, node.state, node.op, node.reason, node.detail)];
      if (++times == 1) first = node.node;
    }
    for (const auto& [what, entry] : groups) {
      text += wrapped(fmt::format("{}: {} ({}'{}')", p.name, what, entry.first == 1 ? "" : fmt::format("{} nodes, first ", entry.first), shortened(entry.second, 40)));
    }
  }
  return text;
}

}  // namespace unmoor
