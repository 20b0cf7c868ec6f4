#pragma once

#include "tests/fuzz/bytes.h"
#include "unmoor/runtime/runner.h"

namespace unmoor::fuzz {

// A graph with what to run it on.
struct Sketch {
  Graph graph;
  NamedData inputs;
};

// Bytes as a graph of one to six nodes. Each begins as a case of its operator, so that it means something, and is then changed as the bytes
// say: dtypes, shapes, attributes, values, which inputs there are and where they come from; it may stand in the body of control flow.
Sketch sketch(Bytes& bytes);

}  // namespace unmoor::fuzz
