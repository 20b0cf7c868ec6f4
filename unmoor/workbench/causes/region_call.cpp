#include "unmoor/workbench/causes/region_call.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {

RegionCall region_call(const Region& region) {
  if (region.nodes.size() != 1) fail(ErrorKind::InvalidArgument, "the value stands for ", region.nodes.size(), " nodes, not one");
  const Node& node = region.graph->node(region.nodes[0]);
  std::vector<Data> recorded;
  for (const ValueId id : node.inputs) {
    const auto given = std::ranges::find(region.given, id, &std::pair<ValueId, Data>::first);
    if (id == no_value)
      recorded.emplace_back();
    else if (given != region.given.end())
      recorded.push_back(given->second);
    else
      recorded.push_back(region.graph->value(id).constant.value_or(Data()));
  }
  std::vector<Data> inputs;
  for (const Data& each : recorded) inputs.push_back(in_float64(each));
  OpCall call = call_on(node, inputs);
  // What is seen of tensors stays where `inputs` has them: copies share their storage, and vectors move without moving elements.
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == no_value || !region.graph->value(id).constant) call.constants[i] = nullptr;
  }
  return {&node, std::move(recorded), std::move(inputs), std::move(call)};
}

}  // namespace unmoor
