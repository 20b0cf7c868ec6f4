#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/workbench/judge.h"
#include "unmoor/workbench/result.h"

namespace unmoor {

class Baseline;

struct AlignOptions {
  std::optional<Tolerance> tolerance = std::nullopt;  // Instead of the noise floor and the table, for values and outputs.
  std::vector<std::string> nodes = {};                // Only these, if any.
  std::vector<std::string> ops = {};
  std::function<bool(const std::string&)> selects = {};  // Whether a value is looked at, by name; outputs always are. Empty: all.
  // How values of the target are stored that it does not show: of a dump that holds some only.
  std::map<std::string, DType, std::less<>> stored_besides = {};
  // The model as it was read, of which noise floors are made; must outlive the call. Without it values are judged by the table of
  // tolerances.
  const Graph* model = nullptr;
  bool causes = true;         // Looks for the causes and patterns of what is off.
  bool always_floor = false;  // A floor for every value, also where an error is too small to need one.
  uint64_t seed = 0;          // Of the noise.
  size_t noise_copies = 4;    // Runs with noise of the whole model, in step.
  // Where each value that is off is written as a model of one node with its inputs: a folder each, in this one, which is made then;
  // empty: nowhere. The file is the model's, empty if not known; the device is that which the commands name.
  std::string reproductions = {};
  std::string model_file = {};
  std::string replay_device = "cpu";
  const Baseline* baseline = nullptr;  // What the platform that the model comes from makes of it; must outlive the call.
  std::function<void(const std::string&, size_t, size_t)> progress = {};
};

// The errors that a value has on the platform that the model comes from.
struct BaselineErrors {
  std::optional<Metrics> single = std::nullopt;  // From its own nearest values above it.
  std::optional<Metrics> entire = std::nullopt;
  ValueVerdict single_verdict = ValueVerdict::Hidden;
  ValueVerdict entire_verdict = ValueVerdict::Hidden;
};

// One value that both sides can show.
struct AlignedValue {
  std::string name;
  std::string node;
  std::string op;
  DType dtype = DType::F32;                      // As the target stores it.
  std::optional<Metrics> single = std::nullopt;  // The target's kernel alone, on the reference's inputs rounded to its dtype.
  std::optional<Metrics> entire = std::nullopt;  // The target's own run.
  bool finite = true;                            // The target's value holds no NaN and no infinity.
  bool nan = false;                              // It holds a NaN.
  ValueVerdict single_verdict = ValueVerdict::Hidden;
  ValueVerdict entire_verdict = ValueVerdict::Hidden;
  ValueVerdict verdict =
      ValueVerdict::Hidden;  // Of the kernel alone; where the target has none to run, a dump, the worse of both.
  std::string note = {};     // What there is to add to it, in words.
  std::optional<Cause> cause = std::nullopt;  // What the target does otherwise, where a search found it: of the first values that are off.
  std::optional<ErrorPlane> plane = std::nullopt;  // How the error looks, of the first values that are off.
  std::optional<ErrorPattern> pattern = std::nullopt;  // Whether the error is random or systematic: of values that are off.
  std::optional<Replay> replay = std::nullopt;         // Where it can be run again.
  std::optional<BaselineErrors> baseline = std::nullopt;  // Where there is one that shows it.
  double uncertainty = 0;    // Of an output: how far rounding alone may carry an element, root mean square; 0: not known.
};

struct AlignResult {
  std::string reference;
  std::string target;
  std::string baseline;               // Empty if there is none.
  std::string verdict;                // match, explained or differ; what is off as the baseline is counts as explained
  // The first that makes a wrong value of right ones, else the first whose value is off: a node's name, a value's where nodes are
  // not known; empty if there is none.
  std::string first_divergent;
  std::string first_nonfinite;        // Makes a NaN, or an infinity that the reference does not have.
  std::string nonfinite_origin;       // In words.
  std::vector<AlignedValue> values;   // In the target's order; of a dump, in the model's if that is known.
  std::vector<AlignedValue> outputs;  // By the model's output names; judged by their entire error.
  std::vector<std::string> hidden;    // Nodes whose values one side does not show.
  std::optional<Tolerance> tolerance;
  size_t fallback_nodes = 0;  // Of the target: what its device refused and the host ran.
  bool kernels_alone = true;  // False if the target has none to run: a dump.
  // The operator behind which the run's noise is not known; empty if it is known everywhere. Where no noise could be made at all,
  // the reason.
  std::string without_noise;
  bool no_noise = false;
  double floor_ms = 0;        // What noise floors took.

  size_t count(ValueVerdict which) const;  // Of values.

  nlohmann::json to_json() const;
  std::string text() const;
};

// Runs both on the same inputs and judges every value that both show, then each kernel of the target alone, in the order of
// docs/precision.md. A value is let go as soon as the kernels that need it have run: only of a reference that is not the
// reference backend in float64, the values of the target are kept until it shows its own. The target must be able to run a step
// while the reference runs. Where each kernel alone is explained and the run is not, all is done once more with three times as many
// noise runs: of a few, all may have come out near to the exact one by chance.
AlignResult align(Runner& reference, Runner& target, const NamedData& inputs, const AlignOptions& options);

// Where a fused step is the first divergent or non-finite one: names the node inside it, from an alignment of the same two
// without fusing. A fused step without a cause takes that of the node inside it.
void refine(AlignResult& result, const AlignResult& unfused, const PlanInfo& plan);

}  // namespace unmoor
