#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unmoor/passes/pass.h"
#include "unmoor/runtime/runner.h"

namespace unmoor {

// "x:1x3x224x224", "x:[1,3,224,224]", "x:1,3;y:2x2"; names may hold colons. Fails with InvalidArgument.
InputShapes parse_shapes(const std::string& text);

// Sizes for the unknown dimensions of inputs that `given` leaves open: 1, or if the model does not take that, the first size of a short list that
// it does take (the first axis stays 1): docs/decisions/unknown-sizes.md. `tried` says what was done; empty if all sizes are 1.
struct ChosenShapes {
  InputShapes shapes;
  std::string note;
};
ChosenShapes choose_shapes(const Graph& graph, const InputShapes& given);

// Values from files: NAME=FILE, FILE.npz (by name), or one FILE.npy for a model with one input. Fails with InvalidArgument or Io.
NamedData read_inputs(const std::vector<std::string>& texts, const std::vector<ValueInfo>& wanted);

// Seeded values: floats normal or uniform in `range`, integers 0 or 1. Unknown dimensions take `shapes`, else 1. The same everywhere.
struct GeneratorOptions {
  uint64_t seed = 0;
  std::optional<std::pair<double, double>> range = std::nullopt;
  InputShapes shapes = {};
};
Data generate_input(const ValueInfo& input, const GeneratorOptions& options);

}  // namespace unmoor
