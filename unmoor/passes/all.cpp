#include <vector>

#include "unmoor/passes/infer.h"
#include "unmoor/passes/pass.h"
#include "unmoor/passes/passes.h"

namespace unmoor {
namespace {

enum class Role { Clean, Raise, Weights, Fuse };

// A pass as it works inside, and as a function of a graph.
struct Entry {
  Pass pass;
  bool (*change)(Rewriter&);
  Role role;
};

template <bool (*change)(Rewriter&)>
Graph run(const Graph& graph) {
  Rewriter r(graph);
  change(r);
  return r.finish();
}

template <bool (*change)(Rewriter&)>
Entry entry(Role role, std::string name, std::string summary) {
  return {{std::move(name), std::move(summary), run<change>}, change, role};
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list{
      entry<fold_constants>(Role::Clean, "fold_constants", "computes what depends on constants only"),
      entry<inline_constant_if>(Role::Clean, "inline_constant_if", "puts the branch of an If with a known condition in its place"),
      entry<remove_identity>(Role::Clean, "remove_identity", "removes nodes that give back their input"),
      entry<merge_moves>(Role::Clean, "merge_moves", "joins chains of Transpose, and of Reshape, Squeeze, Unsqueeze and Flatten"),
      entry<remove_duplicates>(Role::Clean, "remove_duplicates", "computes what is computed twice once"),
      entry<remove_dead>(Role::Clean, "remove_dead", "removes nodes that nothing uses"),
      entry<raise_layer_normalization>(Role::Raise, "raise_layer_normalization", "finds LayerNormalization written as arithmetic"),
      entry<raise_activations>(Role::Raise, "raise_activations", "finds Gelu, Swish, HardSwish and HardSigmoid written as arithmetic"),
      entry<fuse_transpose>(Role::Weights, "fuse_transpose", "joins MatMul and Gemm with a Transpose of an operand's last two axes"),
      entry<fuse_scale>(Role::Weights, "fuse_scale", "folds BatchNormalization and constants per channel into the weights of the convolution beside"),
      entry<fuse_conv>(Role::Fuse, "fuse_conv", "joins Conv with the residual and the activation behind it"),
      entry<widen_weights>(Role::Fuse, "widen_weights", "multiplies softmax weights that were to be stored in 16 bits in float32"),
      entry<fuse_matmul>(Role::Fuse, "fuse_matmul", "joins MatMul and Gemm with scale, bias, residual and activation around them"),
      entry<convolve_before_resize>(Role::Fuse, "convolve_before_resize",
                                    "mixes channels before images are enlarged, not after: of 1x1 convolutions behind Resize and Concat"),
  };
  return list;
}

bool has_unknown_types(const Rewriter& r) {
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) {
    for (const ValueId output : r.node(id).outputs) {
      if (output != no_value && r.tensor_type(output) != nullptr && r.known_shape(output) == nullptr) return true;
    }
  }
  return false;
}

bool run_all(Rewriter& r, Role role) {
  bool changed = false;
  for (const Entry& each : entries()) {
    if (each.role == role) changed |= each.change(r);
  }
  return changed;
}

void run_until_stable(Rewriter& r, Role role) {
  constexpr int most_rounds = 8;
  for (int round = 0; round < most_rounds && run_all(r, role); ++round) {
  }
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> list = [] {
    std::vector<Pass> passes;
    for (const Entry& each : entries()) passes.push_back(each.pass);
    return passes;
  }();
  return list;
}

namespace {

void clean(Rewriter& r, const PassOptions& options) {
  // A Transpose of a large weight is no work for ahead of time where the product reads it either way round.
  if (options.fuse) fuse_transpose(r);
  r.remove_dead();
  // A large constant that is known only now may settle shapes behind it.
  if (fold_constants(r) && has_unknown_types(r)) infer_types(r, 0);
  run_until_stable(r, Role::Clean);
  if (!options.fuse) return;
  if (run_all(r, Role::Raise)) run_until_stable(r, Role::Clean);
  run_until_stable(r, Role::Weights);
}

}  // namespace

Graph optimized(const Graph& graph, const PassOptions& options) {
  Rewriter r(graph);
  clean(r, options);
  if (options.fuse) run_until_stable(r, Role::Fuse);
  bool changed = options.fuse && options.takes && fuse_attention(r, options.takes);
  if (options.channels_last && options.takes && channels_last(r, options.takes)) changed = true;
  if (changed) {
    r.remove_dead();
    run_until_stable(r, Role::Clean);
  }
  if (options.fuse && options.takes) fuse_inverted_residual(r, options.takes);
  r.remove_dead();
  return r.finish();
}

Graph preoptimized(const Graph& graph, const PassOptions& options) {
  InputShapes open;
  for (const ValueId id : graph.inputs()) {
    const auto* type = std::get_if<TensorType>(&graph.value(id).type);
    if (type == nullptr || !type->shape.has_rank()) continue;
    open[graph.value(id).name] = Shape(std::vector<int64_t>(type->shape.rank(), Shape::unknown));
  }
  Rewriter r(with_shapes(graph, open));
  clean(r, options);
  r.remove_dead();
  Graph result = r.finish();
  for (size_t i = 0; i < graph.inputs().size(); ++i) result.set_type(result.inputs()[i], graph.value(graph.inputs()[i]).type);
  return result;
}

}  // namespace unmoor
