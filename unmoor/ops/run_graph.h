#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// Runs a graph node by node with the operators' references. `inputs` in order, an absent one empty. Fails with Unsupported at a
// node without a reference, such as control flow.
std::vector<Data> run_graph(const Graph& graph, std::span<const Data> inputs);

// A reference for operators that are no more than their expansion.
void run_expansion(const OpCall& call, std::span<const Data> in, Outputs& out);

}  // namespace unmoor
