#pragma once

#include "unmoor/ops/cases.h"

namespace unmoor {

// A generated or given input of a case. `seed` decides every value. Fails with InvalidArgument on an unknown generator.
Tensor make_input(const Case::Input& input, uint64_t seed);
// The map that an input with keys is, and its type.
Map make_map(const Case::Input& input);
Type map_type(const Case::Input& input);

}  // namespace unmoor
