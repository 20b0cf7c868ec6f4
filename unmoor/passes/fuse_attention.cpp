#include <algorithm>
#include <array>

#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

const std::vector<int64_t> swapped_heads{0, 2, 1, 3};

bool is_plain_product(const Node& node) {
  if (node.op == "MatMul") return true;
  return node.op == "unmoor:FusedMatMul" && integer_of(node, "transA", 0) == 0 && integer_of(node, "transB", 0) == 0 &&
         real_of(node, "alpha", 1) == 1 && input_of(node, 2) == no_value && input_of(node, 3) == no_value &&
         text_of(node, "activation", "").empty();
}

bool is_transpose(const Node* node, const std::vector<int64_t>& axes) {
  return node != nullptr && node->op == "Transpose" && integers_of(*node, "perm") == axes;
}

const Node* maker_of(const Rewriter& r, ValueId id) { return r.maker(id) == no_node ? nullptr : &r.node(r.maker(id)); }

// What stands between the two products of attention, from the weights up.
struct Match {
  std::vector<NodeId> nodes;  // All but the last product.
  NodeId product = no_node;   // Queries times keys.
  ValueId bias = no_value;
  ValueId shown = no_value;
  float hidden_score = 0;
  bool zero_if_nan = false;
  ValueId last = no_value;  // Looked at now; used once only.

  // Takes the maker of `last` in and looks at its input `next`.
  void take(const Rewriter& r, ValueId next) {
    nodes.push_back(r.maker(last));
    last = next;
  }
};

bool is_used_once(const Rewriter& r, ValueId id) { return r.uses(id) == 1 && !r.is_output(id); }

// Where(IsNaN(w), 0, w): some exporters write it behind the softmax.
bool match_zero_if_nan(const Rewriter& r, Match& match) {
  const Node* where = r.made_by(match.last, "Where");
  if (where == nullptr) return true;
  const Node* is_nan = r.made_by(input_of(*where, 0), "IsNaN");
  const ValueId weights = input_of(*where, 2);
  if (is_nan == nullptr || input_of(*is_nan, 0) != weights || !is_scalar(r, input_of(*where, 1), 0)) return false;
  if (!is_used_once(r, input_of(*where, 0)) || r.uses(weights) != 2 || r.is_output(weights)) return false;
  match.nodes.push_back(r.maker(input_of(*where, 0)));
  match.take(r, weights);
  match.zero_if_nan = true;
  return true;
}

bool match_softmax(const Rewriter& r, Match& match) {
  const Node* softmax = r.made_by(match.last, "Softmax");
  const Shape* shape = r.known_shape(match.last);
  if (softmax == nullptr || shape == nullptr || shape->rank() < 2 || shape->rank() > 4) return false;
  const int64_t axis = integer_of(*softmax, "axis", -1);
  if (axis != -1 && axis + 1 != static_cast<int64_t>(shape->rank())) return false;
  match.take(r, input_of(*softmax, 0));
  return true;
}

// A value that broadcasts to the scores without changing their shape.
bool is_beside(const Rewriter& r, ValueId id, const Shape& scores) {
  const Shape* shape = r.known_shape(id);
  if (shape == nullptr || shape->rank() > scores.rank()) return false;
  for (size_t i = 1; i <= shape->rank(); ++i) {
    const int64_t dim = (*shape)[shape->rank() - i];
    if (dim != 1 && dim != scores[scores.rank() - i]) return false;
  }
  return true;
}

bool match_where(const Rewriter& r, const Node& where, const Shape& scores, Match& match) {
  const auto number = scalar_of(r, input_of(where, 2));
  const auto hidden = number ? attribute_number(DType::F32, *number) : std::nullopt;
  if (match.shown != no_value || !hidden || !is_beside(r, input_of(where, 0), scores)) return false;
  match.shown = input_of(where, 0);
  match.hidden_score = *hidden;
  match.take(r, input_of(where, 1));
  return true;
}

