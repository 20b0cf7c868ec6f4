#include "unmoor/workbench/causes/evaluate.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/compose.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::causes {
namespace {

constexpr size_t deepest = 6;  // Expansions inside of expansions.

bool is_narrow(const Data& data) {
  if (!data.is_tensor()) return false;
  const DType dtype = data.tensor().dtype();
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

bool is_wide(const Data& data) { return data.is_tensor() && data.tensor().dtype() == DType::F64; }

}  // namespace

std::vector<Data> widened(const Node& node, std::span<const Data> inputs) {
  std::vector<Data> wide(inputs.begin(), inputs.end());
  if (node.op == "BitCast") return wide;
  for (Data& data : wide) {
    if (is_narrow(data)) data = as_float64(data.tensor());
  }
  return wide;
}

Evaluator::Evaluator(Arithmetic arithmetic, uint64_t seed)
    : sampler_(NoiseOptions{DType::F32, 1, seed, arithmetic.steps, arithmetic.sums}) {}

std::optional<Graph> expansion_of(const OpCall& call) {
  const Op* const op = all_ops().find(call.node.op);
  if (op == nullptr || !op->expand) return std::nullopt;
  try {
    return expanded(call);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return std::nullopt;
  }
}

std::vector<Data> Evaluator::run(const Node& node, std::span<const Data> inputs, const Patch* patch) {
  path_.clear();
  return run_at(node, inputs, patch, 0);
}

void Evaluator::visit_inside(const Node& node, std::span<const Data> inputs, const Visit& visit) {
  path_.clear();
  const OpCall call = call_on(node, inputs);
  const auto graph = expansion_of(call);
  if (!graph) return;
  visit_ = &visit;
  run_graph(*graph, nullptr, 1);
  visit_ = nullptr;
}

std::vector<Data> Evaluator::run_at(const Node& node, std::span<const Data> inputs, const Patch* patch, size_t depth) {
  check_stop();
  if (patch != nullptr && patch->path.size() == depth) return run_changed(*patch->change, depth);
  const OpCall call = call_on(node, inputs);
  const bool inside = patch != nullptr || visit_ != nullptr;
  if (inside && depth < deepest) {
    if (const auto graph = expansion_of(call)) return run_graph(*graph, patch, depth + 1);
  }
  return sampler_ ? run_noisy(node, inputs) : run_plain(call, inputs);
}

std::vector<Data> Evaluator::run_changed(const Change& change, size_t depth) {
  std::vector<Data> outputs;
  if (change.compute) {
    outputs = change.compute();
  } else if (change.graph) {
    outputs = run_graph(*change.graph, nullptr, depth + 1);
  } else {
    outputs = run_at(change.node, change.inputs, nullptr, depth);
  }
  for (Data& data : outputs) {
    if (!is_wide(data)) continue;
    if (change.finish) {
      std::vector<double> values = doubles(data.tensor());
      change.finish(values);
      Tensor result(data.tensor().type());
      store(result, values);
      data = result;
    }
    if (change.shape && data.tensor().elements() == static_cast<size_t>(change.shape->elements())) {
      data = data.tensor().reshaped(*change.shape);
    }
  }
  return outputs;
}

// Outputs by the names that `expanded` gives them: "output_2" is the third; others stay empty.
std::vector<Data> Evaluator::run_graph(const Graph& graph, const Patch* patch, size_t depth) {
  std::vector<Data> values(graph.values().size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.values()[i].constant) values[i] = *graph.values()[i].constant;
  }
  const auto at = [&values](ValueId id) { return id == no_value ? Data() : values[Graph::index(id)]; };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    std::vector<Data> in;
    for (const ValueId id : node.inputs) in.push_back(at(id));
    path_.push_back(i);
    if (visit_ != nullptr) (*visit_)(call_on(node, in), in, path_);
    const bool leads = patch != nullptr && patch->path.at(depth - 1) == i;
    const auto made = run_at(node, in, leads ? patch : nullptr, depth);
    path_.pop_back();
    for (size_t k = 0; k < made.size() && k < node.outputs.size(); ++k) {
      if (node.outputs[k] != no_value) values[Graph::index(node.outputs[k])] = made[k];
    }
  }
  std::vector<Data> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const size_t place = std::stoul(graph.output_names().at(i).substr(std::string_view("output_").size()));
    if (place >= outputs.size()) outputs.resize(place + 1);
    outputs[place] = at(graph.outputs()[i]);
  }
  return outputs;
}

std::vector<Data> Evaluator::run_plain(const OpCall& call, std::span<const Data> inputs) {
  Outputs out(call.node.outputs.size());
  run_reference(call, inputs, out);
  return std::move(out.all());
}

// One noisy run. Its inputs count as exact, whatever noise made them.
std::vector<Data> Evaluator::run_noisy(const Node& node, std::span<const Data> inputs) {
  std::vector<Sampled> in;
  for (const Data& data : inputs) in.push_back({data});
  std::vector<Sampled> out;
  try {
    out = sampler_->run(node, in);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    for (Data& data : run_plain(call_on(node, inputs), inputs)) out.push_back({std::move(data)});
    for (Sampled& each : out) sampler_->round(each);
  }
  std::vector<Data> outputs;
  for (const Sampled& each : out) {
    if (each && !each.copy(0)) fail(ErrorKind::InvalidArgument, "noise takes ", node.op, " to another shape");
    outputs.push_back(each.copy(0));
  }
  return outputs;
}

}  // namespace unmoor::causes
