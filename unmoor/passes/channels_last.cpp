#include "unmoor/passes/channels_last.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/passes/passes.h"

namespace unmoor {

std::vector<int64_t> last_axes(size_t rank) {
  std::vector<int64_t> axes{0};
  for (size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (rank > 1) axes.push_back(1);
  return axes;
}

std::vector<int64_t> first_axes(size_t rank) {
  std::vector<int64_t> axes{0};
  if (rank > 1) axes.push_back(static_cast<int64_t>(rank) - 1);
  for (size_t i = 1; i + 1 < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

namespace {

Shape permuted(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape result;
  for (const int64_t axis : axes) result.push_back(shape, static_cast<size_t>(axis));
  return result;
}

// Where axis `axis` of the file's layout lies once channels are last.
int64_t moved_axis(int64_t axis, size_t rank) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  return axis == 0 ? 0 : axis == 1 ? static_cast<int64_t>(rank) - 1 : axis - 1;
}

bool is_transpose(const Node& node, const std::vector<int64_t>& axes) { return node.op == "Transpose" && integers_of(node, "perm") == axes; }

template <size_t N>
bool is_one_of(const Node& node, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, node.op) != names.end();
}

// They work element by element, whatever the order of the axes; operands broadcast.
constexpr std::array<std::string_view, 40> elementwise{
    "Abs",  "Add",   "Cast", "Ceil",       "Clip",    "Cos",        "Div",       "Elu",        "Equal",  "Erf",
    "Exp",  "Floor", "Gelu", "Greater",    "HardSigmoid", "HardSwish", "LeakyRelu", "Less",    "Log",    "Max",
    "Min",  "Mish",  "Mul",  "Neg",        "PRelu",   "Pow",        "Reciprocal", "Relu",      "Round",  "Selu",
    "Sigmoid", "Sign", "Sin", "Softplus",  "Softsign", "Sqrt",      "Sub",       "Swish",      "Tanh",   "Where"};

constexpr std::array<std::string_view, 2> convolutions{"Conv", "unmoor:FusedConv"};
constexpr std::array<std::string_view, 4> pools{"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"};
constexpr std::array<std::string_view, 3> along_axis{"Concat", "Split", "Softmax"};
constexpr std::array<std::string_view, 5> reductions{"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"};

}  // namespace

Node LayoutRewriter::transpose(ValueId from, ValueId to, std::vector<int64_t> axes) const {
  Node node;
  node.op = "Transpose";
  node.name = cat("Transpose:", r_.value(to).name);
  node.inputs = {from};
  node.outputs = {to};
  node.attributes["perm"] = std::move(axes);
  return node;
}

ValueId LayoutRewriter::twin(ValueId id) const {
  const Node* const made = r_.made_by(id, "Transpose");
  const Shape* const shape = r_.known_shape(id);
  if (made == nullptr || shape == nullptr || shape->rank() < 3 || !is_transpose(*made, first_axes(shape->rank()))) return no_value;
  return made->inputs[0];
}

// Cheap to move: a twin that is there, or one place an image, so that nothing moves.
bool LayoutRewriter::is_image(ValueId id) const {
  if (twin(id) != no_value) return true;
  const Shape* const shape = r_.known_shape(id);
  return shape != nullptr && shape->rank() >= 3 && shape->elements(2, shape->rank()) == 1;
}

ValueId LayoutRewriter::add_twin(ValueId of) {
  Value value = r_.value(of);
  const auto& type = std::get<TensorType>(value.type);
  const size_t rank = type.shape.rank();
  value.name += " (channels last)";
  value.origin.permutation = first_axes(rank);
  value.type = TensorType{type.dtype, permuted(type.shape, last_axes(rank))};
  value.constant.reset();
  return r_.add_value(std::move(value));
}

bool LayoutRewriter::take_input(Moved& moved, size_t input) {
  const ValueId id = moved.node.inputs.at(input);
  if (r_.known_shape(id) == nullptr || r_.value(id).constant) return false;
  ValueId last = twin(id);
  if (last == no_value) {
    last = add_twin(id);
    moved.pending.push_back(last);
    moved.sources.push_back(id);
  }
  moved.node.inputs[input] = last;
  return true;
}

// Puts the moved node in the place of the old one, with Transposes for what it needs and for what others need of it.
bool LayoutRewriter::finish(NodeId id, Moved moved) {
  const Node old = r_.node(id);
  if (output_count(old) == 0) return false;
  for (ValueId& output : moved.node.outputs) {
    if (output == no_value) continue;
    if (r_.known_shape(output) == nullptr) return false;
    output = add_twin(output);
  }
  if (!takes_(call_for(r_.graph(), moved.node))) return false;
  for (size_t i = 0; i < moved.pending.size(); ++i) {
    r_.insert_before(id, transpose(moved.sources[i], moved.pending[i], last_axes(r_.known_shape(moved.pending[i])->rank())));
  }
  const std::vector<ValueId> made = moved.node.outputs;
  r_.insert_before(id, std::move(moved.node));
  size_t last = made.size();
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i] == no_value) continue;
    if (last < made.size()) r_.insert_before(id, transpose(made[last], old.outputs[last], first_axes(r_.known_shape(made[last])->rank())));
    last = i;
  }
  r_.replace(id, transpose(made[last], old.outputs[last], first_axes(r_.known_shape(made[last])->rank())));
  return true;
}

