#pragma once

#include "unmoor/ops/ml/forest.h"

namespace unmoor::ml {

// The forest of TreeEnsemble, whose nodes and leaves are named by their places. Fails with InvalidModel on what is no forest.
Forest placed_forest(const OpCall& call);

}  // namespace unmoor::ml
