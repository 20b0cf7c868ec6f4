#pragma once

#include <optional>
#include <vector>

#include "unmoor/passes/pass.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {

// Images with channels last: [N, …, C] where the file has [N, C, …]. Axis i of the one is axis last_axes(rank)[i] of the other.
std::vector<int64_t> last_axes(size_t rank);   // 0, 2, …, rank - 1, 1: a Transpose by these puts channels last.
std::vector<int64_t> first_axes(size_t rank);  // The way back.

// Moves nodes to channels-last images one by one. The file's value stays, made by a Transpose of the new one, until nothing uses it.
class LayoutRewriter {
 public:
  LayoutRewriter(Rewriter& r, const TakesCall& takes) : r_(r), takes_(takes) {}

  // True if the node now works on channels-last images.
  bool move(NodeId id);

 private:
  struct Moved {
    Node node;
    std::vector<ValueId> pending;  // New inputs that a Transpose must make, and of what.
    std::vector<ValueId> sources;
  };
  ValueId twin(ValueId id) const;  // The channels-last value that `id` is the Transpose of; no_value if it is none.
  bool is_image(ValueId id) const;
  std::optional<size_t> rank_of(const Node& node) const;

  bool move_window(NodeId id);
  bool move_elementwise(NodeId id);
  bool move_axis(NodeId id);       // Concat, Split, Softmax: an axis as an attribute.
  bool move_per_axis(NodeId id);   // Pad, Resize: constants with an entry an axis.
  bool move_reduction(NodeId id);
  bool move_flatten(NodeId id);    // A Reshape to [N, C, places] whose only use puts C last.
  bool move_unflatten(NodeId id);  // A Reshape of [N, C, places] that was [N, places, C].

  std::optional<ValueId> constant_operand(ValueId id, size_t rank);
  std::optional<ValueId> permuted_entries(ValueId id, size_t rank);
  bool take_input(Moved& moved, size_t input);
  bool finish(NodeId id, Moved moved);
  ValueId add_twin(ValueId of);
  Node transpose(ValueId from, ValueId to, std::vector<int64_t> axes) const;

  Rewriter& r_;
  const TakesCall& takes_;
};

}  // namespace unmoor
