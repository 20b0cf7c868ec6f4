#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/runtime/session.h"

namespace unmoor {

// How the error of a model's outputs falls as nodes are kept in float32, in a target that stores 16-bit values. Each node's own
// error (what the target gives, less what float32 makes of the target's own inputs to it) is added alone to an exact run and
// carried to the outputs, where contributions of different nodes add up as variances. What is kept changes what steps behind it
// round, so that their errors are drawn anew: of these the expected size counts, of all others their part of the error that was.
struct KeepCurve {
  // One step of the target that rounds.
  struct Point {
    std::string node;                // Of the file, that gives its result.
    std::string op;
    std::vector<std::string> nodes;  // To be listed: all that the step stands for, and those behind it that only pass its result on.
    double share = 0;                // Of the outputs' mean square error, that goes with it: mean over outputs.
    std::vector<double> by_output;   // The same for each of `outputs`.
    std::vector<double> left_by_output;  // Expected error of each with this point and all before it kept, as a part of the whole.
    double left = 1;                     // Their root mean square.
  };
  struct Output {
    std::string name;
    size_t elements = 0;
    double effective = 0;       // Over so many of them the expected error is spread: (Σ v)²/Σ v², v its mean square in an element.
    double error = 0;           // Root mean square of the target's run, against float32.
    double sum_over_whole = 0;  // √(Σ contributions) / error: 1 where they simply add up.
    double predicted = 1;       // With the chosen points kept, as a part of the whole.
    double applied = -1;        // What a run with them kept came to; below 0: not tried.
  };
  std::vector<Point> points;    // The largest share first. Only those with any.
  std::vector<Output> outputs;  // Floating ones with an error.
  double unavoidable = 0;       // Error left with every point kept: outputs that are of 16 bits are rounded themselves.
  size_t chosen = 0;            // So many points are kept.
  NamedData exact;              // Outputs of the float32 run, by name.

  double predicted() const { return chosen == 0 ? 1 : points[chosen - 1].left; }
  double applied() const;  // Root mean square over outputs; below 0 if it was not tried.
  // The fewest points that bring the error to this part of the whole; all, if none does.
  void choose(double part);
  // Takes the outputs of a run with the chosen points kept.
  void set_applied(const NamedData& kept);

  nlohmann::json to_json() const;
  std::string text() const;
  std::string list() const;  // The file that --keep-float32 takes: the chosen nodes; the others as comments.
};

using KeepProgress = std::function<void(const std::string&, size_t, size_t)>;

// `wide`: the model with all its nodes in float32 and nothing fused. Holds every value of both runs. Fails with Unsupported where
// the target stores no value in 16 bits, where control flow hides what happens, and where a value is not finite.
KeepCurve keep_curve(ModelRunner& wide, Runner& target, const NamedData& inputs, const KeepProgress& progress);

}  // namespace unmoor
