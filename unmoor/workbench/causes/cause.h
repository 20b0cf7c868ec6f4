#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// What a node was given, what it should give and what a target gave. Everything must outlive the search.
struct Evidence {
  const OpCall& call;            // Its constants are the model's weights; every shape is known.
  std::span<const Data> inputs;  // As many as the call has, absent ones empty; in float64 or as the target stored them.
  size_t output = 0;             // Which one is looked at.
  const Tensor& target;          // As the target gave it.
  std::span<const double>
      exact;  // The output in float64. May be of another size than the target: then only shapes are explained.
  std::span<const double> spread;  // How far rounding may move each, as a deviation; as many as `exact`.
  DType stored = DType::F32;       // How the target stores the output.
};

// One thing that may have been done differently, and what speaks for it.
struct Hypothesis {
  std::string id;
  double bits = 0;    // Of evidence over "no change", in all elements looked at.
  double excess = 0;  // The target's error under it, as a multiple of what rounding explains.
};

struct Cause {
  std::string id;    // Stable: see cause_ids.
  std::string text;  // "The target computes …", a sentence.
  std::string advice;
  double bits = 0;
  double excess = 0;
  std::vector<std::string> also = {};       // Ids that these inputs cannot tell apart from it, simplest first.
  std::string with = {};                    // The second of two causes at once; empty if there is one.
  std::vector<Hypothesis> hypotheses = {};  // Everything tried, the likeliest first; the best variant of each id.
};

struct CauseOptions {
  double seconds = 20;                 // For one node. What is left then is not tried, and said.
  double flop = 5e6;                   // Of one evaluation: beyond it, some rows, channels or batch items stand for all.
  size_t elements = size_t{1} << 22U;  // Of inputs and output together: a larger call, sampled, is not searched, and said.
  uint64_t seed = 1;
};

struct CauseSearch {
  std::optional<Cause> cause = std::nullopt;  // Empty: unexplained, or there was nothing to explain.
  bool explained = false;                     // The node as it is explains the target.
  std::vector<Hypothesis> hypotheses = {};    // As in the cause.
  size_t elements = 0;                        // Looked at.
  size_t of_elements = 0;                     // That the output has.
  std::vector<std::string> untried = {};      // Ids that time did not suffice for.
  std::vector<std::string> failed = {};       // "id: reason": rewrites that the operator's reference refused.
};

// Tries every hypothesis that applies to the operator, and pairs of them where none, or only noise, explains the target: the node
// is computed anew in float64 with one thing changed, and scored by a Student-t likelihood. A target that agrees with `exact`
// within its spread has no cause. Fails as references do when even the unchanged node cannot be computed, and with Stopped. May
// be called from any thread.
CauseSearch search_cause(const Evidence& evidence, const CauseOptions& options = {});
std::optional<Cause> find_cause(const Evidence& evidence);

// Every id, in a fixed order.
std::vector<std::string> cause_ids();
// Id, text and advice of one of them. Fails with Internal on another.
Cause cause_named(std::string_view id);

// The output in float64 and its spread by noise/floor.h in float32 arithmetic, its storing left out; that of its
// rounding alone where there is no noise model. For callers that have no floor. Fails as references do.
struct Expected {
  std::vector<double> exact;
  std::vector<double> spread;
  Shape shape;
};
Expected expected_output(const OpCall& call, std::span<const Data> inputs, size_t output, uint64_t seed = 1);

}  // namespace unmoor
