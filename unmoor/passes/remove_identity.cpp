#include <algorithm>
#include <array>

#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

bool all_are(const std::optional<std::vector<int64_t>>& list, int64_t wanted) {
  return list && std::ranges::all_of(*list, [wanted](int64_t item) { return item == wanted; });
}

bool keeps_shape(const Rewriter& r, const Node& node) {
  const Shape* in = r.known_shape(input_of(node, 0));
  const Shape* out = r.known_shape(output_of(node));
  return in != nullptr && out != nullptr && *in == *out;
}

bool is_whole_transpose(const Rewriter& r, const Node& node) {
  const auto permutation = integers_of(node, "perm");
  const TensorType* type = r.tensor_type(input_of(node, 0));
  if (permutation.empty()) return type != nullptr && type->shape.has_rank() && type->shape.rank() <= 1;
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool is_whole_slice(const Rewriter& r, const Node& node) {
  return keeps_shape(r, node) && (input_of(node, 4) == no_value || all_are(integers_of(r, node.inputs[4]), 1));
}

bool is_same_cast(const Rewriter& r, const Node& node) {
  const TensorType* in = r.tensor_type(input_of(node, 0));
  const TensorType* out = r.tensor_type(output_of(node));
  return in != nullptr && out != nullptr && in->dtype == out->dtype;
}

// x * 1 and x / 1 where the one does not widen the shape. (x + 0 is not the same for -0.)
ValueId unscaled(const Rewriter& r, const Node& node) {
  if (node.inputs.size() != 2) return no_value;
  const Shape* out = r.known_shape(output_of(node));
  for (const size_t one : {size_t{1}, size_t{0}}) {
    if (one == 0 && node.op == "Div") continue;
    const Shape* in = r.known_shape(node.inputs[1 - one]);
    if (out != nullptr && in != nullptr && *in == *out && scalar_of(r, node.inputs[one]) == 1.0) return node.inputs[1 - one];
  }
  return no_value;
}

// Resize by ones to the nearest pixel, which is the one that was there.
bool is_whole_resize(const Rewriter& r, const Node& node) {
  const Tensor* scales = r.constant(input_of(node, 2));
  if (scales == nullptr || !is_float(scales->dtype()) || text_of(node, "mode", "nearest") != "nearest") return false;
  if (text_of(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return false;
  return keeps_shape(r, node) && std::ranges::all_of(doubles(*scales), [](double scale) { return scale == 1; });
}

// Where under a constant condition that is the same everywhere, if the chosen operand does not have to be spread.
ValueId settled_choice(const Rewriter& r, const Node& node) {
  const Tensor* condition = r.constant(input_of(node, 0));
  if (condition == nullptr || condition->dtype() != DType::Bool || condition->elements() == 0 || node.inputs.size() != 3) return no_value;
  const auto bytes = condition->bytes();
  if (std::ranges::find_if(bytes, [&](std::byte each) { return each != bytes[0]; }) != bytes.end()) return no_value;
  const ValueId chosen = node.inputs[bytes[0] != std::byte{0} ? 1 : 2];
  const Shape* in = r.known_shape(chosen);
  const Shape* out = r.known_shape(output_of(node));
  return in != nullptr && out != nullptr && *in == *out ? chosen : no_value;
}

// The input that the node's first output always equals; no_value if there is none.
ValueId same_input(const Rewriter& r, const Node& node) {
  constexpr std::array<std::string_view, 4> shapers{"Reshape", "Squeeze", "Unsqueeze", "Flatten"};
  constexpr std::array<std::string_view, 5> lists{"Concat", "Sum", "Max", "Min", "Mean"};
  const auto is_in = [&node](const auto& names) { return std::ranges::find(names, node.op) != names.end(); };
  const ValueId input = input_of(node, 0);
  const auto input_if = [input](bool same) { return same ? input : no_value; };
  if (node.op == "Identity") return input;
  if (node.op == "Dropout") {
    return input_if(output_count(node) == 1 && (input_of(node, 2) == no_value || scalar_of(r, node.inputs[2]) == 0.0));
  }
  if (node.op == "Cast") return input_if(is_same_cast(r, node));
  if (node.op == "Transpose") return input_if(is_whole_transpose(r, node));
  if (is_in(shapers) || node.op == "Expand") return input_if(keeps_shape(r, node));
  if (node.op == "Tile") return input_if(all_are(integers_of(r, input_of(node, 1)), 1));
  if (node.op == "Pad") return input_if(all_are(integers_of(r, input_of(node, 1)), 0));
  if (node.op == "Slice") return input_if(is_whole_slice(r, node));
  if (node.op == "Resize") return input_if(is_whole_resize(r, node));
  if (node.op == "Mul" || node.op == "Div") return unscaled(r, node);
  if (node.op == "Where") return settled_choice(r, node);
  if (is_in(lists)) return input_if(node.inputs.size() == 1);
  return no_value;
}

}  // namespace

bool remove_identity(Rewriter& r) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) {
    const Node& node = r.node(id);
    const ValueId input = same_input(r, node);
    if (input == no_value || output_count(node) != 1 || output_of(node) == no_value) continue;
    // A graph output that is a graph input stays a value of its own.
    if (r.is_output(node.outputs[0]) && r.maker(input) == no_node) continue;
    r.replace_value(node.outputs[0], input);
    r.remove(id);
    changed = true;
  }
  return changed;
}

bool remove_dead(Rewriter& r) { return r.remove_dead(); }

}  // namespace unmoor
