#include "unmoor/workbench/noise/model_noise.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/passes/pass.h"
#include "unmoor/workbench/noise/exact_memo.h"

namespace unmoor {
namespace {

// Attributes and types as for a run in float64; large constants stay as the file has them, to be widened one at a time.
Graph prepared(const Graph& model, const NamedData& inputs, ModelGraph::Form form) {
  const PassOptions passes{.fuse = form == ModelGraph::Form::Raised};
  InputShapes shapes;
  for (const ValueId id : model.inputs()) {
    const auto found = inputs.find(model.value(id).name);
    const bool is_tensor = std::holds_alternative<TensorType>(model.value(id).type);
    if (found != inputs.end() && found->second.is_tensor() && is_tensor) shapes[found->first] = found->second.tensor().shape();
  }
  Graph graph = optimized(with_shapes(preoptimized(model, passes), shapes), passes);
  std::map<size_t, Data> large;
  constexpr size_t small_bytes = 4096;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    auto& constant = graph.mutable_value(ValueId{static_cast<uint32_t>(i)}).constant;
    if (!constant || !constant->is_tensor() || constant->tensor().bytes().size() <= small_bytes) continue;
    large[i] = *constant;
    constant.reset();
  }
  Graph wide = widened(graph);
  for (auto& [i, data] : large) wide.mutable_value(ValueId{static_cast<uint32_t>(i)}).constant = std::move(data);
  return wide;
}

}  // namespace

ModelGraph::ModelGraph(const Graph& model, const NamedData& inputs, Form form)
    : graph_(prepared(model, inputs, form)), makers_(graph_.values().size()) {
  for (size_t i = 0; i < graph_.values().size(); ++i) {
    const Value& value = graph_.values()[i];
    const std::string& name = value.origin.name.empty() ? value.name : value.origin.name;
    if (!value.constant) names_.try_emplace(name, ValueId{static_cast<uint32_t>(i)});
  }
  for (size_t i = 0; i < graph_.outputs().size(); ++i) names_.try_emplace(graph_.output_names()[i], graph_.outputs()[i]);
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    for (const ValueId id : graph_.nodes()[i].outputs) {
      if (id != no_value) makers_[Graph::index(id)] = NodeId{static_cast<uint32_t>(i)};
    }
  }
}

std::optional<ValueId> ModelGraph::find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

const std::string& ModelGraph::name_of(ValueId value) const {
  const Value& found = graph_.value(value);
  return found.origin.name.empty() ? found.name : found.origin.name;
}

std::set<std::string> ModelGraph::visible_above(ValueId value, const std::set<std::string>& visible) const {
  std::set<std::string> found;
  std::set<size_t> seen;
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const auto maker = makers_[Graph::index(id)];
    if (graph_.value(id).constant || !seen.insert(Graph::index(id)).second) continue;
    if (id != value && (!maker || visible.contains(name_of(id)))) {
      found.insert(name_of(id));
    } else if (maker) {
      for (const ValueId input : graph_.node(*maker).inputs) {
        if (input != no_value) open.push_back(input);
      }
    }
  }
  return found;
}

Region ModelGraph::last_nodes(ValueId value) const {
  constexpr int depth = 4;
  std::set<size_t> nodes;
  std::vector<ValueId> level{value};
  for (int step = 0; step < depth; ++step) {
    std::vector<ValueId> next;
    for (const ValueId id : level) {
      const auto maker = makers_[Graph::index(id)];
      if (!maker || !nodes.insert(static_cast<size_t>(*maker)).second) continue;
      for (const ValueId input : graph_.node(*maker).inputs) {
        if (input != no_value) next.push_back(input);
      }
    }
    level = std::move(next);
  }
  Region region{&graph_, {}, {}, {value}};
  for (const size_t node : nodes) region.nodes.push_back(NodeId{static_cast<uint32_t>(node)});
  return region;
}

