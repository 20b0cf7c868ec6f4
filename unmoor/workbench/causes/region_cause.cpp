#include "unmoor/workbench/causes/region_cause.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {
namespace {

// The node's inputs, floats in float64: constants of the graph, and what was given.
std::vector<Data> inputs_of(const Region& region, const Node& node) {
  std::vector<Data> inputs;
  for (const ValueId id : node.inputs) {
    const auto given = std::ranges::find(region.given, id, &std::pair<ValueId, Data>::first);
    if (id == no_value) {
      inputs.emplace_back();
    } else if (given != region.given.end()) {
      inputs.push_back(in_float64(given->second));
    } else {
      const auto& constant = region.graph->value(id).constant;
      inputs.push_back(constant ? in_float64(*constant) : Data());
    }
  }
  return inputs;
}

// The call with the types that its inputs really have, and the graph's constants.
OpCall call_of(const Region& region, const Node& node, std::span<const Data> inputs) {
  OpCall call = call_for(*region.graph, node);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    call.inputs[i] = type_of(inputs[i]);
    if (call.constants[i] != nullptr) call.constants[i] = &inputs[i].tensor();
  }
  call.outputs = infer_outputs(call);
  return call;
}

}  // namespace

std::optional<Cause> region_cause(const Region& region, size_t output, const Data& exact, const Data& found) {
  if (region.nodes.size() != 1 || !exact.is_tensor() || !found.is_tensor() || !is_float(exact.tensor().dtype()))
    return std::nullopt;
  const Node& node = region.graph->node(region.nodes[0]);
  const auto place = std::ranges::find(node.outputs, region.wanted.at(output));
  if (place == node.outputs.end()) return std::nullopt;
  const auto at = static_cast<size_t>(place - node.outputs.begin());
  try {
    const std::vector<Data> inputs = inputs_of(region, node);
    const OpCall call = call_of(region, node, inputs);
    const Expected expected = expected_output(call, inputs, at);
    const std::vector<double> values = doubles(exact.tensor());
    if (expected.spread.size() != values.size()) return std::nullopt;
    return find_cause({call, inputs, at, found.tensor(), values, expected.spread, found.tensor().dtype()});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw;
    return std::nullopt;
  }
}

}  // namespace unmoor
