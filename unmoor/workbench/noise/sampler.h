#pragma once

#include <cstdint>
#include <optional>

#include "unmoor/workbench/noise/grid.h"
#include "unmoor/workbench/noise/random.h"
#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

struct NoiseOptions {
  DType step = DType::F32;  // What each primitive step rounds to.
  size_t copies = 4;        // Perturbed runs. At least 1.
  uint64_t seed = 0;
  std::optional<Grid> grid = std::nullopt;  // Instead of that of `step`: of a format that nothing is stored in.
  std::optional<Grid> sums = std::nullopt;  // What sums are added up in, where it is another.
};

// Runs operators in float64 once exactly and several times with noise after every primitive step: what an honest implementation's
// rounding may do. The noise is what Op::rounding says of each primitive, its expansion's if it has one (docs/precision.md).
// Everything fails with Unsupported where an operator has no noise model: control flow, and what sums.cpp and functions.cpp do
// not know. Each call takes other random numbers; the same calls on a new sampler of the same options take the same. One thread
// at a time.
class NoiseSampler {
 public:
  explicit NoiseSampler(NoiseOptions options);

  // One node on these inputs, floating tensors in float64; an absent one without data. Outputs by position.
  std::vector<Sampled> run(const Node& node, std::span<const Sampled> in);
  // Rounds floating values to what is stored, in every copy. The exact one stays.
  void store(Sampled& value, DType stored);
  // Of 16-bit values: what may have been rounded to them, evenly around each but zero, with the variance of stochastic rounding, a
  // sixth of a step's square.
  void unround(Sampled& value, DType stored);
  void round(Sampled& value);  // Floating values, as after a step.
  const NoiseOptions& options() const { return options_; }

 private:
  std::vector<Sampled> run_expanded(const Node& node, std::span<const Sampled> in,
                                    const std::function<void(GraphBuilder&)>& expand);
  std::vector<Sampled> run_graph(const Graph& graph, std::vector<Sampled> values);
  std::vector<Sampled> run_copies(const Node& node, std::span<const Sampled> in) const;
  std::vector<Sampled> run_function(const Node& node, std::span<const Sampled> in);
  std::vector<Sampled> run_sum(const Node& node, std::span<const Sampled> in);
  std::vector<Sampled> run_resize(const Node& node, std::span<const Sampled> in);
  std::vector<Sampled> run_primitive(const Node& node, std::span<const Sampled> in);

  // Changes every number of every copy: change(value, random, element). Makes the copies if there are none.
  template <class Change>
  void perturb(Sampled& value, Change&& change);
  NoiseRandom stream(size_t copy) const { return {options_.seed, copy, stream_}; }

  NoiseOptions options_;
  Grid grid_;
  double unit_;       // Of steps.
  double sums_unit_;  // Of sums.
  uint64_t stream_ = 0;  // Of the primitive step that runs.
};

// By element: the root mean square distance of the copies from the exact values, of those copies that are finite there; 0 where
// all are exact, or where the exact value is not finite; infinite, that is not known, where no copy is. Empty if the value is no
// floating tensor, or if every copy has failed.
std::vector<double> spread_of(const Sampled& value);
// Of a spread by element, what is known of it; 0 if there is none.
double root_mean_square(const std::vector<double>& spread);

}  // namespace unmoor
