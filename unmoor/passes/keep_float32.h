#pragma once

#include <set>
#include <string>
#include <vector>

#include "unmoor/graph/graph.h"

namespace unmoor {

using NodeNames = std::set<std::string, std::less<>>;  // As the file has them.

// A graph in which some nodes run in float32 and give float32 values. Any thread.
struct KeptFloat32 {
  struct Left {
    std::string node;
    std::string reason;
  };
  Graph graph;
  NodeNames nodes;           // Of the file, that run so: those that were named, and those that are fused with one of them.
  std::vector<Left> left;    // Named nodes that stay in 16 bits.
};

// Float16 and bfloat16 results of the named nodes become float32 values under the same names, computed in float32 from inputs
// converted to it. What reads them computes in float32, too, and rounds its own result once, so that only the rounding of the
// named nodes is gone; where that cannot be, and as outputs of the graph, they are rounded. Of a fused node one name is enough.
// `graph` has its types inferred; names that it does not have are passed over. Fails as inference does.
KeptFloat32 keep_float32(const Graph& graph, const NodeNames& names);

}  // namespace unmoor
