#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unmoor/ops/op.h"
#include "unmoor/workbench/scan.h"
#include "unmoor/workbench/scan_nodes.h"

namespace unmoor {
namespace {

double bytes_of_value(const Value& value) {
  const auto* tensor = std::get_if<TensorType>(&value.type);
  return tensor != nullptr && tensor->is_known() ? static_cast<double>(tensor->bytes()) : 0;
}

// Weights are constants of any type but int64 and bool, which are shapes, axes and masks, and text.
void add_parameters(const Graph& graph, ModelFacts& facts) {
  for (const Value& value : graph.values()) {
    if (!value.constant || !value.constant->is_tensor()) continue;
    const Tensor& tensor = value.constant->tensor();
    if (tensor.dtype() == DType::I64 || tensor.dtype() == DType::Bool || tensor.dtype() == DType::String) continue;
    facts.parameters += static_cast<double>(tensor.elements());
    facts.parameter_bytes += static_cast<double>(bytes_of(tensor.dtype(), tensor.elements()));
  }
  for (const Node& node : graph.nodes()) {
    for (const auto& [key, attribute] : node.attributes) {
      const auto* body = std::get_if<SubGraph>(&attribute);
      if (body != nullptr && *body != nullptr) add_parameters(**body, facts);
    }
  }
}

double moved_bytes(const Graph& typed) {
  double bytes = 0;
  for (const Node& node : typed.nodes()) {
    for (const auto& ids : {node.inputs, node.outputs}) {
      for (const ValueId id : ids) bytes += id == no_value ? 0 : bytes_of_value(typed.value(id));
    }
  }
  return bytes;
}

// The most bytes of values that live at a time, in the order of the file; each lives from the node that makes it to its last use.
double peak_bytes(const Graph& typed) {
  std::vector<size_t> last(typed.values().size(), 0);
  const size_t count = typed.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    for (const ValueId id : typed.nodes()[i].inputs) {
      if (id != no_value) last[Graph::index(id)] = i;
    }
  }
  for (const ValueId id : typed.outputs()) last[Graph::index(id)] = count;
  double now = 0;
  for (const ValueId id : typed.inputs()) now += bytes_of_value(typed.value(id));
  double most = now;
  for (size_t i = 0; i < count; ++i) {
    const Node& node = typed.nodes()[i];
    for (const ValueId id : node.outputs) now += id == no_value ? 0 : bytes_of_value(typed.value(id));
    most = std::max(most, now);
    std::vector<ValueId> ended = node.inputs;
    ended.insert(ended.end(), node.outputs.begin(), node.outputs.end());
    std::ranges::sort(ended);
    ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
    for (const ValueId id : ended) {
      if (id != no_value && !typed.value(id).constant && last[Graph::index(id)] <= i) now -= bytes_of_value(typed.value(id));
    }
  }
  return most;
}

}  // namespace

double ModelFacts::largest_batch(double memory) const {
  if (memory <= parameter_bytes || activation_bytes <= 0) return 0;
  return std::floor((memory - parameter_bytes) / activation_bytes * batch);
}

ModelFacts model_facts(const Graph& file, const Graph& typed, const FileNodes& nodes) {
  ModelFacts facts;
  add_parameters(file, facts);
  facts.flop = nodes.total_flop();
  facts.moved_bytes = moved_bytes(typed);
  facts.activation_bytes = peak_bytes(typed);
  for (const FileNode& node : nodes.all()) {
    for (const ValueId id : node.node->outputs) {
      if (id == no_value) continue;
      const Value& value = nodes.typed_value(node, id);
      const auto* tensor = std::get_if<TensorType>(&value.type);
      if (tensor != nullptr) ++facts.dtypes[std::string(name(tensor->dtype))];
      if (tensor != nullptr && node.typed != nullptr && !tensor->is_known()) ++facts.data_dependent;
      break;
    }
  }
  for (const ValueId id : file.inputs()) {
    const auto* tensor = std::get_if<TensorType>(&file.value(id).type);
    if (tensor == nullptr || !tensor->shape.has_rank()) continue;
    for (size_t axis = 0; axis < tensor->shape.rank(); ++axis) {
      if (tensor->shape[axis] < 0)
        facts.dynamic_inputs.push_back(fmt::format("{}[{}] {}", file.value(id).name, axis, tensor->shape.symbol(axis)));
    }
  }
  if (!typed.inputs().empty()) {
    const auto* tensor = std::get_if<TensorType>(&typed.value(typed.inputs()[0]).type);
    if (tensor != nullptr && tensor->is_known() && tensor->shape.rank() > 0 && tensor->shape[0] > 0)
      facts.batch = static_cast<double>(tensor->shape[0]);
  }
  return facts;
}

}  // namespace unmoor