bool match_bias(const Rewriter& r, const Node& add, const Shape& scores, Match& match) {
  if (match.bias != no_value || add.inputs.size() != 2 || add.inputs[0] == add.inputs[1]) return false;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    const Node* product = maker_of(r, add.inputs[at]);
    if (product == nullptr || (product->op != "MatMul" && product->op != "unmoor:FusedMatMul")) continue;
    if (!is_used_once(r, add.inputs[at]) || !is_beside(r, add.inputs[1 - at], scores)) continue;
    match.bias = add.inputs[1 - at];
    match.take(r, add.inputs[at]);
    return true;
  }
  return false;
}

// Masks, up to the product of queries and keys.
bool match_scores(const Rewriter& r, Match& match) {
  while (is_used_once(r, match.last)) {
    const Node* node = maker_of(r, match.last);
    const Shape* scores = r.known_shape(match.last);
    if (node == nullptr || scores == nullptr || r.known_shape(output_of(*node)) == nullptr) return false;
    if (node->op == "MatMul" || node->op == "unmoor:FusedMatMul") {
      match.product = r.maker(match.last);
      return integer_of(*node, "transA", 0) == 0 && text_of(*node, "activation", "").empty();
    }
    // What is shown is decided last, so a bias stands above it only.
    const bool goes_on = node->op == "Where" ? match.bias == no_value && match_where(r, *node, *scores, match)
                                             : node->op == "Add" && match_bias(r, *node, *scores, match);
    if (!goes_on) return false;
  }
  return false;
}

// The biases that the product adds itself.
bool match_inner_bias(const Rewriter& r, Match& match) {
  const Node& product = r.node(match.product);
  for (const size_t i : {size_t{2}, size_t{3}}) {
    const ValueId inner = input_of(product, i);
    if (inner == no_value) continue;
    if (match.bias != no_value || !is_beside(r, inner, *r.known_shape(output_of(product)))) return false;
    match.bias = inner;
  }
  return true;
}

struct Source {
  ValueId value = no_value;
  std::string layout = "BHSD";
};

Source source_of(const Rewriter& r, ValueId value) {
  const Node* node = maker_of(r, value);
  return is_transpose(node, swapped_heads) ? Source{input_of(*node, 0), "BSHD"} : Source{value};
}

Source keys_of(const Rewriter& r, const Node& product) {
  const ValueId value = input_of(product, 1);
  if (integer_of(product, "transB", 0) != 0) return source_of(r, value);
  const Node* node = maker_of(r, value);
  if (is_transpose(node, {0, 2, 3, 1})) return {input_of(*node, 0), "BSHD"};
  if (is_transpose(node, {0, 1, 3, 2}) || is_transpose(node, {0, 2, 1}) || is_transpose(node, {1, 0}))
    return {input_of(*node, 0)};
  return {value, "BHDS"};
}

// Heads written out for every query head that shares them: [b,h,s,d] by way of [b,h,1,s,d] and [b,h,g,s,d] as [b,h·g,s,d].
ValueId before_repeat(const Rewriter& r, ValueId value) {
  const Node* merge = r.made_by(value, "Reshape");
  const Node* expand = merge == nullptr ? nullptr : r.made_by(input_of(*merge, 0), "Expand");
  const Node* split = expand == nullptr ? nullptr : maker_of(r, input_of(*expand, 0));
  if (split == nullptr || (split->op != "Reshape" && split->op != "Unsqueeze")) return no_value;
  const Shape* four = r.known_shape(input_of(*split, 0));
  const Shape* one = r.known_shape(input_of(*expand, 0));
  const Shape* many = r.known_shape(input_of(*merge, 0));
  const Shape* all = r.known_shape(value);
  if (four == nullptr || one == nullptr || many == nullptr || all == nullptr || four->rank() != 4 || many->rank() != 5)
    return no_value;
  const auto& f = *four;
  const int64_t group = (*many)[2];
  const bool fits = *one == Shape{f[0], f[1], 1, f[2], f[3]} && *many == Shape{f[0], f[1], group, f[2], f[3]} &&
                    *all == Shape{f[0], Shape{f[1], group}.elements(), f[2], f[3]};
  return fits ? input_of(*split, 0) : no_value;
}

