#include <algorithm>

#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

constexpr size_t most_elements = size_t{1} << 18;  // Of a normalised row for which a scale of ones may be made.

struct Match {
  ValueId x = no_value;
  int64_t axis = 0;  // The first normalised one; all behind it are.
  double epsilon = 0;
  ValueId scale = no_value;
  ValueId bias = no_value;
  NodeId last = no_node;
  std::vector<NodeId> nodes;
};

// The first axis of a mean over all last axes that keeps its dimensions.
std::optional<int64_t> mean_axis(const Rewriter& r, const Node& mean) {
  const TensorType* type = r.tensor_type(input_of(mean, 0));
  auto axes = integers_of(r, input_of(mean, 1));
  if (type == nullptr || !type->shape.has_rank() || !axes || axes->empty() || integer_of(mean, "keepdims", 1) == 0) return std::nullopt;
  const auto rank = static_cast<int64_t>(type->shape.rank());
  for (int64_t& axis : *axes) axis = axis < 0 ? axis + rank : axis;
  std::ranges::sort(*axes);
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != rank - static_cast<int64_t>(axes->size() - i)) return std::nullopt;
  }
  return (*axes)[0];
}

// The value whose square this is.
ValueId root_of_square(const Rewriter& r, ValueId square) {
  if (const Node* power = r.made_by(square, "Pow"); power != nullptr && is_scalar(r, input_of(*power, 1), 2)) return input_of(*power, 0);
  const Node* product = r.made_by(square, "Mul");
  return product != nullptr && input_of(*product, 0) == input_of(*product, 1) ? input_of(*product, 0) : no_value;
}

// x - mean(x).
bool match_centred(const Rewriter& r, ValueId centred, Match& match) {
  const Node* sub = r.made_by(centred, "Sub");
  const Node* mean = sub == nullptr ? nullptr : r.made_by(input_of(*sub, 1), "ReduceMean");
  if (mean == nullptr || input_of(*mean, 0) != input_of(*sub, 0)) return false;
  const auto axis = mean_axis(r, *mean);
  if (!axis) return false;
  match.x = input_of(*sub, 0);
  match.axis = *axis;
  match.nodes = {r.maker(centred), r.maker(sub->inputs[1])};
  return true;
}

// sqrt(mean(centred^2) + epsilon).
bool match_deviation(const Rewriter& r, ValueId deviation, ValueId centred, Match& match) {
  const Node* root = r.made_by(deviation, "Sqrt");
  const Node* sum = root == nullptr ? nullptr : r.made_by(input_of(*root, 0), "Add");
  if (sum == nullptr) return false;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    const Node* mean = r.made_by(input_of(*sum, at), "ReduceMean");
    const auto epsilon = scalar_of(r, input_of(*sum, 1 - at));
    if (mean == nullptr || !epsilon || root_of_square(r, input_of(*mean, 0)) != centred || mean_axis(r, *mean) != match.axis) continue;
    match.epsilon = *epsilon;
    match.nodes.insert(match.nodes.end(), {r.maker(mean->inputs[0]), r.maker(sum->inputs[at]), r.maker(root->inputs[0]), r.maker(deviation)});
    return true;
  }
  return false;
}

// Pairs (centred, deviation) of centred / deviation, centred * (1 / deviation), in either order.
std::optional<std::pair<ValueId, ValueId>> quotient(const Rewriter& r, const Node& node, std::vector<NodeId>& nodes) {
  if (node.op == "Div") return std::pair{input_of(node, 0), input_of(node, 1)};
  if (node.op != "Mul") return std::nullopt;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    const ValueId inverse = input_of(node, at);
    if (const Node* reciprocal = r.made_by(inverse, "Reciprocal")) {
      nodes.push_back(r.maker(inverse));
      return std::pair{input_of(node, 1 - at), input_of(*reciprocal, 0)};
    }
    if (const Node* division = r.made_by(inverse, "Div"); division != nullptr && is_scalar(r, input_of(*division, 0), 1)) {
      nodes.push_back(r.maker(inverse));
      return std::pair{input_of(node, 1 - at), input_of(*division, 1)};
    }
  }
  return std::nullopt;
}

