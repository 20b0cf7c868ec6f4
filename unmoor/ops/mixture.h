#pragma once

#include "unmoor/ops/numeric.h"

namespace unmoor {

// What MoE and QMoE share: each row of the input goes through a few of many experts, each two or three matrices.

// Sizes; unknown ones are `Shape::unknown`.
struct Mixture {
  int64_t rows = Shape::unknown, hidden = Shape::unknown, inner = Shape::unknown, experts = Shape::unknown;
  int64_t chosen = 1;  // Experts a row goes through.
  bool fused = false;  // The first matrix gives two numbers for each inner one: gate and value.
  bool third = false;  // The values come from a third matrix.
  int64_t first_rows() const { return fused && inner >= 0 ? 2 * inner : inner; }
};

// Where the tensors lie among an operator's inputs; 0 for what it does not have.
struct MixturePlaces {
  std::array<size_t, 3> weights{}, bias{};
};

// From shapes and attributes. The matrices are [experts, outputs, inputs]; an element of matrix i holds that many numbers along
// its last axis. Fails with InvalidModel where they do not fit, with Unsupported on an activation that is not known.
Mixture mixture_of(const OpCall& call, const MixturePlaces& places, const std::array<double, 3>& numbers_per_element);

// What a tensor [experts, …] holds for one expert, read from where it lies.
std::vector<double> expert_part(const Tensor& tensor, size_t expert);

struct Route {
  size_t expert = 0;
  double weight = 0;
};
// The experts of each row by its logits [rows, experts]: the largest, of equal ones the last.
std::vector<size_t> largest(std::span<const double> logits, size_t count);
// How SparseMixer (Liu and others 2023) weighs the two best experts.
std::vector<Route> sparse_routes(std::span<const double> logits);

// Matrix `layer` (0 to 2) of an expert, dense, [outputs, inputs].
using ExpertWeights = std::function<std::vector<double>(size_t layer, size_t expert)>;
// The rows of input 0 through their experts, in float64.
std::vector<double> mix(const OpCall& call, const Mixture& mixture, const MixturePlaces& places, std::span<const Data> in,
                        const std::vector<std::vector<Route>>& routes, const ExpertWeights& weights);

Cost mixture_cost(const OpCall& call, const Mixture& mixture);
// Attributes of both operators.
Attributes mixture_attributes();

void add_quantized_mixture_op(OpSet& ops);  // QMoE.

}  // namespace unmoor
