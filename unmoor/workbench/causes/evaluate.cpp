#include "unmoor/workbench/causes/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>

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

template <size_t N>
bool is_one_of(std::string_view op, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, op) != names.end();
}

// Sums of products, and plain sums and means: a run on squared operands gives the sum of the squared terms.
bool is_sum(std::string_view op) {
  static constexpr std::array<std::string_view, 8> names{"MatMul",    "Conv",       "ConvTranspose", "Einsum",
                                                         "ReduceSum", "ReduceMean", "AveragePool",   "GlobalAveragePool"};
  return is_one_of(op, names);
}

bool is_mean(std::string_view op) { return op == "ReduceMean" || op == "AveragePool" || op == "GlobalAveragePool"; }

// Real kernels clamp these: an absolute error of one unit, too.
bool saturates(std::string_view op) {
  static constexpr std::array<std::string_view, 3> names{"Sigmoid", "Erf", "Softplus"};
  return is_one_of(op, names);
}

template <class Rule>
Data mapped(const Data& data, Rule rule) {
  Tensor result(data.tensor().type());
  std::vector<double> values = doubles(data.tensor());
  for (double& value : values) rule(value);
  store(result, values);
  return result;
}

// Terms of each sum.
double terms_of(const OpCall& call, const OpCall& given) {
  const auto outputs = std::max(1.0, static_cast<double>(std::get<TensorType>(call.outputs.at(0)).shape.elements()));
  const auto inputs = static_cast<double>(given.input(0).shape.elements());
  if (call.node.op == "AveragePool") return std::max(1.0, cost_of(call).flop / outputs);
  if (call.node.op.starts_with("Reduce") || call.node.op.starts_with("Global")) return std::max(1.0, inputs / outputs);
  return std::max(1.0, cost_of(call).flop / (2 * outputs));
}

}  // namespace

std::vector<Data> widened(std::span<const Data> inputs) {
  std::vector<Data> wide(inputs.begin(), inputs.end());
  for (Data& data : wide) {
    if (is_narrow(data)) data = as_float64(data.tensor());
  }
  return wide;
}

OpCall call_of(const Node& node, std::span<const Data> inputs) {
  OpCall call{node, {}, {}, {}};
  for (const Data& data : inputs) {
    call.inputs.push_back(data ? std::optional<Type>(type_of(data)) : std::nullopt);
    call.constants.push_back(data.is_tensor() ? &data.tensor() : nullptr);
  }
  call.outputs = infer_outputs(call);
  return call;
}

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
  const OpCall call = call_of(node, inputs);
  const auto graph = expansion_of(call);
  if (!graph) return;
  visit_ = &visit;
  run_graph(*graph, nullptr, 1);
  visit_ = nullptr;
}

std::vector<Data> Evaluator::run_at(const Node& node, std::span<const Data> inputs, const Patch* patch, size_t depth) {
  check_stop();
  if (patch != nullptr && patch->path.size() == depth) return run_changed(*patch->change, depth);
  const OpCall call = call_of(node, inputs);
  const bool inside = patch != nullptr || visit_ != nullptr || (arithmetic_ && !is_sum(node.op));
  if (inside && depth < deepest) {
    if (const auto graph = expansion_of(call)) return run_graph(*graph, patch, depth + 1);
  }
  return arithmetic_ ? run_noisy(call, inputs) : run_plain(call, inputs);
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
    if (visit_ != nullptr) (*visit_)(call_of(node, in), in, path_);
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

void Evaluator::add_sum_noise(const OpCall& call, std::span<const Data> inputs, std::vector<Data>& outputs) {
  std::vector<Data> squares(inputs.begin(), inputs.end());
  const bool is_conv = call.node.op == "Conv" || call.node.op == "ConvTranspose";
  for (size_t i = 0; i < squares.size(); ++i) {
    if (is_conv && i == 2)
      squares[i] = Data();
    else if (is_wide(squares[i]))
      squares[i] = mapped(squares[i], [](double& value) { value *= value; });
  }
  const OpCall squared = call_of(call.node, squares);
  const auto sums = run_plain(squared, squares);
  std::vector<double> v = doubles(sums.at(0).tensor());
  std::vector<double> y = doubles(outputs.at(0).tensor());
  const double n = terms_of(call, call);
  if (is_mean(call.node.op)) {
    for (double& value : v) value /= n;
  }
  // A sequential sum in random order: variance u²/3·(y²·n/3 + v·(n/6 + 1)).
  const double u = arithmetic_->sums.unit();
  for (size_t i = 0; i < y.size(); ++i) {
    const double variance = u * u / 3 * (y[i] * y[i] * n / 3 + v[i] * (n / 6 + 1));
    if (std::isfinite(variance)) y[i] += random_.normal() * std::sqrt(variance);
  }
  Tensor result(outputs[0].tensor().type());
  store(result, y);
  outputs[0] = result;
}

// Each element of the input taken from the place after it along an axis, the last one staying.
Data next_along(const Data& data, size_t axis) {
  const Tensor& tensor = data.tensor();
  const auto step = static_cast<size_t>(tensor.shape().strides()[axis]);
  const auto size = static_cast<size_t>(tensor.shape()[axis]);
  const std::vector<double> from = doubles(tensor);
  std::vector<double> to = from;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i / step % size + 1 < size) to[i] = from[i + step];
  }
  Tensor result(tensor.type());
  store(result, to);
  return result;
}