bool LayoutRewriter::move_window(NodeId id) {
  Moved moved{r_.node(id), {}, {}};
  const Shape* const shape = r_.known_shape(input_of(moved.node, 0));
  if (shape == nullptr || shape->rank() < 3 || text_of(moved.node, "layout", "NCHW") != "NCHW") return false;
  if (is_one_of(moved.node, pools) && (twin(moved.node.inputs[0]) == no_value || output_count(moved.node) != 1)) return false;
  moved.node.attributes["layout"] = std::string("NHWC");
  if (!take_input(moved, 0)) return false;
  constexpr size_t residual = 3;
  if (input_of(moved.node, residual) != no_value && !take_input(moved, residual)) return false;
  return finish(id, std::move(moved));
}

// A constant that broadcasts with images of this rank, for channels-last ones.
std::optional<ValueId> LayoutRewriter::constant_operand(ValueId id, size_t rank) {
  const Tensor* const tensor = r_.constant(id);
  if (tensor == nullptr || tensor->shape().rank() > rank || tensor->dtype() == DType::String) return std::nullopt;
  if (tensor->elements() == 1) return id;
  std::vector<int64_t> dims(rank - tensor->shape().rank(), 1);
  std::ranges::copy(tensor->shape().dims(), std::back_inserter(dims));
  const Shape shape(dims);
  if (bits_of(tensor->dtype()) < 8 || !r_.spend(tensor->bytes().size(), static_cast<double>(tensor->elements()))) return std::nullopt;
  Tensor result(TensorType{tensor->dtype(), permuted(shape, last_axes(rank))});
  const size_t size = bits_of(tensor->dtype()) / 8;
  const auto channels = static_cast<size_t>(shape[1]);
  const auto places = static_cast<size_t>(shape.elements(2, rank));
  for (size_t n = 0; n < static_cast<size_t>(shape[0]); ++n) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t p = 0; p < places; ++p) {
        const auto from = tensor->bytes().subspan(((n * channels + c) * places + p) * size, size);
        std::ranges::copy(from, result.writable_bytes().begin() + static_cast<std::ptrdiff_t>(((n * places + p) * channels + c) * size));
      }
    }
  }
  return r_.add_constant(cat(r_.value(id).name, " (channels last)"), std::move(result));
}

bool LayoutRewriter::move_elementwise(NodeId id) {
  Moved moved{r_.node(id), {}, {}};
  const Shape* const output = r_.known_shape(output_of(moved.node));
  if (output == nullptr || output->rank() < 3 || output_count(moved.node) != 1) return false;
  const size_t rank = output->rank();
  if (std::ranges::none_of(moved.node.inputs, [this](ValueId input) { return input != no_value && twin(input) != no_value; })) return false;
  for (size_t i = 0; i < moved.node.inputs.size(); ++i) {
    const ValueId input = moved.node.inputs[i];
    if (input == no_value) continue;
    if (r_.value(input).constant) {
      const auto constant = constant_operand(input, rank);
      if (!constant) return false;
      moved.node.inputs[i] = *constant;
      continue;
    }
    const Shape* const shape = r_.known_shape(input);
    if (shape == nullptr) return false;
    if (shape->elements() == 1 && shape->rank() <= rank && twin(input) == no_value) continue;
    if (shape->rank() != rank || !is_image(input)) return false;
    if (!take_input(moved, i)) return false;
  }
  return finish(id, std::move(moved));
}

