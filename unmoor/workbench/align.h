#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/workbench/compare.h"
#include "unmoor/workbench/result.h"

namespace unmoor {

struct AlignOptions {
  std::optional<Tolerance> tolerance = std::nullopt;  // Instead of the table's, for values and outputs.
  std::vector<std::string> nodes = {};                // Only these, if any.
  std::vector<std::string> ops = {};
  std::function<void(const std::string&, size_t, size_t)> progress = {};
};

// One value that both sides can show.
struct AlignedValue {
  std::string name;
  std::string node;
  std::string op;
  DType dtype = DType::F32;                          // As the target stores it.
  std::optional<Metrics> single = std::nullopt;      // The target's kernel alone, on the reference's inputs rounded to its dtype.
  std::optional<Metrics> entire = std::nullopt;      // The target's own run.
  bool finite = true;                                // The target's value holds no NaN and no infinity.
  bool nan = false;                                  // It holds a NaN.
  std::string verdict = {};                          // match, differ, hidden
};

struct AlignResult {
  std::string reference;
  std::string target;
  std::string verdict;                // match or differ
  std::string first_divergent;        // A node's name, a value's where nodes are not known; empty if there is none.
  std::string first_nonfinite;        // Makes a NaN, or an infinity that the reference does not have.
  std::string nonfinite_origin;       // In words.
  std::vector<AlignedValue> values;   // In the target's order.
  std::vector<AlignedValue> outputs;  // By the model's output names; judged by their entire error.
  std::vector<std::string> hidden;    // Nodes whose values one side does not show.
  std::optional<Tolerance> tolerance;
  size_t fallback_nodes = 0;          // Of the target: what its device refused and the host ran.
  bool kernels_alone = true;          // False if the target has none to run: a dump.

  nlohmann::json to_json() const;
  std::string text() const;
};

// Runs both on the same inputs and compares every value that both show, then each kernel of the target alone. The reference's values are kept in
// memory while the target runs.
AlignResult align(Runner& reference, Runner& target, const NamedData& inputs, const AlignOptions& options);

// Where a fused step is the first divergent or non-finite one: names the node inside it, from an alignment of the same two without fusing.
void refine(AlignResult& result, const AlignResult& unfused, const PlanInfo& plan);

// The largest relative L2 error that an output of this type may have after a whole run, and how many times the tolerance its worst element.
double output_limit(DType stored);
constexpr double output_spread = 50;

}  // namespace unmoor