std::optional<Region> ModelGraph::region(const std::vector<std::string>& wanted, const NamedData& given) const {
  Region region{&graph_, {}, {}, {}};
  std::set<size_t> known;
  for (const auto& [name, data] : given) {
    const auto id = find(name);
    if (!id) return std::nullopt;
    if (known.insert(Graph::index(*id)).second) region.given.emplace_back(*id, data);
  }
  std::set<size_t> nodes;
  std::vector<ValueId> open;
  for (const std::string& name : wanted) {
    const auto id = find(name);
    if (!id || known.contains(Graph::index(*id))) return std::nullopt;
    region.wanted.push_back(*id);
    open.push_back(*id);
  }
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (known.contains(Graph::index(id)) || graph_.value(id).constant) continue;
    const auto maker = makers_[Graph::index(id)];
    if (!maker) return std::nullopt;  // An input of the model that the target did not need.
    if (!nodes.insert(static_cast<size_t>(*maker)).second) continue;
    for (const ValueId input : graph_.node(*maker).inputs) {
      if (input != no_value) open.push_back(input);
    }
  }
  for (const size_t node : nodes) region.nodes.push_back(NodeId{static_cast<uint32_t>(node)});
  return region;
}

WholeModelNoise::WholeModelNoise(const ModelGraph& graph, const NamedData& inputs,
                                 const std::map<std::string, DType, std::less<>>& shown, NoiseOptions options,
                                 const std::map<std::string, DType, std::less<>>& stored)
    : model_(graph), sampler_(options), values_(graph.graph().values().size()), uses_(use_counts(graph.graph())) {
  for (const auto& [name, dtype] : shown) {
    const auto id = model_.find(name);
    if (!id) continue;
    ++uses_[Graph::index(*id)];
    stored_[Graph::index(*id)] = dtype;
  }
  for (const auto& [name, dtype] : stored) {
    if (const auto id = model_.find(name)) stored_.try_emplace(Graph::index(*id), dtype);
  }
  for (const ValueId id : graph.graph().inputs()) {
    const auto found = inputs.find(graph.graph().value(id).name);
    if (found != inputs.end()) values_[Graph::index(id)].exact = in_float64(found->second);
  }
}

void WholeModelNoise::drop(ValueId id) {
  auto& uses = uses_[Graph::index(id)];
  if (uses > 0 && --uses == 0) values_[Graph::index(id)] = {};
}

void WholeModelNoise::put(ValueId id, Sampled value) {
  const auto stored = stored_.find(Graph::index(id));
  if (stored != stored_.end()) sampler_.store(value, stored->second);
  if (uses_[Graph::index(id)] > 0) values_[Graph::index(id)] = std::move(value);
}

void WholeModelNoise::run_next() {
  const Node& node = model_.graph().nodes()[next_++];
  std::vector<Sampled> in;
  bool known = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == no_value) {
      in.emplace_back();
    } else if (const auto& constant = model_.graph().value(id).constant) {
      in.push_back({constant_of(node, i, *constant)});
    } else {
      in.push_back(values_[Graph::index(id)]);
      known = known && static_cast<bool>(in.back());
    }
  }
  if (known) {
    try {
      std::vector<Sampled> out = sampler_.run(node, in);
      for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
        if (node.outputs[i] != no_value) put(node.outputs[i], std::move(out[i]));
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      if (unknown_.empty()) unknown_ = node.op;
    }
  }
  for (const ValueId id : node.inputs) {
    if (id != no_value && !model_.graph().value(id).constant) drop(id);
  }
}

std::optional<Sampled> WholeModelNoise::take(std::string_view name) {
  const auto id = model_.find(name);
  if (!id) return std::nullopt;
  const auto maker = model_.maker(*id);
  while (maker && next_ <= static_cast<size_t>(*maker)) run_next();
  Sampled value = values_[Graph::index(*id)];
  drop(*id);
  return value ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace unmoor
