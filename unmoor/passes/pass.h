#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// All of these make a new graph and leave the one given as it is: any thread.

// Shapes for graph inputs, by name; what is missing stays as declared.
using InputShapes = std::map<std::string, Shape, std::less<>>;
// Types and, where the caller knows them, values for graph inputs in order (control-flow bodies are planned this way).
struct InputBinding {
  Type type;
  const Data* value = nullptr;
};

// Sets the inputs' shapes and infers every value's type; nothing else changes. Fails with InvalidArgument where a shape
// contradicts the declared one in rank or dtype (declared sizes are only hints), with InvalidModel where a node cannot be.
Graph with_shapes(const Graph& graph, const InputShapes& shapes);
Graph with_inputs(const Graph& graph, const std::vector<InputBinding>& inputs);

// A graph in, an equivalent graph out. Origins survive: a fused node carries the name of the node that gives its output
// and the others in `also`.
struct Pass {
  std::string name;
  std::string summary;
  Graph (*run)(const Graph&);
};

// In the order they are to run: fold_constants, inline_constant_if, remove_identity, fuse_*, …
const std::vector<Pass>& all_passes();

// Whether a device has a kernel of its own for the call.
using TakesCall = std::function<bool(const OpCall&)>;

struct PassOptions {
  bool fuse = true;               // Off: only folding and cleaning; values of the file stay visible.
  bool widen_to_float64 = false;  // Every float32, float16 and bfloat16 value becomes float64: for references.
  // What the wanted device has kernels for: only then is it worth to form unmoor:FusedAttention and
  // unmoor:InvertedResidual, or images with their channels last.
  TakesCall takes = {};        // Empty: neither.
  bool channels_last = false;  // Whether images may lie so where the device takes the nodes.
};
// Folds, cleans and fuses a graph whose types are inferred.
Graph optimized(const Graph& graph, const PassOptions& options);

// What does not depend on the sizes of inputs, which may all change later: constants, weights, cleaning. Done once for a model,
// it makes with_shapes and optimized cheap for every new shape. Takes a graph as it was read; inputs keep their declared types.
Graph preoptimized(const Graph& graph, const PassOptions& options);

// Every floating value, constant, input and Cast becomes float64. Applied before with_shapes.
Graph widened(const Graph& graph);

// One node replaced by its operator's expansion, or nothing if it has none.
bool has_expansion(const Node& node);
Graph with_expanded(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace unmoor
