#include <algorithm>
#include <array>

#include "unmoor/base/error.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

bool is_reshaper(const Node& node) {
  constexpr std::array<std::string_view, 4> names{"Reshape", "Squeeze", "Unsqueeze", "Flatten"};
  return std::ranges::find(names, node.op) != names.end();
}

std::vector<int64_t> permutation_of(const Rewriter& r, const Node& node) {
  auto permutation = integers_of(node, "perm");
  const TensorType* type = r.tensor_type(input_of(node, 0));
  if (!permutation.empty() || type == nullptr || !type->shape.has_rank()) return permutation;
  for (size_t axis = type->shape.rank(); axis-- > 0;) permutation.push_back(static_cast<int64_t>(axis));
  return permutation;
}

bool is_permutation(std::vector<int64_t> list) {
  std::ranges::sort(list);
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Makes the node a Reshape of `input` to its known output shape.
void make_reshape(Rewriter& r, NodeId id, ValueId input) {
  Node node = r.node(id);
  const Shape shape = *r.known_shape(node.outputs[0]);
  const ValueId target = r.add_constant("", Tensor::from<int64_t>(Shape{static_cast<int64_t>(shape.rank())}, shape.dims()));
  node.op = "Reshape";
  node.inputs = {input, target};
  node.attributes.clear();
  if (std::ranges::find(shape.dims(), 0) != shape.dims().end()) node.attributes["allowzero"] = int64_t{1};
  r.replace(id, std::move(node));
}

// Transpose of Transpose: the second reads the first's input.
bool merge_transposes(Rewriter& r, NodeId id) {
  const Node& node = r.node(id);
  const Node* before = r.made_by(input_of(node, 0), "Transpose");
  if (node.op != "Transpose" || before == nullptr) return false;
  const auto second = permutation_of(r, node);
  const auto first = permutation_of(r, *before);
  if (first.size() != second.size() || first.empty() || !is_permutation(first) || !is_permutation(second)) return false;
  std::vector<int64_t> both;
  for (const int64_t axis : second) both.push_back(first[static_cast<size_t>(axis)]);
  Node merged = node;
  merged.inputs[0] = before->inputs[0];
  merged.attributes["perm"] = both;
  r.replace(id, std::move(merged));
  return true;
}

// A Transpose that leaves the axes longer than one in order moves nothing.
bool loosen_transpose(Rewriter& r, NodeId id) {
  const Node& node = r.node(id);
  if (node.op != "Transpose") return false;
  const Shape* shape = r.known_shape(input_of(node, 0));
  const auto permutation = permutation_of(r, node);
  if (shape == nullptr || r.known_shape(output_of(node)) == nullptr || permutation.size() != shape->rank() ||
      !is_permutation(permutation)) {
    return false;
  }
  int64_t last = -1;
  bool moves = false;
  for (size_t i = 0; i < permutation.size(); ++i) {
    const int64_t axis = permutation[i];
    moves |= axis != static_cast<int64_t>(i);
    if ((*shape)[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  if (!moves) return false;
  make_reshape(r, id, node.inputs[0]);
  return true;
}

// A chain of Reshape, Squeeze, Unsqueeze and Flatten is one Reshape.
bool merge_reshapes(Rewriter& r, NodeId id) {
  const Node& node = r.node(id);
  if (!is_reshaper(node) || output_of(node) == no_value || r.known_shape(node.outputs[0]) == nullptr) return false;
  const NodeId before = r.maker(input_of(node, 0));
  if (before == no_node || !is_reshaper(r.node(before))) return false;
  const ValueId input = input_of(r.node(before), 0);
  if (r.known_shape(input) == nullptr) return false;
  make_reshape(r, id, input);
  return true;
}

// The value as this shape of as many elements.
ValueId reshaped(Rewriter& r, NodeId place, ValueId input, const Shape& shape) {
  if (*r.known_shape(input) == shape) return input;
  Value value;
  value.type = TensorType{r.tensor_type(input)->dtype, shape};
  Node reshape;
  reshape.name = cat(r.node(place).name, "/rows");
  reshape.op = "Reshape";
  reshape.outputs = {r.add_value(std::move(value))};
  const ValueId made = reshape.outputs[0];
  make_reshape(r, r.insert_before(place, std::move(reshape)), input);
  return made;
}

// Reshape, Transpose, Reshape where the first joins leading axes, which stay in front, and the last parts them again: one
// Transpose, behind a Reshape where they are parted in another way.
bool keep_leading_axes(Rewriter& r, NodeId id) {
  const Node node = r.node(id);
  const Node* const transpose = is_reshaper(node) ? r.made_by(input_of(node, 0), "Transpose") : nullptr;
  if (transpose == nullptr || r.only_user(node.inputs[0]) != id) return false;
  const NodeId joining = r.maker(input_of(*transpose, 0));
  if (joining == no_node || !is_reshaper(r.node(joining))) return false;
  const ValueId input = input_of(r.node(joining), 0);
  const Shape* const joined = r.known_shape(transpose->inputs[0]);
  const Shape* const moved = r.known_shape(node.inputs[0]);
  const Shape* const to = r.known_shape(output_of(node));
  const auto permutation = permutation_of(r, *transpose);
  if (r.known_shape(input) == nullptr || joined == nullptr || moved == nullptr || to == nullptr || !is_permutation(permutation))
    return false;
  if (permutation.empty() || permutation[0] != 0 || to->rank() <= joined->rank()) return false;
  const size_t leading = to->rank() - joined->rank() + 1;
  if (to->elements(0, leading) != (*joined)[0]) return false;
  Shape parted;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < to->rank(); ++axis) {
    const bool leads = axis < leading;
    if (!leads && (*to)[axis] != (*moved)[axis + 1 - leading]) return false;
    parted.push_back(leads ? (*to)[axis] : (*joined)[axis + 1 - leading]);
    axes.push_back(static_cast<int64_t>(leads ? axis : static_cast<size_t>(permutation[axis + 1 - leading]) + leading - 1));
  }
  Node merged = node;
  merged.op = "Transpose";
  merged.inputs = {reshaped(r, id, input, parted)};
  merged.attributes = {{"perm", axes}};
  r.replace(id, std::move(merged));
  return true;
}

}  // namespace

bool merge_moves(Rewriter& r) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) {
    changed |= keep_leading_axes(r, id);
    changed |= merge_transposes(r, id);
    changed |= loosen_transpose(r, id);
    changed |= merge_reshapes(r, id);
  }
  return changed;
}

}  // namespace unmoor
