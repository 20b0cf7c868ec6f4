#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "unmoor/ops/builder.h"

namespace unmoor {

// A call on float16 or bfloat16 values as one on float32: the same operator and attributes, every 16-bit input converted,
// constants at once. Rounding its results once gives what an honest 16-bit kernel gives that computes in float32.
struct Float32Call {
  Float32Call(const OpCall& narrow);  // Fails with InvalidModel where the operator has no such form.
  Float32Call(const Float32Call&) = delete;
  Float32Call& operator=(const Float32Call&) = delete;

  Node node;
  std::vector<Tensor> constants;  // By input; those of `call` view them.
  OpCall call;
};

// Null where the call has no 16-bit inputs, or rounds on purpose (Cast, quantisation): there the dtype is the meaning.
std::shared_ptr<const Float32Call> in_float32(const OpCall& call);
// Builds it in place of the call it was made from, with Casts around.
void build_in_float32(const Float32Call& wide, GraphBuilder& builder);

// The graph with other nodes built in place of some. Values keep their names.
using Replacement = std::function<void(GraphBuilder&)>;
Graph with_replaced(const Graph& graph, const std::map<NodeId, Replacement>& replacements);

}  // namespace unmoor
