#include "unmoor/passes/rewrite.h"

#include <algorithm>
#include <cassert>
#include <utility>

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
  constexpr double work_a_byte = 16;
  for (const Value& value : graph_.values()) {
    if (!value.constant || !value.constant->is_tensor()) continue;
    const size_t bytes = value.constant->tensor().bytes().size();
    budget_.bytes += growth * bytes;
    budget_.work += work_a_byte * static_cast<double>(bytes);
  }
}

void Rewriter::grow() {
  const size_t size = graph_.values().size();
  makers_.resize(size, no_node);
  uses_.resize(size);
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
  const auto& inputs = node(id).inputs;
  links_[index(id)].places.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != no_value) add_use(inputs[i], id, i);
  }
  for (const ValueId output : node(id).outputs) {
    if (output != no_value) makers_[Graph::index(output)] = id;
  }
}

void Rewriter::add_use(ValueId used, NodeId user, size_t input) {
  Uses& uses = uses_[Graph::index(used)];
  links_[index(user)].places[input] = uses.nodes.size();
  uses.nodes.push_back(user);
  uses.inputs.push_back(input);
}

// The last use takes the place of the one that goes.
void Rewriter::drop_use(ValueId used, NodeId user, size_t input) {
  Uses& uses = uses_[Graph::index(used)];
  const size_t place = links_[index(user)].places[input];
  links_[index(uses.nodes.back())].places[uses.inputs.back()] = place;
  uses.nodes[place] = uses.nodes.back();
  uses.inputs[place] = uses.inputs.back();
  uses.nodes.pop_back();
  uses.inputs.pop_back();
}

void Rewriter::drop_uses(NodeId id) {
  const auto& inputs = node(id).inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != no_value) drop_use(inputs[i], id, i);
  }
  for (const ValueId output : node(id).outputs) {
    if (output != no_value && makers_[Graph::index(output)] == id) makers_[Graph::index(output)] = no_node;
  }
}

NodeId Rewriter::insert_before(NodeId place, Node node) {
  const NodeId id = graph_.add_node(std::move(node));
  const NodeId before = links_[index(place)].previous;
  links_.push_back({before, place, true, {}});
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
  assert(is_alive(id));
  drop_uses(id);
  Link& link = links_[index(id)];
  link.alive = false;
  (link.previous == no_node ? first_ : links_[index(link.previous)].next) = link.next;
  (link.next == no_node ? last_ : links_[index(link.next)].previous) = link.previous;
}

void Rewriter::replace_value(ValueId from, ValueId to) {
  if (from == to) return;
  const Uses uses = std::exchange(uses_[Graph::index(from)], {});
  for (size_t i = 0; i < uses.nodes.size(); ++i) {
    graph_.mutable_node(uses.nodes[i]).inputs[uses.inputs[i]] = to;
    add_use(to, uses.nodes[i], uses.inputs[i]);
  }
  if (output_uses_[Graph::index(from)] == 0) return;
  for (ValueId& output : outputs_) {
    if (output != from) continue;
    output = to;
    ++output_uses_[Graph::index(to)];
  }
  output_uses_[Graph::index(from)] = 0;
}

bool Rewriter::spend(size_t bytes, double work) {
  if (bytes > budget_.bytes || work > budget_.work) return false;
  budget_.bytes -= bytes;
  budget_.work -= work;
  return true;
}

void Rewriter::release(ValueId id) {
  if (id == no_value || uses(id) > 0 || constant(id) == nullptr) return;
  budget_.bytes += constant(id)->bytes().size();
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
  for (size_t i = 0; i < places.size(); ++i) wanted[i] = makers_[i] != no_node || !uses_[i].nodes.empty() || output_uses_[i] > 0;
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