bool LayoutRewriter::move_axis(NodeId id) {
  Moved moved{r_.node(id), {}, {}};
  const Shape* const first = r_.known_shape(input_of(moved.node, 0));
  if (first == nullptr || first->rank() < 3) return false;
  const size_t rank = first->rank();
  const size_t images = moved.node.op == "Concat" ? moved.node.inputs.size() : 1;
  for (size_t i = 0; i < images; ++i) {
    if (input_of(moved.node, i) == no_value || twin(moved.node.inputs[i]) == no_value || !take_input(moved, i)) return false;
  }
  const int64_t otherwise = moved.node.op == "Softmax" ? -1 : 0;
  moved.node.attributes["axis"] = moved_axis(integer_of(moved.node, "axis", otherwise), rank);
  return finish(id, std::move(moved));
}

// A constant vector with `rank` entries, or twice as many, in the new order of axes. Absent and empty ones stay.
std::optional<ValueId> LayoutRewriter::permuted_entries(ValueId id, size_t rank) {
  const Tensor* const tensor = r_.constant(id);
  if (tensor == nullptr) return std::nullopt;
  if (tensor->elements() == 0) return id;
  const size_t count = tensor->elements();
  if (tensor->shape().rank() != 1 || count % rank != 0 || bits_of(tensor->dtype()) < 8) return std::nullopt;
  const size_t size = bits_of(tensor->dtype()) / 8;
  Tensor result(tensor->type());
  const auto axes = last_axes(rank);
  for (size_t i = 0; i < count; ++i) {
    const size_t from = i / rank * rank + static_cast<size_t>(axes[i % rank]);
    std::ranges::copy(tensor->bytes().subspan(from * size, size), result.writable_bytes().begin() + static_cast<std::ptrdiff_t>(i * size));
  }
  return r_.add_constant(cat(r_.value(id).name, " (channels last)"), std::move(result));
}

bool LayoutRewriter::move_per_axis(NodeId id) {
  Moved moved{r_.node(id), {}, {}};
  const Shape* const shape = r_.known_shape(input_of(moved.node, 0));
  if (shape == nullptr || shape->rank() < 3 || twin(moved.node.inputs[0]) == no_value || !integers_of(moved.node, "axes").empty()) return false;
  const size_t rank = shape->rank();
  const bool pad = moved.node.op == "Pad";
  if (pad && input_of(moved.node, 3) != no_value) return false;
  if (!take_input(moved, 0)) return false;
  for (size_t i = 1; i < moved.node.inputs.size(); ++i) {
    const ValueId input = moved.node.inputs[i];
    if (input == no_value || (pad && i == 2)) continue;  // A Pad's value has no axes.
    const auto entries = permuted_entries(input, rank);
    if (!entries) return false;
    moved.node.inputs[i] = *entries;
  }
  return finish(id, std::move(moved));
}

bool LayoutRewriter::move_reduction(NodeId id) {
  Moved moved{r_.node(id), {}, {}};
  const Shape* const shape = r_.known_shape(input_of(moved.node, 0));
  const auto axes = integers_of(r_, input_of(moved.node, 1));
  if (shape == nullptr || shape->rank() < 3 || twin(moved.node.inputs[0]) == no_value || !axes || axes->empty()) return false;
  const size_t rank = shape->rank();
  std::vector<int64_t> changed;
  for (const int64_t axis : *axes) changed.push_back(moved_axis(axis, rank));
  if (!take_input(moved, 0)) return false;
  moved.node.inputs[1] = r_.add_constant("", Tensor::from<int64_t>(Shape{static_cast<int64_t>(changed.size())}, changed));
  if (integer_of(moved.node, "keepdims", 1) != 0) return finish(id, std::move(moved));
  // The axes that stay must be in the same order: N and C alone are.
  std::vector<int64_t> sorted = changed;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) + 1) return false;
  }
  if (sorted.size() + 2 != rank || !takes_(call_for(r_.graph(), moved.node))) return false;
  r_.replace(id, std::move(moved.node));
  return true;
}

