#include "unmoor/passes/keep_float32.h"

#include <algorithm>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/passes/in_float32.h"
#include "unmoor/passes/rewrite.h"

namespace unmoor {
namespace {

bool is_narrow(const Type& type) {
  const auto* const tensor = std::get_if<TensorType>(&type);
  return tensor != nullptr && (tensor->dtype == DType::F16 || tensor->dtype == DType::BF16);
}

bool has_graph(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const auto& each) {
    return std::holds_alternative<SubGraph>(each.second) || std::holds_alternative<std::vector<SubGraph>>(each.second);
  });
}

// The call in float32 if that changes nothing but the dtype of 16-bit tensors.
std::shared_ptr<const Float32Call> float32_form(const OpCall& call) {
  if (has_graph(call.node)) return nullptr;
  const auto is_tensor = [](const Type& type) { return std::holds_alternative<TensorType>(type); };
  if (!std::ranges::all_of(call.outputs, is_tensor)) return nullptr;
  auto form = in_float32(call);
  if (form == nullptr || !std::ranges::all_of(form->call.outputs, is_tensor)) return nullptr;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const DType wanted = is_narrow(call.outputs[i]) ? DType::F32 : call.output(i).dtype;
    if (form->call.output(i).dtype != wanted) return nullptr;
  }
  return form;
}

class Keeper {
 public:
  Keeper(const Graph& graph, const NodeNames& names) : names_(names), r_(graph) {}

  KeptFloat32 run() {
    for (const NodeId id : r_.nodes()) visit(id);
    r_.remove_dead();
    result_.graph = r_.finish();
    return std::move(result_);
  }

 private:
  bool is_named(const Node& node) const {
    return names_.contains(node.origin.name) ||
           std::ranges::any_of(node.origin.also, [this](const std::string& name) { return names_.contains(name); });
  }
  bool is_wide(ValueId id) const { return id != no_value && wide_.contains(Graph::index(id)); }

  void visit(NodeId id) {
    const Node node = r_.node(id);
    const bool named = is_named(node);
    const bool follows = std::ranges::any_of(node.inputs, [this](ValueId input) { return is_wide(input); });
    if (!named && !follows) return;
    const OpCall call = call_for(r_.graph(), node);
    const bool narrow = std::ranges::any_of(call.outputs, is_narrow);
    if (named && !narrow) leave(node, "its results are not of 16 bits");
    const bool keep = narrow && (named || lays_out(node));
    if (node.op == "Cast") {
      cast(id, keep);
    } else if (const auto form = float32_form(call)) {
      widen(id, *form, keep);
    } else if (keep) {
      leave(node, has_graph(node) ? "it is control flow" : cat(node.op, " has no form in float32 that means the same"));
      return;
    }
    if (keep) add_names(node);
  }

  // Only brings a kept value into another layout: it stays the same value of the file.
  bool lays_out(const Node& node) const {
    if (!node.origin.name.empty() || node.outputs.size() != 1 || !is_wide(node.inputs[0])) return false;
    const std::string& name = r_.value(wide_.at(Graph::index(node.inputs[0]))).origin.name;
    return !name.empty() && name == r_.value(node.outputs[0]).origin.name;
  }

  void add_names(const Node& node) {
    if (!node.origin.name.empty()) result_.nodes.insert(node.origin.name);
    result_.nodes.insert(node.origin.also.begin(), node.origin.also.end());
  }

  void leave(const Node& node, std::string reason) {
    for (const std::string& name : names_) {
      const bool here = node.origin.name == name || std::ranges::find(node.origin.also, name) != node.origin.also.end();
      if (here) result_.left.push_back({name, reason});
    }
  }

  // A Cast reads the float32 value where there is one; a kept one gives one.
  void cast(NodeId id, bool keep) {
    Node node = r_.node(id);
    if (is_wide(node.inputs[0])) node.inputs[0] = wide_.at(Graph::index(node.inputs[0]));
    if (!keep) return r_.replace(id, std::move(node));
    const ValueId output = node.outputs[0];
    node.attributes["to"] = onnx_number(DType::F32);
    node.outputs[0] = named_float32(output);
    r_.insert_before(id, node);
    r_.replace(id, cast_node(node, node.outputs[0], output));
  }

  void widen(NodeId id, const Float32Call& form, bool keep) {
    Node node = r_.node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != no_value && is_narrow(r_.value(node.inputs[i]).type)) node.inputs[i] = float32_input(id, form, i);
    }
    std::vector<std::pair<ValueId, ValueId>> casts;  // From the float32 value to the file's.
    for (ValueId& output : node.outputs) {
      if (output == no_value || !is_narrow(r_.value(output).type)) continue;
      const ValueId made = keep ? named_float32(output) : inner_float32(output);
      casts.emplace_back(made, output);
      output = made;
    }
    if (casts.empty()) return r_.replace(id, std::move(node));
    const Node place = node;
    r_.insert_before(id, std::move(node));
    for (size_t i = 0; i + 1 < casts.size(); ++i) r_.insert_before(id, cast_node(place, casts[i].first, casts[i].second));
    r_.replace(id, cast_node(place, casts.back().first, casts.back().second));
  }

  ValueId float32_input(NodeId id, const Float32Call& form, size_t i) {
    const ValueId narrow = r_.node(id).inputs[i];
    if (is_wide(narrow)) return wide_.at(Graph::index(narrow));
    const auto found = converted_.find(Graph::index(narrow));
    if (found != converted_.end()) return found->second;
    ValueId made{};
    if (form.call.constant(i) != nullptr && r_.value(narrow).constant) {
      made = r_.add_constant(cat(r_.value(narrow).name, "/float32"), form.constants[i]);
    } else {
      const Node place = r_.node(id);
      made = inner_float32(narrow);
      r_.insert_before(id, cast_node(place, narrow, made));
    }
    converted_[Graph::index(narrow)] = made;
    return made;
  }

  // A value of the same shape in float32 that the file does not have.
  ValueId inner_float32(ValueId narrow) {
    const Value& from = r_.value(narrow);
    Value value;
    value.name = cat(from.name, "/float32_", ++values_);
    value.type = TensorType{DType::F32, std::get<TensorType>(from.type).shape};
    return r_.add_value(std::move(value));
  }

  // The file's value in float32: it takes the name, and the one of 16 bits is no longer the file's.
  ValueId named_float32(ValueId narrow) {
    const ValueId made = inner_float32(narrow);
    std::swap(r_.mutable_value(made).name, r_.mutable_value(narrow).name);
    std::swap(r_.mutable_value(made).origin, r_.mutable_value(narrow).origin);
    wide_[Graph::index(narrow)] = made;
    return made;
  }

  // To the type that `to` has.
  Node cast_node(const Node& place, ValueId from, ValueId to) {
    Node node;
    node.name = cat(place.name, "/cast_", ++casts_);
    node.op = "Cast";
    node.inputs = {from};
    node.outputs = {to};
    node.attributes["to"] = onnx_number(std::get<TensorType>(r_.value(to).type).dtype);
    node.origin = place.origin;
    return node;
  }

  const NodeNames& names_;
  Rewriter r_;
  std::map<size_t, ValueId> wide_;       // By the 16-bit value: what a kept node gives.
  std::map<size_t, ValueId> converted_;  // By the 16-bit value: the same number in float32.
  size_t values_ = 0;
  size_t casts_ = 0;
  KeptFloat32 result_;
};

}  // namespace

KeptFloat32 keep_float32(const Graph& graph, const NodeNames& names) { return Keeper(graph, names).run(); }

}  // namespace unmoor
