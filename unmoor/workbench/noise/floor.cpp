#include "unmoor/workbench/noise/floor.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/passes/pass.h"
#include "unmoor/workbench/noise/exact_memo.h"

namespace unmoor {
namespace {

constexpr size_t few_elements = 1000;

// Values of a region by index, those that come from outside filled in.
std::vector<Sampled> given_values(const Region& region) {
  std::vector<Sampled> values(region.graph->values().size());
  for (const auto& [id, data] : region.given) values[Graph::index(id)].exact = in_float64(data);
  return values;
}

// The inputs of a node. Constants are widened as they are used, so that the weights of a model are not held twice.
std::vector<Sampled> inputs_of(const Graph& graph, const Node& node, const std::vector<Sampled>& values) {
  std::vector<Sampled> in;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == no_value) {
      in.emplace_back();
    } else if (const auto& constant = graph.value(id).constant) {
      in.push_back({constant_of(node, i, *constant)});
    } else {
      in.push_back(values[Graph::index(id)]);
    }
  }
  return in;
}

// Runs the region's nodes by `run(node, inputs)`, each value let go after its last use.
template <class Run>
std::vector<Sampled> run_region(const Region& region, Run&& run) {
  std::vector<Sampled> values = given_values(region);
  std::vector<uint32_t> uses(values.size());
  for (const NodeId id : region.nodes) {
    for (const ValueId input : region.graph->node(id).inputs) {
      if (input != no_value) ++uses[Graph::index(input)];
    }
  }
  for (const ValueId id : region.wanted) ++uses[Graph::index(id)];
  for (const NodeId id : region.nodes) {
    const Node& node = region.graph->node(id);
    std::vector<Sampled> out = run(node, inputs_of(*region.graph, node, values));
    for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
      if (node.outputs[i] != no_value) values[Graph::index(node.outputs[i])] = std::move(out[i]);
    }
    for (const ValueId input : node.inputs) {
      if (input != no_value && --uses[Graph::index(input)] == 0) values[Graph::index(input)] = {};
    }
  }
  std::vector<Sampled> results;
  for (const ValueId id : region.wanted) results.push_back(values[Graph::index(id)]);
  return results;
}

bool all_nodes(const Region& region, Rounding rounding) {
  return std::ranges::all_of(region.nodes, [&](NodeId id) {
    const Node& node = region.graph->node(id);
    const Op* const op = all_ops().find(node.op);
    if (op == nullptr) return false;
    if (rounding == Rounding::MoveBits && node.op == "Resize") {
      const auto mode = node.attributes.find("mode");
      return mode == node.attributes.end() || std::get<std::string>(mode->second) == "nearest";
    }
    if (rounding == Rounding::MoveBits && node.op.starts_with("Scatter")) {
      const auto reduction = node.attributes.find("reduction");
      return reduction == node.attributes.end() ||
             (std::get<std::string>(reduction->second) != "add" && std::get<std::string>(reduction->second) != "mul");
    }
    return op->rounding == rounding;
  });
}

}  // namespace

bool moves_bits(const Region& region) { return all_nodes(region, Rounding::MoveBits); }

bool quantises(const Region& region) {
  return std::ranges::any_of(region.nodes, [&](NodeId id) {
    const Op* const op = all_ops().find(region.graph->node(id).op);
    return op != nullptr && op->rounding == Rounding::Quantise;
  });
}

std::vector<Data> exact_results(const Region& region) {
  const std::vector<Sampled> made = run_region(region, [](const Node& node, const std::vector<Sampled>& in) {
    std::vector<Data> data;
    for (const Sampled& each : in) data.push_back(each.exact);
    std::vector<Sampled> out;
    for (const Data& each : exact_on(node, data)) out.push_back({in_float64(each)});
    return out;
  });
  std::vector<Data> results;
  for (const Sampled& each : made) results.push_back(each.exact);
  return results;
}

std::vector<Sampled> noise_runs(const Region& region, std::span<const DType> stored, const FloorOptions& options) {
  NoiseOptions noise{options.step, options.copies, options.seed};
  if (noise.copies == 0) {
    const bool few = std::ranges::any_of(region.wanted, [&](ValueId id) {
      const auto* const type = std::get_if<TensorType>(&region.graph->value(id).type);
      return type == nullptr || !type->shape.is_known() || static_cast<size_t>(type->shape.elements()) < few_elements;
    });
    noise.copies = few ? 8 : 4;
  }
  NoiseSampler sampler(noise);
  std::vector<Sampled> made =
      run_region(region, [&sampler](const Node& node, const std::vector<Sampled>& in) { return sampler.run(node, in); });
  if (moves_bits(region)) return made;
  for (size_t i = 0; i < made.size() && i < stored.size(); ++i) sampler.store(made[i], stored[i]);
  return made;
}

std::vector<NoiseFloor> noise_floor(const Region& region, std::span<const DType> stored, const FloorOptions& options) {
  const bool moved = moves_bits(region);
  std::vector<NoiseFloor> floors;
  for (const Sampled& made : noise_runs(region, stored, options))
    floors.push_back({made.exact, moved ? std::vector<double>() : spread_of(made)});
  return floors;
}

std::vector<NoiseFloor> noise_floor(const Node& node, std::span<const Data> in, std::span<const DType> stored,
                                    const FloorOptions& options) {
  const OpCall call = call_on(node, in);
  Graph graph;
  Node alone = node;
  Region region{nullptr, {}, {}, {}};
  for (size_t i = 0; i < alone.inputs.size(); ++i) {
    alone.inputs[i] = call.has(i) ? graph.add_input(cat("input_", i), *call.inputs[i]) : no_value;
    if (call.has(i)) region.given.emplace_back(alone.inputs[i], in[i]);
  }
  for (size_t i = 0; i < alone.outputs.size(); ++i) {
    if (alone.outputs[i] == no_value) continue;
    alone.outputs[i] = graph.add_value({cat("output_", i), call.outputs.at(i), std::nullopt, {}});
    region.wanted.push_back(alone.outputs[i]);
  }
  region.nodes.push_back(graph.add_node(std::move(alone)));
  const Graph wide = widened(graph);  // Attributes, too.
  region.graph = &wide;
  return noise_floor(region, stored, options);
}

}  // namespace unmoor
