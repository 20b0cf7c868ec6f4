#pragma once

#include <map>
#include <optional>

#include "unmoor/workbench/noise/sampler.h"

namespace unmoor {

// A part of a graph that is judged as one operator: an operator of the target may stand for several nodes of the file.
struct Region {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;                    // In order.
  std::vector<std::pair<ValueId, Data>> given;  // What comes from outside, but for constants.
  std::vector<ValueId> wanted;                  // Outputs, in order.
};

struct FloorOptions {
  DType step = DType::F32;  // What the operator computes in. Results are rounded to what is stored besides.
  size_t copies = 0;        // 0: 4 noise runs, or 8 where an output has under 1000 elements.
  uint64_t seed = 0;
  // Of a run that shows 16-bit values, and may use them as they were before they were rounded, as ONNX Runtime does where a node
  // computes in float32: such values that are given are moved (NoiseSampler::unround). What it rounds inside of the region, by index.
  bool given_unrounded = false;
  std::map<size_t, DType> inside = {};
};

// How far honest rounding carries one output from its exact values.
struct NoiseFloor {
  Data exact;                  // Floating tensors in float64, of the inputs' very bits.
  std::vector<double> spread;  // By element, root mean square. Empty if there is none: no floating tensor, or only moved bits.
};

// Only moves or chooses values: the result is expected bit for bit.
bool moves_bits(const Region& region);
// Ends in integers that rounding decides on.
bool quantises(const Region& region);

// The exact results, without noise. Fails as the operators do.
std::vector<Data> exact_results(const Region& region);
// The region run exactly and with noise, by wanted output, floating results rounded to what is stored unless the region only moves
// bits. Fails with Unsupported where there is no noise model.
std::vector<Sampled> noise_runs(const Region& region, std::span<const DType> stored, const FloorOptions& options);
// By wanted output. `stored` says what each is stored as; no other value of the region is. Fails with Unsupported where there is
// no noise model.
std::vector<NoiseFloor> noise_floor(const Region& region, std::span<const DType> stored, const FloorOptions& options);
// The same for one call on given inputs, an absent one without data.
std::vector<NoiseFloor> noise_floor(const Node& node, std::span<const Data> in, std::span<const DType> stored,
                                    const FloorOptions& options);

}  // namespace unmoor