bool LayoutRewriter::move_flatten(NodeId id) {
  const Node& node = r_.node(id);
  const ValueId last = twin(input_of(node, 0));
  const Shape* const from = r_.known_shape(input_of(node, 0));
  const Shape* const to = r_.known_shape(output_of(node));
  if (last == no_value || from == nullptr || to == nullptr || to->rank() != 3 || (*to)[0] != (*from)[0] || (*to)[1] != (*from)[1]) return false;
  const NodeId follower = r_.only_user(node.outputs[0]);
  if (follower == no_node) return false;
  const bool product = r_.node(follower).op == "unmoor:FusedMatMul" && r_.node(follower).inputs[0] == node.outputs[0] &&
                       integer_of(r_.node(follower), "transA", 0) == 1;
  if (!product && !is_transpose(r_.node(follower), {0, 2, 1})) return false;
  const std::vector<int64_t> dims{(*to)[0], (*to)[2], (*to)[1]};
  Node reshape = product ? node : r_.node(follower);
  reshape.op = "Reshape";
  reshape.attributes = {};
  if (std::ranges::find(dims, 0) != dims.end()) reshape.attributes["allowzero"] = int64_t{1};
  reshape.inputs = {last, r_.add_constant("", Tensor::from<int64_t>(Shape{3}, dims))};
  if (!product) {
    r_.replace(follower, std::move(reshape));
    return true;
  }
  Value value = r_.value(reshape.outputs[0]);
  value.name += " (channels last)";
  value.origin.permutation = {0, 2, 1};
  value.type = TensorType{std::get<TensorType>(value.type).dtype, Shape(dims)};
  reshape.outputs[0] = r_.add_value(std::move(value));
  Node changed = r_.node(follower);
  changed.inputs[0] = reshape.outputs[0];
  changed.attributes["transA"] = int64_t{0};
  r_.insert_before(id, std::move(reshape));
  r_.replace(follower, std::move(changed));
  return true;
}

// The other way round: rows of channels that were transposed to become an image are one with its channels last.
bool LayoutRewriter::move_unflatten(NodeId id) {
  Moved moved{r_.node(id), {}, {}};
  const Node* const before = r_.made_by(input_of(moved.node, 0), "Transpose");
  if (before == nullptr || !is_transpose(*before, {0, 2, 1}) || r_.only_user(moved.node.inputs[0]) != id) return false;
  const Shape* const from = r_.known_shape(moved.node.inputs[0]);
  const Shape* const to = r_.known_shape(output_of(moved.node));
  if (from == nullptr || to == nullptr || to->rank() < 3 || (*to)[0] != (*from)[0] || (*to)[1] != (*from)[1]) return false;
  const Shape last = permuted(*to, last_axes(to->rank()));
  moved.node.attributes = {};
  if (last.elements() == 0) moved.node.attributes["allowzero"] = int64_t{1};
  moved.node.inputs = {before->inputs[0], r_.add_constant("", Tensor::from<int64_t>(Shape{static_cast<int64_t>(last.rank())}, last.dims()))};
  return finish(id, std::move(moved));
}

bool LayoutRewriter::move(NodeId id) {
  const Node& node = r_.node(id);
  if (is_one_of(node, convolutions) || is_one_of(node, pools)) return move_window(id);
  if (is_one_of(node, elementwise)) return move_elementwise(id);
  if (is_one_of(node, along_axis)) return move_axis(id);
  if (is_one_of(node, reductions)) return move_reduction(id);
  if (node.op == "Pad" || node.op == "Resize") return move_per_axis(id);
  return node.op == "Reshape" && (move_flatten(id) || move_unflatten(id));
}

bool channels_last(Rewriter& r, const TakesCall& takes) {
  bool changed = false;
  LayoutRewriter layout(r, takes);
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) changed |= layout.move(id);
  return changed;
}

}  // namespace unmoor
