#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/graph/graph.h"

namespace unmoor {

constexpr NodeId no_node{0xffffffffU};

// What may still be computed ahead of time: bytes of results, and work in floating-point operations and bytes touched.
struct Budget {
  size_t bytes = 0;
  double work = 0;
};

// A graph while passes change it: nodes in a list that allows removing and inserting, with makers and users of every value kept up to date.
// One thread at a time. Constants are shared with the graph it was made from.
class Rewriter {
 public:
  explicit Rewriter(const Graph& graph);
  // The graph as it stands now, without the values that nothing makes or uses. Leaves the rewriter empty.
  Graph finish();

  // Walks: for (NodeId id = r.first(); id != no_node; id = r.next(id)). The current node may be removed on the way.
  NodeId first() const { return alive_from(first_); }
  NodeId next(NodeId id) const { return alive_from(links_[index(id)].next); }
  std::vector<NodeId> nodes() const;  // In order.
  bool is_alive(NodeId id) const { return links_[index(id)].alive; }

  const Graph& graph() const { return graph_; }  // Values are up to date; its nodes are those of any time, its outputs those of the start.
  const Node& node(NodeId id) const { return graph_.node(id); }
  const Value& value(ValueId id) const { return graph_.value(id); }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  NodeId maker(ValueId id) const { return id == no_value ? no_node : makers_[Graph::index(id)]; }
  // The node of this operator that makes the value, or null.
  const Node* made_by(ValueId id, std::string_view op) const;
  const std::vector<NodeId>& users(ValueId id) const { return uses_[Graph::index(id)].nodes; }  // Once a use, in no order.
  size_t uses(ValueId id) const { return id == no_value ? 0 : users(id).size() + output_uses_[Graph::index(id)]; }
  bool is_output(ValueId id) const { return id != no_value && output_uses_[Graph::index(id)] > 0; }
  // The one node that uses the value; no_node if there are more, or none, or it is a graph output.
  NodeId only_user(ValueId id) const;
  const Tensor* constant(ValueId id) const { return graph_.constant_tensor(id); }
  // The value's type if it is a tensor, else null.
  const TensorType* tensor_type(ValueId id) const;
  // Its shape if it is a tensor of known shape, else null.
  const Shape* known_shape(ValueId id) const;

  ValueId add_constant(std::string name, Tensor tensor);
  ValueId add_value(Value value);
  void set_type(ValueId id, Type type) { graph_.set_type(id, std::move(type)); }
  Value& mutable_value(ValueId id) { return graph_.mutable_value(id); }
  // Makes the value a constant; the node that made it must go.
  void set_constant(ValueId id, Data data);
  NodeId insert_before(NodeId place, Node node);
  void replace(NodeId id, Node node);  // Keeps the place.
  void remove(NodeId id);
  // Every use of `from`, graph outputs too, becomes a use of `to`.
  void replace_value(ValueId from, ValueId to);
  // Takes from the budget, or says that it is not enough. In all it is a few times the constants that the graph came with, so that no
  // chain of nodes can blow up, nor many small ones take for ever.
  bool spend(size_t bytes, double work = 0);
  Budget& budget() { return budget_; }
  // Lets go of a constant's data if nothing uses it any more; its bytes may be spent again.
  void release(ValueId id);
  // Removes nodes that nothing uses. True if there were any.
  bool remove_dead();

 private:
  struct Link {
    NodeId previous = no_node;
    NodeId next = no_node;
    bool alive = true;
    std::vector<size_t> places;  // By input: where this use stands in the value's list.
  };
  // Who uses a value: the nodes, and at which of their inputs.
  struct Uses {
    std::vector<NodeId> nodes;
    std::vector<size_t> inputs;
  };
  static size_t index(NodeId id) { return static_cast<size_t>(id); }
  NodeId alive_from(NodeId id) const;
  void add_uses(NodeId id);
  void add_use(ValueId used, NodeId user, size_t input);
  void drop_uses(NodeId id);
  void drop_use(ValueId used, NodeId user, size_t input);
  void grow();

  Graph graph_;
  std::vector<Link> links_;
  NodeId first_ = no_node;
  NodeId last_ = no_node;
  std::vector<NodeId> makers_;
  std::vector<Uses> uses_;
  std::vector<uint32_t> output_uses_;
  std::vector<ValueId> outputs_;
  Budget budget_{size_t{1} << 26, 1e10};
};

// The origin of a node that stands for `last`, which gives its output, and for others.
Origin joined_origin(const Rewriter& r, NodeId last, const std::vector<NodeId>& others);

}  // namespace unmoor