// Interpolation coordinates are off by two units of their size: as much of the difference that a step of one along an axis makes.
void Evaluator::add_coordinate_noise(const OpCall& call, std::span<const Data> inputs, std::vector<Data>& outputs) {
  const Shape& from = inputs[0].tensor().shape();
  const Shape& to = outputs[0].tensor().shape();
  if (call.text("mode", "nearest") == "nearest") return;
  const std::vector<double> still = doubles(run_plain(call, inputs)[0].tensor());
  std::vector<double> y = doubles(outputs[0].tensor());
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] == to[axis] || from[axis] < 2) continue;
    std::vector<Data> next(inputs.begin(), inputs.end());
    next[0] = next_along(inputs[0], axis);
    const std::vector<double> moved = doubles(run_plain(call, next)[0].tensor());
    const double off = 2 * arithmetic_->steps.unit() * static_cast<double>(from[axis]);
    for (size_t i = 0; i < y.size(); ++i) {
      const double difference = std::fabs(moved[i] - still[i]);
      if (std::isfinite(difference)) y[i] += off * random_.spread() * difference;
    }
  }
  Tensor result(outputs[0].tensor().type());
  store(result, y);
  outputs[0] = result;
}

// An operator without parts: noise by the kind of its rounding. What is a sum inside, but no plain one (LSTM, Resize), gets the
// noise of its sums through its operands, each off by what a sum of its length adds up.
std::vector<Data> Evaluator::run_noisy(const OpCall& call, std::span<const Data> inputs) {
  const Op* const op = all_ops().find(call.node.op);
  const Rounding rounding = op == nullptr ? Rounding::Steps : op->rounding;
  const double u = arithmetic_->steps.unit();
  std::vector<Data> outputs;
  if (is_sum(call.node.op)) {
    outputs = run_plain(call, inputs);
    if (!outputs.empty() && is_wide(outputs[0])) add_sum_noise(call, inputs, outputs);
  } else if (rounding == Rounding::MoveBits || rounding == Rounding::Steps) {
    outputs = run_plain(call, inputs);
  } else {
    const double n = rounding == Rounding::Sum || op->category == Category::Recurrent ? terms_of(call, call) : 1;
    const double off = n == 1 ? u : std::max(u, arithmetic_->sums.unit() * std::sqrt((n / 6 + 1) / 3));
    std::vector<Data> moved(inputs.begin(), inputs.end());
    for (Data& data : moved) {
      if (is_wide(data)) data = mapped(data, [&](double& value) { value *= 1 + off * random_.spread(); });
    }
    outputs = run_plain(call_of(call.node, moved), moved);
    if (rounding != Rounding::Quantise) {
      const double absolute = saturates(call.node.op) ? u : 0;
      for (Data& data : outputs) {
        if (is_wide(data)) {
          data =
              mapped(data, [&](double& value) { value = value * (1 + 2 * u * random_.spread()) + absolute * random_.spread(); });
        }
      }
    }
  }
  if (call.node.op == "Resize" && is_wide(outputs.at(0))) add_coordinate_noise(call, inputs, outputs);
  if (rounding == Rounding::MoveBits) return outputs;
  for (Data& data : outputs) {
    if (!is_wide(data)) continue;
    std::vector<double> values = doubles(data.tensor());
    round_at_random(values, arithmetic_->steps, random_);
    Tensor result(data.tensor().type());
    store(result, values);
    data = result;
  }
  return outputs;
}

}  // namespace unmoor::causes