// Ranks agree, and all but the heads' dimensions do.
bool fits_together(const Rewriter& r, const Node& product, const Node& last) {
  const Shape* const q = r.known_shape(input_of(product, 0));
  const Shape* const k = r.known_shape(input_of(product, 1));
  const Shape* const v = r.known_shape(input_of(last, 1));
  if (q == nullptr || k == nullptr || v == nullptr || q->rank() < 2 || q->rank() > 4 || k->rank() != q->rank() ||
      v->rank() != q->rank())
    return false;
  for (size_t axis = 0; axis + 2 < q->rank(); ++axis) {
    if ((*q)[axis] != (*k)[axis] || (*q)[axis] != (*v)[axis] || (*q)[axis] == 0) return false;
  }
  return true;
}

Node fused_node(const Rewriter& r, const Match& match, const Node& last) {
  const Node& product = r.node(match.product);
  const Source q = source_of(r, input_of(product, 0));
  Source k = keys_of(r, product);
  Source v = source_of(r, input_of(last, 1));
  const ValueId few_k = k.layout == "BHSD" ? before_repeat(r, k.value) : no_value;
  const ValueId few_v = v.layout == "BHSD" ? before_repeat(r, v.value) : no_value;
  if (few_k != no_value && few_v != no_value && (*r.known_shape(few_k))[1] == (*r.known_shape(few_v))[1]) {
    k.value = few_k;
    v.value = few_v;
  }
  Node fused = last;
  fused.op = "unmoor:FusedAttention";
  fused.inputs = {q.value, k.value, v.value, match.bias, match.shown};
  while (fused.inputs.back() == no_value) fused.inputs.pop_back();
  fused.attributes = {{"scale", static_cast<float>(real_of(product, "alpha", 1))},
                      {"q_layout", q.layout},
                      {"k_layout", k.layout},
                      {"v_layout", v.layout},
                      {"no_weights", std::string(match.zero_if_nan ? "zero_if_nan" : "nan")}};
  if (match.shown != no_value) fused.attributes["hidden_score"] = match.hidden_score;
  return fused;
}

bool fuse_at(Rewriter& r, NodeId id, const TakesCall& takes) {
  const Node last = r.node(id);
  if (!is_plain_product(last) || r.tensor_type(output_of(last)) == nullptr || r.tensor_type(output_of(last))->dtype != DType::F32)
    return false;
  Match match;
  match.last = input_of(last, 0);
  if (!is_used_once(r, match.last)) return false;
  if (!match_zero_if_nan(r, match) || !match_softmax(r, match) || !match_scores(r, match) || !match_inner_bias(r, match))
    return false;
  if (!fits_together(r, r.node(match.product), last)) return false;
  match.nodes.push_back(match.product);
  Node fused = fused_node(r, match, last);
  const NodeId follower = only_follower(r, output_of(last));
  const bool swaps = follower != no_node && is_transpose(&r.node(follower), swapped_heads);
  const NodeId place = swaps ? follower : id;
  if (swaps) {
    fused.attributes["y_layout"] = std::string("BSHD");
    fused.name = r.node(follower).name;
    fused.outputs = r.node(follower).outputs;
    match.nodes.push_back(id);
  }
  if (!takes(call_for(r.graph(), fused))) return false;
  fused.origin = joined_origin(r, place, match.nodes);
  for (const NodeId node : match.nodes) r.remove(node);
  r.replace(place, std::move(fused));
  return true;
}

}  // namespace

bool fuse_attention(Rewriter& r, const TakesCall& takes) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node; id = r.next(id)) changed |= fuse_at(r, id, takes);
  return changed;
}

}  // namespace unmoor
