#pragma once

#include <functional>
#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"

namespace unmoor {

enum class PlantModel { Small, Million };  // A dozen operators on small tensors; one on a million elements.
// A plant goes into the first output of a node, called as the node. Outputs of the graph are all values.
Graph plant_model(PlantModel which);

// The ways in which a plant is tried, as bits.
constexpr unsigned as_kernel = 1, as_dump = 2, as_output = 4;

struct Plant {
  std::string name;
  std::string node;
  bool is_defect = true;
  // From what the node gives and all values of the run; nothing: it is not there.
  std::function<Data(const Data&, const NamedData&)> change;
  unsigned ways = as_kernel | as_dump | as_output;
  PlantModel model = PlantModel::Small;
};
const std::vector<Plant>& plants();

}  // namespace unmoor
