#include <algorithm>
#include <cmath>
#include <numbers>

#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

// What a product turned out to be.
struct Match {
  std::string op;
  ValueId x = no_value;
  Attributes attributes;
  std::vector<NodeId> nodes;  // Below the product.
};

bool near(const Rewriter& r, ValueId like, double found, double wanted) { return is_near(r.tensor_type(like)->dtype, found, wanted); }

// The value times a number: looks through one Mul or Div by a scalar.
std::pair<ValueId, double> scaled_value(const Rewriter& r, ValueId id, std::vector<NodeId>& nodes) {
  const NodeId made = r.maker(id);
  if (made == no_node) return {id, 1};
  const Node& node = r.node(made);
  if (node.op != "Mul" && node.op != "Div") return {id, 1};
  if (const auto by = scalar_of(r, input_of(node, 1)); by && *by != 0) {
    nodes.push_back(made);
    return {input_of(node, 0), node.op == "Mul" ? *by : 1 / *by};
  }
  if (const auto by = scalar_of(r, input_of(node, 0)); by && node.op == "Mul") {
    nodes.push_back(made);
    return {input_of(node, 1), *by};
  }
  return {id, 1};
}

// x + 0.044715 x^3, or 1 + 0.044715 x^2 (power 2), however the power is written.
bool is_cubic(const Rewriter& r, ValueId sum, ValueId x, size_t power, std::vector<NodeId>& nodes) {
  const Node* add = r.made_by(sum, "Add");
  if (add == nullptr) return false;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    const ValueId linear = input_of(*add, 1 - at);
    const bool fits = power == 3 ? linear == x : is_scalar(r, linear, 1);
    const NodeId term = r.maker(input_of(*add, at));
    if (!fits || term == no_node || r.node(term).op != "Mul") continue;
    const Product product = product_of(r, term);
    size_t degree = 0;
    std::vector<NodeId> seen{r.maker(sum)};
    for (const ValueId leaf : product.leaves) {
      const Node* pow = r.made_by(leaf, "Pow");
      const auto exponent = pow == nullptr ? std::nullopt : scalar_of(r, input_of(*pow, 1));
      if (leaf == x) {
        degree += 1;
      } else if (exponent && input_of(*pow, 0) == x && (*exponent == 2 || *exponent == 3)) {
        degree += static_cast<size_t>(*exponent);
        seen.push_back(r.maker(leaf));
      } else {
        degree = 99;
      }
    }
    if (degree != power || !near(r, x, product.coefficient, 0.044715)) continue;
    nodes.insert(nodes.end(), seen.begin(), seen.end());
    nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
    return true;
  }
  return false;
}

// sqrt(2/pi) (x + 0.044715 x^3).
bool is_tanh_argument(const Rewriter& r, ValueId argument, ValueId x, std::vector<NodeId>& nodes) {
  const NodeId made = r.maker(argument);
  if (made == no_node) return false;
  const Product product = product_of(r, made);
  if (!near(r, x, product.coefficient, std::sqrt(2 / std::numbers::pi))) return false;
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  if (product.leaves.size() == 1) return is_cubic(r, product.leaves[0], x, 3, nodes);
  if (product.leaves.size() != 2) return false;
  const size_t other = product.leaves[0] == x ? 1 : 0;
  return product.leaves[1 - other] == x && is_cubic(r, product.leaves[other], x, 2, nodes);
}

// The other leaf is 1 + erf(x / sqrt 2) or 1 + tanh(…).
bool match_gelu(const Rewriter& r, ValueId other, double coefficient, Match& match) {
  const Node* add = r.made_by(other, "Add");
  const ValueId inner = add == nullptr ? no_value : operand_beside(r, *add, 1);
  if (inner == no_value || !near(r, match.x, coefficient, 0.5)) return false;
  std::vector<NodeId> nodes{r.maker(other), r.maker(inner)};
  if (const Node* erf = r.made_by(inner, "Erf")) {
    const auto [value, scale] = scaled_value(r, input_of(*erf, 0), nodes);
    if (value != match.x || !near(r, match.x, scale, std::numbers::sqrt2 / 2)) return false;
  } else if (const Node* tanh = r.made_by(inner, "Tanh")) {
    if (!is_tanh_argument(r, input_of(*tanh, 0), match.x, nodes)) return false;
    match.attributes["approximate"] = std::string("tanh");
  } else {
    return false;
  }
  match.op = "Gelu";
  match.nodes = nodes;
  return true;
}

// The other leaf is sigmoid(alpha x).
bool match_swish(const Rewriter& r, ValueId other, double coefficient, Match& match) {
  const Node* sigmoid = r.made_by(other, "Sigmoid");
  if (sigmoid == nullptr || coefficient != 1) return false;
  std::vector<NodeId> nodes{r.maker(other)};
  double alpha = 1;
  if (input_of(*sigmoid, 0) != match.x) {
    const auto [value, scale] = scaled_value(r, input_of(*sigmoid, 0), nodes);
    if (value != match.x) return false;
    alpha = scale;
  }
  const auto number = attribute_number(r.tensor_type(match.x)->dtype, alpha);
  if (!number) return false;
  match.op = "Swish";
  match.nodes = nodes;
  if (*number != 1) match.attributes["alpha"] = *number;
  return true;
}

