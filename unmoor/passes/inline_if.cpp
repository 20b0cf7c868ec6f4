#include "unmoor/base/error.h"
#include "unmoor/passes/infer.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"

namespace unmoor {
namespace {

// Copies a branch in front of the If, under names that say where it was.
class BranchCopy {
 public:
  BranchCopy(Rewriter& r, NodeId id, const Graph& branch, const std::string& key)
      : r_(r), id_(id), branch_(branch), places_(branch.values().size(), no_value) {
    const Node& node = r.node(id);
    prefix_ = cat(node.origin.name.empty() ? node.name : node.origin.name, "/", key, "/");
  }

  // False if the names of the copy, each with the prefix, would take more than may still be made: then the If stays.
  bool is_affordable() const {
    size_t names = 3 * branch_.nodes().size() + 2 * branch_.values().size();
    for (const Node& node : branch_.nodes()) names += node.origin.also.size();
    return r_.spend(names * prefix_.size(), static_cast<double>(names));
  }

  // The first node of the copy; no_node if the branch has none.
  NodeId run() {
    const Node& node = r_.node(id_);
    for (size_t i = 0; i < branch_.inputs().size(); ++i) places_[Graph::index(branch_.inputs()[i])] = node.inputs[i + 1];
    NodeId first = no_node;
    for (const Node& inner : branch_.nodes()) {
      const NodeId added = r_.insert_before(id_, copy(inner));
      if (first == no_node) first = added;
    }
    return first;
  }

  ValueId place(ValueId inner) {
    if (inner == no_value) return no_value;
    ValueId& at = places_[Graph::index(inner)];
    if (at == no_value) {
      Value value = branch_.value(inner);
      value.name = cat(prefix_, value.name);
      if (!value.origin.name.empty()) value.origin.name = cat(prefix_, value.origin.name);
      at = r_.add_value(std::move(value));
    }
    return at;
  }

 private:
  Node copy(const Node& inner) {
    Node node = inner;
    node.name = cat(prefix_, node.name);
    if (!node.origin.name.empty()) node.origin.name = cat(prefix_, node.origin.name);
    for (std::string& name : node.origin.also) name = cat(prefix_, name);
    for (ValueId& id : node.inputs) id = place(id);
    for (ValueId& id : node.outputs) id = place(id);
    return node;
  }

  Rewriter& r_;
  NodeId id_;
  const Graph& branch_;
  std::vector<ValueId> places_;
  std::string prefix_;
};

}  // namespace

std::optional<NodeId> inline_if(Rewriter& r, NodeId id) {
  const Node node = r.node(id);
  if (node.op != "If" || node.inputs.empty()) return std::nullopt;
  const auto condition = scalar_of(r, node.inputs[0]);
  if (!condition) return std::nullopt;
  const std::string key = *condition != 0 ? "then_branch" : "else_branch";
  const auto found = node.attributes.find(key);
  const auto* held = found == node.attributes.end() ? nullptr : std::get_if<SubGraph>(&found->second);
  if (held == nullptr || *held == nullptr || (*held)->inputs().size() + 1 != node.inputs.size() ||
      (*held)->outputs().size() < node.outputs.size()) {
    return std::nullopt;
  }
  const SubGraph branch = *held;
  const NodeId after = r.next(id);
  const size_t outside = r.graph().values().size();
  BranchCopy copy(r, id, *branch, key);
  if (!copy.is_affordable()) return std::nullopt;
  const NodeId first = copy.run();
  r.remove(id);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == no_value) continue;
    const ValueId made = copy.place(branch->outputs()[i]);
    r.replace_value(node.outputs[i], made);
    if (r.maker(made) == no_node || Graph::index(made) < outside) continue;
    // The value takes the name that it has outside, where its users know it.
    r.mutable_value(made).name = r.value(node.outputs[i]).name;
    r.mutable_value(made).origin = r.value(node.outputs[i]).origin;
  }
  return first == no_node ? after : first;
}

bool inline_constant_if(Rewriter& r) {
  bool changed = false;
  for (NodeId id = r.first(); id != no_node;) {
    const auto inlined = inline_if(r, id);
    changed |= inlined.has_value();
    id = inlined ? *inlined : r.next(id);
  }
  return changed;
}

}  // namespace unmoor
