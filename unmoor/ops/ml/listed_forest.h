#pragma once

#include "unmoor/ops/ml/forest.h"

namespace unmoor::ml {

// The forest that TreeEnsembleClassifier and TreeEnsembleRegressor list by tree and node ids, leaves among the nodes. Votes are
// in the attributes PREFIX_treeids, _nodeids, _ids and _weights. A tree's root is the node that no other leads to. Votes of nodes
// that are no leaves never count: converters write some. Fails with InvalidModel on what is no forest.
Forest listed_forest(const OpCall& call, std::string_view prefix, size_t targets);

// The list KEY or, in its place, the tensor KEY_as_tensor. Fails with InvalidModel if both are there.
std::vector<double> reals_or_tensor(const OpCall& call, std::string_view key);

}  // namespace unmoor::ml