// The value whose clip(v + 3, 0, 6) this is.
ValueId clipped_shift(const Rewriter& r, ValueId id, std::vector<NodeId>& nodes) {
  const Node* clip = r.made_by(id, "Clip");
  const auto low = clip == nullptr ? std::nullopt : scalar_of(r, input_of(*clip, 1));
  if (!low || *low != 0 || !is_scalar(r, input_of(*clip, 2), 6)) return no_value;
  const Node* add = r.made_by(input_of(*clip, 0), "Add");
  if (add == nullptr) return no_value;
  const ValueId x = operand_beside(r, *add, 3);
  if (x != no_value) nodes.insert(nodes.end(), {r.maker(id), r.maker(clip->inputs[0])});
  return x;
}

bool is_sixth_and_half(const Rewriter& r, const Node& hard_sigmoid, ValueId x) {
  return near(r, x, real_of(hard_sigmoid, "alpha", 0.2), 1.0 / 6) && real_of(hard_sigmoid, "beta", 0.5) == 0.5;
}

bool match_hard_swish(const Rewriter& r, ValueId other, double coefficient, Match& match) {
  std::vector<NodeId> nodes;
  const Node* hard = r.made_by(other, "HardSigmoid");
  const bool by_hard = hard != nullptr && coefficient == 1 && input_of(*hard, 0) == match.x && is_sixth_and_half(r, *hard, match.x);
  if (by_hard) {
    nodes.push_back(r.maker(other));
  } else if (!near(r, match.x, coefficient, 1.0 / 6) || clipped_shift(r, other, nodes) != match.x) {
    return false;
  }
  match.op = "HardSwish";
  match.nodes = nodes;
  return true;
}

std::optional<Match> match_product(const Rewriter& r, const Product& product) {
  if (product.leaves.size() == 1) {
    Match match;
    match.x = clipped_shift(r, product.leaves[0], match.nodes);
    if (match.x == no_value || !is_float_tensor(r, match.x) || !near(r, match.x, product.coefficient, 1.0 / 6)) return std::nullopt;
    if (r.tensor_type(match.x)->dtype == DType::F64) return std::nullopt;  // The attribute is a float, and a sixth is none.
    match.op = "HardSigmoid";
    match.attributes = {{"alpha", static_cast<float>(1.0 / 6)}, {"beta", 0.5F}};
    return match;
  }
  if (product.leaves.size() != 2) return std::nullopt;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    Match match;
    match.x = product.leaves[at];
    const ValueId other = product.leaves[1 - at];
    if (!is_float_tensor(r, match.x)) continue;
    if (match_gelu(r, other, product.coefficient, match) || match_swish(r, other, product.coefficient, match) ||
        match_hard_swish(r, other, product.coefficient, match)) {
      return match;
    }
  }
  return std::nullopt;
}

// A scalar constant of a higher rank widens a product; the raised operator would not.
bool keeps_rank(const Rewriter& r, ValueId x, ValueId y) {
  const TensorType* in = r.tensor_type(x);
  const TensorType* out = r.tensor_type(y);
  return in != nullptr && out != nullptr && in->dtype == out->dtype && in->shape.has_rank() && out->shape.has_rank() &&
         in->shape.rank() == out->shape.rank();
}

bool raise(Rewriter& r, NodeId id) {
  const Node& root = r.node(id);
  if ((root.op != "Mul" && root.op != "Div") || output_of(root) == no_value) return false;
  const Product product = product_of(r, id);
  auto match = match_product(r, product);
  if (!match || !keeps_rank(r, match->x, root.outputs[0])) return false;
  std::vector<NodeId> others = product.nodes;
  others.insert(others.end(), match->nodes.begin(), match->nodes.end());
  // What is used elsewhere stays, and is not part of this node. Users come after makers, so one walk from the root inwards tells.
  std::vector<NodeId> gone{id};
  for (bool grew = true; grew;) {
    grew = false;
    for (const NodeId other : others) {
      const ValueId value = r.node(other).outputs[0];
      if (std::ranges::find(gone, other) != gone.end() || r.is_output(value)) continue;
      const auto& users = r.users(value);
      grew |= std::ranges::all_of(users, [&](NodeId user) { return std::ranges::find(gone, user) != gone.end(); }) &&
              (gone.push_back(other), true);
    }
  }
  Node node = root;
  node.op = match->op;
  node.origin = joined_origin(r, id, gone);
  node.attributes = match->attributes;
  node.inputs = {match->x};
  r.replace(id, std::move(node));
  return true;
}

}  // namespace

bool raise_activations(Rewriter& r) {
  bool changed = false;
  auto nodes = r.nodes();
  // From the outputs inwards, so that the largest product is seen first.
  for (const NodeId id : std::vector<NodeId>(nodes.rbegin(), nodes.rend())) {
    if (r.is_alive(id)) changed |= raise(r, id);
  }
  if (changed) r.remove_dead();
  return changed;
}

}  // namespace unmoor
