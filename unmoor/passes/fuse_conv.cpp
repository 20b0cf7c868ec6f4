#include "unmoor/passes/activation.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

bool fuse_one(Rewriter& r, NodeId id) {
  const Node& conv = r.node(id);
  if (conv.op != "Conv" || !is_float_tensor(r, output_of(conv))) return false;
  const Epilogue epilogue = epilogue_of(r, id);
  if (epilogue.empty()) return false;
  Node fused = conv;
  fused.op = "unmoor:FusedConv";
  if (epilogue.residual != no_value) {
    fused.inputs.resize(4, no_value);
    fused.inputs[3] = epilogue.residual;
  }
  fuse(r, id, std::move(fused), epilogue);
  return true;
}

}  // namespace

bool fuse_conv(Rewriter& r) {
  bool changed = false;
  // From the outputs inwards: of two convolutions that are added, the later one takes the other's result.
  const auto nodes = r.nodes();
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    if (r.is_alive(*id)) changed |= fuse_one(r, *id);
  }
  return changed;
}

}  // namespace unmoor
