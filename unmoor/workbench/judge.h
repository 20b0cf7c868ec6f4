#pragma once

#include "unmoor/workbench/causes/cause.h"
#include "unmoor/workbench/compare.h"
#include "unmoor/workbench/error_pattern.h"
#include "unmoor/workbench/error_plane.h"
#include "unmoor/workbench/finding.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

// What is said of a value: docs/precision.md.
enum class ValueVerdict {
  Match,       // Bit for bit, or so close that no noise had to be looked at.
  Explained,   // Rounding explains the difference.
  Suspicious,  // It hardly does.
  Differ,
  Undefined,  // Differs only where the operator's specification leaves the result open.
  Hidden,     // One side does not show it.
  AsBaseline,  // It is off, but by no more than on the platform that the model comes from.
};
std::string_view name(ValueVerdict verdict);

struct Judgement {
  Metrics metrics;
  ValueVerdict verdict = ValueVerdict::Hidden;
  std::string note = {};  // What there is to add, in words: "16-bit arithmetic inside", or why there is no floor.
  std::optional<Cause> cause = std::nullopt;  // Of what is not explained.
  std::optional<ErrorPlane> plane = std::nullopt;  // How its error looks.
  // What the region makes in float64 and how far rounding carries it, where a floating value is off and a floor could be made.
  std::optional<NoiseFloor> floor = std::nullopt;
  std::optional<ErrorPattern> pattern = std::nullopt;  // Of what is off: random or systematic.
  std::optional<Replay> replay = std::nullopt;         // Where it was written to be run again.
};

struct JudgeOptions {
  std::optional<Tolerance> tolerance = std::nullopt;  // The user's: decides alone.
  bool both_round = false;  // The exact values were rounded too: spreads are √2 wider.
  std::map<size_t, DType> rounded_inside = {};  // With it: values of the region, by index, that were then rounded to 16 bits.
  bool winograd = false;      // After a run: a convolution that Winograd's form may compute is just before the value.
  bool places = false;        // After a run: integers are places that an operator chose, not steps.
  bool steps = false;         // After a run: a node that rounds on purpose is just before the value.
  bool always_floor = false;  // Also where an error is too small to need one.
  uint64_t seed = 0;
};

// The results of one kernel alone, for the inputs of `region` (null: nothing is known but `op`), against the exact ones, by
// output. An output without data is left Hidden. `op` is the operator's name in the file; stored dtypes are those of `actual`.
std::vector<Judgement> judge_kernel(const Region* region, std::string_view op, std::span<const Data> exact,
                                    std::span<const Data> actual, const JudgeOptions& options);

// A value at the end of many kernels against the exact one, with what noise everywhere made of it, if that is known.
Judgement judge_after_run(const Data& exact, const Data& actual, const Sampled* sampled, const JudgeOptions& options);

// How many times what rounding explains an error is, for charts: E; where no noise had to be looked at, the error over that of
// rounding the result to what is stored alone, relative u/√3, which is no less than E. 0 for equal values, infinite for integers
// that differ.
double shown_excess(const Metrics& metrics, ValueVerdict verdict, DType stored);

// The largest relative L2 error that an output of this type may have after a whole run, and how many times the tolerance its
// worst element, where no noise is known.
double output_limit(DType stored);
constexpr double output_spread = 200;

}  // namespace unmoor