// The operand beside `value` that has the shape of a normalised row; ones in front do not count, where they do not widen the result.
ValueId row_operand(const Rewriter& r, const Node& node, ValueId value, const Shape& row, size_t most_rank) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return no_value;
  const ValueId other = node.inputs[0] == value ? node.inputs[1] : node.inputs[0];
  const Shape* shape = r.known_shape(other);
  if (shape == nullptr || !r.constant(other)) return shape != nullptr && *shape == row ? other : no_value;
  if (shape->rank() < row.rank() || shape->rank() > most_rank) return no_value;
  const size_t extra = shape->rank() - row.rank();
  for (size_t i = 0; i < shape->rank(); ++i) {
    if ((*shape)[i] != (i < extra ? 1 : row[i - extra])) return no_value;
  }
  return other;
}

void match_affine(const Rewriter& r, const Shape& row, Match& match) {
  const auto follow = [&](std::string_view op) {
    const ValueId value = output_of(r.node(match.last));
    const NodeId user = only_follower(r, value);
    if (user == no_node || r.node(user).op != op) return no_value;
    const ValueId operand = row_operand(r, r.node(user), value, row, r.tensor_type(match.x)->shape.rank());
    if (operand != no_value) {
      match.nodes.push_back(match.last);
      match.last = user;
    }
    return operand;
  };
  match.scale = follow("Mul");
  match.bias = follow("Add");
}

// The values inside may be used by nobody else, save x.
bool is_private(const Rewriter& r, const Match& match) {
  return std::ranges::all_of(match.nodes, [&](NodeId id) {
    const auto& users = r.users(r.node(id).outputs[0]);
    return !r.is_output(r.node(id).outputs[0]) && std::ranges::all_of(users, [&](NodeId user) {
      return user == match.last || std::ranges::find(match.nodes, user) != match.nodes.end();
    });
  });
}

// A constant in the row's shape.
ValueId shaped(Rewriter& r, ValueId id, const Shape& row) {
  if (id == no_value || *r.known_shape(id) == row) return id;
  return r.add_constant(r.value(id).name, r.constant(id)->reshaped(row));
}

// A constant of a higher rank inside widens the result; the raised operator would not.
bool keeps_rank(const TensorType& x, const TensorType* y) {
  return y != nullptr && y->dtype == x.dtype && y->shape.has_rank() && y->shape.rank() == x.shape.rank();
}

bool raise(Rewriter& r, NodeId id) {
  Match match;
  std::vector<NodeId> inverse;
  const auto parts = quotient(r, r.node(id), inverse);
  if (!parts || !match_centred(r, parts->first, match) || !match_deviation(r, parts->second, parts->first, match)) return false;
  const TensorType* type = r.tensor_type(match.x);
  const auto epsilon = attribute_number(type->dtype, match.epsilon);
  if (!is_float(type->dtype) || !epsilon || !keeps_rank(*type, r.tensor_type(output_of(r.node(id))))) return false;
  Shape row;
  for (size_t axis = static_cast<size_t>(match.axis); axis < type->shape.rank(); ++axis) row.push_back(type->shape[axis]);
  if (!row.is_known()) return false;
  match.nodes.insert(match.nodes.end(), inverse.begin(), inverse.end());
  match.last = id;
  match_affine(r, row, match);
  if (!is_private(r, match)) return false;
  const bool plain = match.scale == no_value;
  if (plain && static_cast<size_t>(row.elements()) > most_elements) return false;

  const DType dtype = type->dtype;
  Node node = r.node(match.last);
  node.op = "LayerNormalization";
  node.origin = joined_origin(r, match.last, match.nodes);
  node.attributes = {{"axis", match.axis}, {"epsilon", *epsilon}};
  const auto ones = [&] { return make_tensor(dtype, row, std::vector<double>(static_cast<size_t>(row.elements()), 1.0)); };
  node.inputs = {match.x, plain ? r.add_constant("ones", ones()) : shaped(r, match.scale, row)};
  if (match.bias != no_value) node.inputs.push_back(shaped(r, match.bias, row));
  r.replace(match.last, std::move(node));
  return true;
}

}  // namespace

bool raise_layer_normalization(Rewriter& r) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) changed |= raise(r, id);
  if (changed) r.remove_dead();
  return changed;
}

}  // namespace unmoor
