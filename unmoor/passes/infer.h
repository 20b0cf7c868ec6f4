#pragma once

#include "unmoor/passes/pass.h"
#include "unmoor/passes/rewrite.h"

namespace unmoor {

// One walk over the graph: infers types, folds small constants as it goes, and puts branches of known conditions in place. `depth` counts
// the bodies around this graph.
void infer_types(Rewriter& r, int depth);

// A body with its inputs bound, inferred; what is computed ahead of time on the way is taken from `budget`, or from the body's own if
// that is null.
Graph with_inputs_inside(const Graph& body, const std::vector<InputBinding>& inputs, int depth, Budget* budget);

// The output types of If, Loop and Scan; stores the bodies with their types in the node. Fails with InvalidModel where the node and its bodies
// do not fit together.
bool runs_bodies(const Node& node);
std::vector<Type> infer_control_flow(Rewriter& r, NodeId id, int depth);

// The type of a value that is one or the other.
Type merged(const Type& a, const Type& b);
// A tensor's type without its shape; other types as they are.
Type without_rank(const Type& type);

// An If whose condition is a constant: its branch goes in its place. Returns the first of the new nodes, or what followed; no_node at the end.
// Null if it is no such If.
std::optional<NodeId> inline_if(Rewriter& r, NodeId id);

}  // namespace unmoor
