#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/workbench/result.h"

namespace unmoor {

class Catalog;
class Error;
class Facts;
class FileNodes;

// A node of the file on one platform.
struct ScannedNode {
  std::string node;
  std::string op;
  std::string platform;
  std::string state;   // native constrained expanded fallback unsupported unknown
  std::string reason;  // As in cli.md, empty if native.
  std::string detail;
  std::string advice;
  std::string priority;  // P0 P1 P2, empty if there is nothing to do.
  std::string category;
  std::string form =
      {};  // How it can run where it is not taken as it is: function (the platform takes it apart), rewrite (you do); else empty.
  std::string source = {};  // Of the catalogue: where it stands.
};

// Work on one operator for one reason, however many nodes have it.
struct ScanEffort {
  std::string what;  // "Softsign: no-kernel"
  std::string why;
  std::string first;  // A node that has it.
  size_t nodes = 0;
  double low = 0;  // Days.
  double high = 0;
};

struct ScannedPlatform {
  std::string name;
  std::string version;  // Of its driver and runtime, as far as it says; of the catalogue's facts.
  size_t native = 0, constrained = 0, expanded = 0, fallback = 0, unsupported = 0, unknown = 0;
  size_t p0 = 0, p1 = 0, p2 = 0;
  double effort_low = 0;  // Days.
  double effort_high = 0;
  std::vector<ScannedNode> nodes;           // Every node of the file, bodies of control flow included, in its order.
  std::string source = "plan";              // "plan" of a device that is here, or "catalogue".
  std::vector<ScanEffort> effort = {};      // What decides most first.
  std::map<std::string, double> flop = {};  // By state.
  std::vector<std::string> lacking = {};    // Element types of the model that no node with them is taken with.
  double copied_bytes = 0;                  // Between the platform and the host, where it refuses nodes in between.
};

// What the model itself says, whatever the platform.
struct ModelFacts {
  double parameters = 0;
  double parameter_bytes = 0;
  double flop = 0;                               // Of one run, as far as shapes are known.
  double moved_bytes = 0;                        // That must be read and written at least.
  double activation_bytes = 0;                   // At most at a time, at the sizes that were used.
  std::map<std::string, size_t> dtypes = {};     // Nodes by the element type of their first output.
  std::vector<std::string> dynamic_inputs = {};  // "x[0] batch"
  size_t data_dependent = 0;                     // Nodes whose output shape only the data tells.
  double batch = 1;                              // The first dimension of the first input, as used.

  // The largest batch whose weights and values fit into so many bytes; 0 if none does. Values grow with the batch, weights do
  // not.
  double largest_batch(double memory) const;
};

struct ScanResult {
  std::vector<ScannedPlatform> platforms;
  std::optional<ModelFacts> facts = std::nullopt;
  double memory = 0;      // Of the target, in bytes; 0: not told.
  double link_bytes = 0;  // A second between host and target; 0: not told.

  size_t open_issues() const;  // P0 and P1 on all platforms.
  nlohmann::json to_json() const;
  std::string text() const;
};

struct ScanOptions {
  std::vector<std::string> nodes = {};  // Only these, if any.
  std::vector<std::string> ops = {};
  std::string own_version = {};  // Of the program, for devices that are a part of it.
};
// What a plan says about each node of the file. `typed` is the file with its types inferred: the arithmetic of its nodes tells
// which are heavy. Fails with InvalidArgument on a node or an operator that the file does not have.
ScannedPlatform scan_plan(const Graph& file, const Graph& typed, const PlanInfo& plan, const std::string& platform,
                          const ScanOptions& options);
ScannedPlatform scan_plan(const FileNodes& nodes, const PlanInfo& plan, const std::string& platform, const ScanOptions& options);
// What the catalogue says of each platform; `names` are as the user wrote them, with or without @version. Fails as scan_plan
// does, and on a platform that the catalogue lacks.
std::vector<ScannedPlatform> scan_catalog(const FileNodes& nodes, const Catalog& catalog, const std::vector<std::string>& names,
                                          const ScanOptions& options);

ModelFacts model_facts(const Graph& file, const Graph& typed, const FileNodes& nodes);

// Low, medium or high: what it takes to write a kernel of this category.
std::string difficulty(const std::string& category);
// What to do about operators of a category where a platform has no kernel, in words.
std::string alternative(const std::string& category);
// "hours", "days", "weeks" or "a redesign": what so many days of work at most are.
std::string scale_of(double days);

// Whether an error only says that a form or a size does not fit: a broken or odd model, no lack of memory and no request to stop.
bool is_misfit(const Error& error);

// Whether the options ask for a node; fails with InvalidArgument on a name that selects nothing.
void check_names(const FileNodes& nodes, const ScanOptions& options);
bool is_asked_for(const ScanOptions& options, const std::string& node, const std::string& op);
// Adds a node to its platform's counts and list.
void add_node(ScannedPlatform& platform, ScannedNode node, double flop);
// Sums the work that the platform's nodes ask for, what decides most first.
void add_effort(ScannedPlatform& platform);

}  // namespace unmoor
