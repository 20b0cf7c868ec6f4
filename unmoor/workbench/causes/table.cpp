#include "unmoor/workbench/causes/table.h"

#include <algorithm>
#include <cmath>

#include "unmoor/ops/builder.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::causes {

const std::vector<Entry>& all_entries() {
  static const std::vector<Entry> table = [] {
    std::vector<Entry> entries;
    add_activation_causes(entries);
    add_norm_causes(entries);
    add_softmax_causes(entries);
    add_operand_causes(entries);
    add_mask_causes(entries);
    add_value_causes(entries);
    add_window_causes(entries);
    add_weight_causes(entries);
    add_recurrent_causes(entries);
    add_rotary_causes(entries);
    add_quantise_causes(entries);
    add_format_causes(entries);
    return entries;
  }();
  return table;
}

bool applies_to(const Entry& entry, std::string_view op) {
  return entry.ops.empty() || std::ranges::find(entry.ops, op) != entry.ops.end();
}

Change unchanged(const Situation& at) {
  Change change;
  change.node = at.call.node;
  change.inputs.assign(at.inputs.begin(), at.inputs.end());
  return change;
}

Change with_attribute(const Situation& at, std::string key, Attribute value, std::string detail) {
  Change change = unchanged(at);
  change.node.attributes.insert_or_assign(std::move(key), std::move(value));
  change.detail = std::move(detail);
  return change;
}

Change with_input(const Situation& at, size_t i, Data data, std::string detail) {
  Change change = unchanged(at);
  change.inputs.at(i) = std::move(data);
  change.detail = std::move(detail);
  return change;
}

Change with_result(const Situation& at, std::function<void(std::span<double>)> finish, std::string detail) {
  Change change = unchanged(at);
  change.finish = std::move(finish);
  change.detail = std::move(detail);
  return change;
}

Tensor mapped(const Tensor& tensor, const std::function<double(double)>& rule) {
  Tensor result(tensor.type());
  std::vector<double> values = doubles(tensor);
  for (double& value : values) value = rule(value);
  store(result, values);
  return result;
}

Tensor filled(const Tensor& like, double value) {
  return mapped(like, [value](double) { return value; });
}

std::optional<double> only_element(const Tensor& tensor) {
  if (tensor.elements() != 1) return std::nullopt;
  return doubles(tensor)[0];
}

double greatest_magnitude(const Tensor& tensor) {
  double most = 0;
  for (const double value : doubles(tensor)) most = std::max(most, std::fabs(value));
  return most;
}

const Node* Copied::producer(ValueId value) const {
  for (const Node& each : original.nodes()) {
    if (std::ranges::find(each.outputs, value) != each.outputs.end()) return &each;
  }
  return nullptr;
}

std::optional<Change> with_edit(const Situation& at, const std::function<std::optional<ValueId>(const Copied&)>& edit,
                                std::string detail) {
  const auto original = expansion_of(at.call);
  if (!original) return std::nullopt;
  Graph copy;
  GraphBuilder builder(copy, at.call, {});
  std::vector<ValueId> places(original->values().size(), no_value);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& constant = original->values()[i].constant;
    if (constant && constant->is_tensor()) places[i] = builder.constant(constant->tensor());
  }
  const std::function<ValueId(ValueId)> copy_of = [&places](ValueId id) {
    return id == no_value ? no_value : places[Graph::index(id)];
  };
  bool edited = false;
  for (const Node& node : original->nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(copy_of(id));
    if (const auto instead = edit({builder, *original, node, inputs, copy_of})) {
      places[Graph::index(node.outputs.at(0))] = *instead;
      edited = true;
      continue;
    }
    const auto made = builder.add_many(node.op, inputs, node.attributes, node.outputs.size());
    for (size_t i = 0; i < made.size(); ++i) {
      if (node.outputs[i] != no_value) places[Graph::index(node.outputs[i])] = made[i];
    }
  }
  if (!edited) return std::nullopt;
  for (size_t i = 0; i < original->outputs().size(); ++i)
    copy.mark_output(copy_of(original->outputs()[i]), original->output_names()[i]);
  Change change = unchanged(at);
  change.graph = std::move(copy);
  change.detail = std::move(detail);
  return change;
}

}  // namespace unmoor::causes
