#include "unmoor/passes/rewrite.h"

#include <algorithm>

namespace unmoor {

Rewriter::Rewriter(const Graph& graph) : graph_(graph), links_(graph.nodes().size()), outputs_(graph.outputs()) {
  grow();
  for (size_t i = 0; i < links_.size(); ++i) {
    const NodeId id{static_cast<uint32_t>(i)};
    links_[i].previous = last_;
    (last_ == no_node ? first_ : links_[index(last_)].next) = id;
    last_ = id;
    add_uses(id);
  }
  for (const ValueId id : outputs_) ++output_uses_[Graph::index(id)];
  constexpr size_t growth = 4;
  for (const Value& value : graph_.values()) {
    if (value.constant && value.constant->is_tensor()) budget_ += growth * value.constant->tensor().bytes().size();
  }
}

void Rewriter::grow() {
  const size_t size = graph_.values().size();
  makers_.resize(size, no_node);
  users_.resize(size);
  output_uses_.resize(size);
}

NodeId Rewriter::alive_from(NodeId id) const {
  while (id != no_node && !is_alive(id)) id = links_[index(id)].next;
  return id;
}

std::vector<NodeId> Rewriter::nodes() const {
  std::vector<NodeId> list;
  list.reserve(links_.size());
  for (NodeId id = first(); id != no_node; id = next(id)) list.push_back(id);
  return list;
}

bool Rewriter::is_before(NodeId a, NodeId b) const {
  NodeId after_a = a;
  NodeId after_b = b;
  while (true) {
    if (after_a != no_node) after_a = links_[index(after_a)].next;
    if (after_b != no_node) after_b = links_[index(after_b)].next;
    if (after_a == b) return true;
    if (after_b == a || (after_a == no_node && after_b == no_node)) return false;
  }
}

const Node* Rewriter::made_by(ValueId id, std::string_view op) const {
  const NodeId made = maker(id);
  return made != no_node && node(made).op == op ? &node(made) : nullptr;
}

NodeId Rewriter::only_user(ValueId id) const {
  if (id == no_value) return no_node;
  const auto& list = users(id);
  return list.size() == 1 && !is_output(id) ? list[0] : no_node;
}

const TensorType* Rewriter::tensor_type(ValueId id) const {
  return id == no_value ? nullptr : std::get_if<TensorType>(&value(id).type);
}

const Shape* Rewriter::known_shape(ValueId id) const {
  const TensorType* type = tensor_type(id);
  return type != nullptr && type->is_known() ? &type->shape : nullptr;
}

ValueId Rewriter::add_constant(std::string name, Tensor tensor) {
  Value made;
  made.name = std::move(name);
  made.type = tensor.type();
  made.constant = Data(std::move(tensor));
  return add_value(std::move(made));
}

ValueId Rewriter::add_value(Value value) {
  const ValueId id = graph_.add_value(std::move(value));
  grow();
  return id;
}

void Rewriter::set_constant(ValueId id, Data data) {
  graph_.set_type(id, type_of(data));
  graph_.mutable_value(id).constant = std::move(data);
}

void Rewriter::add_uses(NodeId id) {
  for (const ValueId input : node(id).inputs) {
    if (input != no_value) users_[Graph::index(input)].push_back(id);
  }
  for (const ValueId output : node(id).outputs) {
    if (output != no_value) makers_[Graph::index(output)] = id;
  }
}

void Rewriter::drop_use(ValueId used, NodeId user) {
  auto& list = users_[Graph::index(used)];
  const auto found = std::ranges::find(list, user);
  if (found == list.end()) return;
  *found = list.back();
  list.pop_back();
}

void Rewriter::drop_uses(NodeId id) {
  for (const ValueId input : node(id).inputs) {
    if (input != no_value) drop_use(input, id);
  }
  for (const ValueId output : node(id).outputs) {
    if (output != no_value && makers_[Graph::index(output)] == id) makers_[Graph::index(output)] = no_node;
  }
}

NodeId Rewriter::insert_before(NodeId place, Node node) {
  const NodeId id = graph_.add_node(std::move(node));
  const NodeId before = links_[index(place)].previous;
  links_.push_back({before, place, true});
  links_[index(place)].previous = id;
  (before == no_node ? first_ : links_[index(before)].next) = id;
  add_uses(id);
  return id;
}

void Rewriter::replace(NodeId id, Node node) {
  drop_uses(id);
  graph_.mutable_node(id) = std::move(node);
  add_uses(id);
}

void Rewriter::remove(NodeId id) {
  drop_uses(id);
  Link& link = links_[index(id)];
  link.alive = false;
  (link.previous == no_node ? first_ : links_[index(link.previous)].next) = link.next;
  (link.next == no_node ? last_ : links_[index(link.next)].previous) = link.previous;
}

void Rewriter::replace_value(ValueId from, ValueId to) {
  if (from == to) return;
  std::vector<NodeId> users = std::move(users_[Graph::index(from)]);
  users_[Graph::index(from)].clear();
  for (const NodeId user : users) {
    auto& inputs = graph_.mutable_node(user).inputs;
    std::ranges::replace(inputs, from, to);
    users_[Graph::index(to)].push_back(user);
  }
  for (ValueId& output : outputs_) {
    if (output != from) continue;
    output = to;
    ++output_uses_[Graph::index(to)];
  }
  output_uses_[Graph::index(from)] = 0;
}

bool Rewriter::spend(size_t bytes) {
  if (bytes > budget_) return false;
  budget_ -= bytes;
  return true;
}

void Rewriter::release(ValueId id) {
  if (id == no_value || uses(id) > 0 || constant(id) == nullptr) return;
  budget_ += constant(id)->bytes().size();
  graph_.mutable_value(id).constant.reset();
}

bool Rewriter::remove_dead() {
  bool changed = false;
  for (NodeId id = last_; id != no_node;) {
    const NodeId before = links_[index(id)].previous;
    const auto& made = node(id).outputs;
    if (std::ranges::all_of(made, [this](ValueId output) { return output == no_value || uses(output) == 0; })) {
      remove(id);
      changed = true;
    }
    id = before;
  }
  return changed;
}

Graph Rewriter::finish() {
  constexpr ValueId input_mark{0xfffffffeU};
  std::vector<ValueId> places(graph_.values().size(), no_value);
  std::vector<bool> wanted(places.size());
  for (size_t i = 0; i < places.size(); ++i) wanted[i] = makers_[i] != no_node || !users_[i].empty() || output_uses_[i] > 0;
  for (const ValueId id : graph_.inputs()) places[Graph::index(id)] = input_mark;

  Graph result;
  result.set_name(graph_.name());
  for (size_t i = 0; i < places.size(); ++i) {
    Value& value = graph_.mutable_value(ValueId{static_cast<uint32_t>(i)});
    if (places[i] == input_mark) {
      places[i] = result.add_input("", {});
      result.mutable_value(places[i]) = std::move(value);
    } else if (wanted[i]) {
      places[i] = result.add_value(std::move(value));
    }
  }
  const auto move_to = [&places](std::vector<ValueId>& list) {
    for (ValueId& id : list) id = id == no_value ? no_value : places[Graph::index(id)];
  };
  for (NodeId id = first(); id != no_node; id = next(id)) {
    Node node = std::move(graph_.mutable_node(id));
    move_to(node.inputs);
    move_to(node.outputs);
    result.add_node(std::move(node));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) result.mark_output(places[Graph::index(outputs_[i])], graph_.output_names()[i]);
  *this = Rewriter(Graph());
  return result;
}

Origin joined_origin(const Rewriter& r, NodeId last, const std::vector<NodeId>& others) {
  Origin origin = r.node(last).origin;
  const auto add = [&origin](const std::string& name) {
    if (!name.empty() && name != origin.name && std::ranges::find(origin.also, name) == origin.also.end()) origin.also.push_back(name);
  };
  for (const NodeId other : others) {
    if (other == no_node || other == last) continue;
    add(r.node(other).origin.name);
    for (const std::string& name : r.node(other).origin.also) add(name);
  }
  return origin;
}

}  // namespace unmoor
