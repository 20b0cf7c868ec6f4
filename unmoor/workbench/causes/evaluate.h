#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unmoor/ops/op.h"
#include "unmoor/workbench/causes/arithmetic.h"
#include "unmoor/workbench/noise/sampler.h"

namespace unmoor::causes {

// What a node does if a hypothesis holds: another node on other inputs, an edited expansion, values of its own, other arithmetic,
// or something done to the result.
struct Change {
  Node node;
  std::vector<Data> inputs;                            // As many as the node's; floats in float64.
  std::optional<Graph> graph = {};                     // Run in the node's place; it holds its inputs as constants.
  std::function<std::vector<Data>()> compute = {};     // Likewise, exact.
  std::function<void(std::span<double>)> finish = {};  // Applied to each floating output.
  std::optional<Arithmetic> arithmetic = {};           // Instead of float32: predicts the size of errors, not values.
  std::optional<Shape> shape = {};                     // The result under this shape, of as many elements.
  bool same_values = false;                            // Predicts larger errors around the same values.
  std::string detail = {};                             // Which variant this is: "1e-12".
};

// The node's inputs with floats widened to float64; everything else as it is, and bits that the node reads as another type.
std::vector<Data> widened(const Node& node, std::span<const Data> inputs);

// A change to a node inside of an operator: the path has the node's place in the expansion of the operator, its place in that
// node's, …
struct Patch {
  std::vector<size_t> path;
  const Change* change = nullptr;
};

// Runs operators by their references in float64, exact or with the noise of noise/sampler.h; what has no noise model there rounds
// its result. One thread at a time.
class Evaluator {
 public:
  Evaluator() = default;  // Exact.
  Evaluator(Arithmetic arithmetic, uint64_t seed);

  // The outputs. Fails as references do, and with Stopped.
  std::vector<Data> run(const Node& node, std::span<const Data> inputs, const Patch* patch = nullptr);

  // Called for each node met inside of the operator, with its path.
  using Visit = std::function<void(const OpCall&, std::span<const Data>, const std::vector<size_t>&)>;
  void visit_inside(const Node& node, std::span<const Data> inputs, const Visit& visit);

 private:
  std::vector<Data> run_at(const Node& node, std::span<const Data> inputs, const Patch* patch, size_t depth);
  std::vector<Data> run_changed(const Change& change, size_t depth);
  std::vector<Data> run_graph(const Graph& graph, const Patch* patch, size_t depth);
  std::vector<Data> run_plain(const OpCall& call, std::span<const Data> inputs);
  std::vector<Data> run_noisy(const Node& node, std::span<const Data> inputs);

  std::optional<NoiseSampler> sampler_;
  const Visit* visit_ = nullptr;
  std::vector<size_t> path_;
};

// The operator as a graph that holds its inputs; empty if it has no expansion, or none for this call.
std::optional<Graph> expansion_of(const OpCall& call);

}  // namespace unmoor::causes
