#pragma once

#include <string>

#include "unmoor/graph/graph.h"

namespace unmoor {

// One line: "y, mask = Dropout(x, -, ratio) seed=1 : float32[2,3], bool[2,3]". A "-" is an absent input or output.
std::string to_text(const Graph& graph, const Node& node);

// A readable dump for tests and debugging: inputs, constants with their values where they are few, nodes in order, outputs; the bodies of control
// flow below their node, indented.
std::string to_text(const Graph& graph);

}  // namespace unmoor
