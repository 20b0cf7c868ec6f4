#include "unmoor/workbench/noise/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "unmoor/base/error.h"
#include "unmoor/base/stop.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/real.h"
#include "unmoor/tensor/unset.h"
#include "unmoor/workbench/noise/domain.h"
#include "unmoor/workbench/noise/exact_memo.h"
#include "unmoor/workbench/noise/fast_rounding.h"
#include "unmoor/workbench/noise/functions.h"
#include "unmoor/workbench/noise/resample.h"
#include "unmoor/workbench/noise/stacked.h"
#include "unmoor/workbench/noise/sums.h"

namespace unmoor {
namespace {


bool has_graph(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const auto& each) {
    return std::holds_alternative<SubGraph>(each.second) || std::holds_alternative<std::vector<SubGraph>>(each.second);
  });
}

std::vector<Data> exact_of(std::span<const Sampled> in) {
  std::vector<Data> result;
  for (const Sampled& each : in) result.push_back(each.exact);
  return result;
}

// Nothing if a copy has failed in one of them.
std::optional<std::vector<Data>> copy_of(std::span<const Sampled> in, size_t k) {
  std::vector<Data> result;
  for (const Sampled& each : in) {
    if (each && !each.copy(k)) return std::nullopt;
    result.push_back(each.copy(k));
  }
  return result;
}

std::vector<Data> results_on(const Node& node, std::span<const Data> in) {
  std::vector<Data> made = reference_on(node, in);
  for (Data& each : made) each = in_float64(each);
  return made;
}

// Empty data where a copy cannot go on or comes to another shape: it no longer says anything about the exact run's elements.
std::vector<Data> attempted(const Node& node, std::span<const Data> in, const std::vector<Data>& exact) {
  std::vector<Data> result(exact.size());
  try {
    std::vector<Data> made = results_on(node, in);
    for (size_t i = 0; i < made.size() && i < result.size(); ++i) {
      const bool same = !made[i].is_tensor() || (exact[i].is_tensor() && made[i].tensor().type() == exact[i].tensor().type());
      if (same) result[i] = std::move(made[i]);
    }
  } catch (const Error& error) {
    // An index that noise has moved out of range, say: what runs exactly is no error of the model.
    if (error.kind() != ErrorKind::InvalidArgument && error.kind() != ErrorKind::InvalidModel) throw;
  }
  return result;
}

// Calls body(i) for each, on the threads of the help in float64 where there is one.
template <class Body>
void side_by_side(size_t count, const Body& body) {
  const Float64Help* const help = Float64Scope::current();
  if (help == nullptr || help->pool == nullptr) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  help->pool->each(count, [&](size_t i) {
    const Float64Scope scope(*help);
    body(i);
  });
}

// A change, and the rounding of a step after it, in one pass: as perturb() with the change and then round().
template <class Change>
struct ThenRounded {
  const Change& change;
  FastRounding rounded;
};
template <class Change>
ThenRounded(const Change&, FastRounding) -> ThenRounded<Change>;
template <class Change>
constexpr bool is_then_rounded = false;
template <class Change>
constexpr bool is_then_rounded<ThenRounded<Change>> = true;

// Of the error of each sum y.
std::vector<double> deviations_of(const SumTerms& terms, std::span<const double> y, double unit) {
  std::vector<double> result(y.size());
  side_by_side_ranges(y.size(), 5, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const double squares = terms.squares.size() == 1 ? terms.squares[0] : terms.squares[i];
      result[i] = std::sqrt(sum_variance(y[i], squares, terms.terms, unit));
    }
  });
  return result;
}

bool all_exact(std::span<const Sampled> in) {
  return std::ranges::all_of(in, [](const Sampled& each) { return each.is_exact(); });
}

}  // namespace

NoiseSampler::NoiseSampler(NoiseOptions options)
    : options_(options), grid_(options.grid.value_or(grid_of(options.step))), unit_(grid_.unit()), sums_unit_(options.sums.value_or(grid_).unit()) {
  if (options_.copies == 0) fail(ErrorKind::InvalidArgument, "noise needs at least one copy");
}

template <class Change>
void NoiseSampler::perturb(Sampled& value, Change&& change) {
  if (!is_real(value.exact)) return;
  const uint64_t changing = ++stream_;
  const uint64_t rounding = is_then_rounded<Change> ? ++stream_ : 0;
  if (value.copies.empty()) value.copies.assign(options_.copies, value.exact);
  side_by_side(value.copies.size(), [&](size_t k) {
    if (!value.copies[k]) return;
    Tensor to = std::exchange(value.copies[k], Data()).tensor();
    const bool is_own = to.is_unshared();  // Then it is changed where it lies.
    const Tensor from = to;
    if (!is_own) to = unset_tensor(from.type());
    const auto numbers = from.span<double>();
    const auto changed = to.writable_span<double>();
    const NoiseRandom random(options_.seed, k, changing);
    const NoiseRandom of_rounding(options_.seed, k, rounding);
    for (size_t i = 0; i < numbers.size(); ++i) {
      double next = numbers[i];
      if (std::isfinite(next)) {
        if constexpr (is_then_rounded<Change>) {
          next = change.rounded(change.change(next, random, i), of_rounding.bits(i));
        } else {
          next = change(next, random, i);
        }
      }
      changed[i] = next;
    }
    value.copies[k] = std::move(to);
  });
}

void NoiseSampler::round(Sampled& value) {
  perturb(value, [rounded = FastRounding(grid_)](double x, const NoiseRandom& random, size_t i) { return rounded(x, random.bits(i)); });
}

void NoiseSampler::store(Sampled& value, DType stored) {
  if (!has_grid(stored) || stored == DType::F64) return;
  const Grid grid = grid_of(stored);
  if (grid.digits >= grid_.digits && grid.lowest_exponent <= grid_.lowest_exponent && !value.is_exact())
    return;  // On the grid already.
  perturb(value,
          [rounded = FastRounding(grid)](double x, const NoiseRandom& random, size_t i) { return rounded(x, random.bits(i)); });
}

void NoiseSampler::unround(Sampled& value, DType stored) {
  if (stored != DType::F16 && stored != DType::BF16) return;
  const Grid grid = grid_of(stored);
  perturb(value, [&grid](double x, const NoiseRandom& random, size_t i) {
    const double half_step = std::ldexp(1.0, std::max(std::ilogb(x), grid.lowest_exponent) - grid.digits);
    return x == 0 ? x : x + std::numbers::sqrt2 * half_step * random.around(i);
  });
}

std::vector<Sampled> NoiseSampler::run_copies(const Node& node, std::span<const Sampled> in) const {
  if (can_stack(node, in)) return {run_stacked(node, in)};
  std::vector<Data> exact = exact_on(node, exact_of(in));
  std::vector<Sampled> result;
  for (Data& each : exact) result.push_back({each = in_float64(each)});
  if (all_exact(in)) return result;
  for (Sampled& each : result) each.copies.resize(options_.copies);
  side_by_side(options_.copies, [&](size_t k) {
    const auto inputs = copy_of(in, k);
    if (!inputs) return;
    std::vector<Data> made = attempted(node, *inputs, exact);
    for (size_t i = 0; i < result.size(); ++i) result[i].copies[k] = std::move(made[i]);
  });
  return result;
}

std::vector<Sampled> NoiseSampler::run_function(const Node& node, std::span<const Sampled> in) {
  const FunctionAllowance allowance = *function_allowance(node);
  std::vector<Sampled> moved(in.begin(), in.end());
  // No kernel raises a negative base to an exponent that is off a whole number: the size is raised.
  const bool is_power = node.op == "Pow";
  for (size_t at = 0; at < moved.size(); ++at) {
    perturb(moved[at], [&](double x, const NoiseRandom& random, size_t i) {
      const double argument = x * (1 + allowance.argument * unit_ * random.around(i));
      return is_power && at == 0 ? std::fabs(argument) : argument;
    });
  }
  std::vector<Sampled> result = run_copies(node, moved);
  if (may_leave_domain(node, result.at(0))) stay_in_domain(result[0], run_copies(node, in).at(0), is_power);
  const auto off = [&](double y, const NoiseRandom& random, size_t i) {
    return y * (1 + allowance.result * unit_ * random.around(2 * i)) + allowance.absolute * unit_ * random.around(2 * i + 1);
  };
  perturb(result.at(0), ThenRounded{off, FastRounding(grid_)});
  return result;
}

std::vector<Sampled> NoiseSampler::run_sum(const Node& node, std::span<const Sampled> in) {
  std::vector<Sampled> moved(in.begin(), in.end());
  const std::vector<Data> exact = exact_of(in);
  for (size_t i = 0; i < moved.size(); ++i) {
    const double allowance = moved[i] ? coordinate_allowance(node, exact, i) : 0;
    if (allowance == 0) continue;
    perturb(moved[i], [&](double x, const NoiseRandom& random, size_t at) { return x + allowance * unit_ * random.around(at); });
  }
  std::vector<Sampled> result = run_copies(node, moved);
  if (!is_real(result.at(0).exact)) return result;
  const Tensor y = result[0].exact.tensor();
  const auto terms = sum_terms(node, exact, y);
  if (!terms) fail(ErrorKind::Unsupported, "no noise model for ", node.op);
  const std::vector<double> deviations = deviations_of(*terms, y.span<double>(), sums_unit_);
  const auto off = [&](double value, const NoiseRandom& random, size_t i) {
    const double error = deviations[i] * random.normal(i);
    return std::isfinite(error) ? value + error : value;
  };
  perturb(result[0], ThenRounded{off, FastRounding(grid_)});
  for (size_t i = 1; i < result.size(); ++i) round(result[i]);
  return result;
}

std::vector<Sampled> NoiseSampler::run_resize(const Node& node, std::span<const Sampled> in) {
  const std::vector<Data> exact = exact_of(in);
  const ResampleForm form(node, exact);
  std::vector<Sampled> result{{reference_on(node, exact).at(0)}};
  ++stream_;
  for (size_t k = 0; k < options_.copies; ++k) {
    const Data& x = in[0].copy(k);
    result[0].copies.push_back(x ? Data(form.sample(x.tensor(), unit_, stream(k))) : Data());
  }
  for (Sampled& each : result) round(each);
  return result;
}

std::vector<Sampled> NoiseSampler::run_graph(const Graph& graph, std::vector<Sampled> values) {
  std::vector<uint32_t> uses = use_counts(graph);
  for (const Node& node : graph.nodes()) {
    std::vector<Sampled> in;
    for (const ValueId id : node.inputs) in.push_back(id == no_value ? Sampled() : values[Graph::index(id)]);
    std::vector<Sampled> out = run(node, in);
    for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
      if (node.outputs[i] != no_value) values[Graph::index(node.outputs[i])] = std::move(out[i]);
    }
    for (const ValueId id : node.inputs) {
      if (id != no_value && --uses[Graph::index(id)] == 0) values[Graph::index(id)] = {};
    }
  }
  std::vector<Sampled> results;
  for (const ValueId id : graph.outputs()) results.push_back(values[Graph::index(id)]);
  return results;
}

std::vector<Sampled> NoiseSampler::run_expanded(const Node& node, std::span<const Sampled> in,
                                                const std::function<void(GraphBuilder&)>& expand) {
  const std::vector<Data> exact = exact_of(in);
  OpCall call = call_on(node, exact);
  Graph graph;
  std::vector<ValueId> inputs;
  std::vector<std::pair<ValueId, size_t>> given;
  for (size_t i = 0; i < in.size(); ++i) {
    // What all copies agree on may decide the form of the graph.
    if (!in[i].is_exact()) call.constants[i] = nullptr;
    if (!in[i])
      inputs.push_back(no_value);
    else if (call.constants[i] != nullptr)
      inputs.push_back(graph.add_constant(cat("input_", i), exact[i]));
    else
      given.emplace_back(inputs.emplace_back(graph.add_input(cat("input_", i), *call.inputs[i])), i);
  }
  GraphBuilder builder(graph, call, std::move(inputs));
  expand(builder);
  std::vector<size_t> marked;
  for (size_t i = 0; i < builder.outputs().size(); ++i) {
    if (builder.outputs()[i] == no_value) continue;
    graph.mark_output(builder.outputs()[i], cat("output_", i));
    marked.push_back(i);
  }
  std::vector<Sampled> values(graph.values().size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.values()[i].constant) values[i].exact = in_float64(*graph.values()[i].constant);
  }
  for (const auto& [id, i] : given) values[Graph::index(id)] = in[i];
  std::vector<Sampled> made = run_graph(graph, std::move(values));
  std::vector<Sampled> results(std::max(node.outputs.size(), builder.outputs().size()));
  for (size_t i = 0; i < marked.size(); ++i) results[marked[i]] = std::move(made[i]);
  return results;
}

std::vector<Sampled> NoiseSampler::run_primitive(const Node& node, std::span<const Sampled> in) {
  const Op& op = *all_ops().find(node.op);
  switch (op.rounding) {
    case Rounding::MoveBits:
    case Rounding::Quantise:
      return run_copies(node, in);
    case Rounding::Steps: {
      std::vector<Sampled> result = run_copies(node, in);
      for (Sampled& each : result) round(each);
      return result;
    }
    case Rounding::Sum: {
      const auto reduction = node.attributes.find("reduction");
      const bool scatters = node.op.starts_with("Scatter");
      const bool adds = reduction != node.attributes.end() && std::get<std::string>(reduction->second) == "add";
      if (scatters && !adds) {
        const bool multiplies = reduction != node.attributes.end() && std::get<std::string>(reduction->second) == "mul";
        std::vector<Sampled> result = run_copies(node, in);
        if (multiplies) for (Sampled& each : result) round(each);
        return result;
      }
      return run_sum(node, in);
    }
    case Rounding::Function:
      break;
  }
  if (function_allowance(node)) return run_function(node, in);
  fail(ErrorKind::Unsupported, "no noise model for ", node.op);
}

std::vector<Sampled> NoiseSampler::run(const Node& node, std::span<const Sampled> in) {
  check_stop();
  const Op* const op = all_ops().find(node.op);
  // Bits that are read as another type say nothing of float64's.
  if (op == nullptr || has_graph(node) || node.op == "BitCast") fail(ErrorKind::Unsupported, "no noise model for ", node.op);
  const std::vector<Data> exact = exact_of(in);
  const bool real = std::ranges::any_of(exact, is_real);
  if (op->rounding == Rounding::MoveBits || (!real && node.op != "DequantizeLinear" && !op->expand)) return run_copies(node, in);
  const OpCall call = call_on(node, exact);
  if (call.node.op == "Resize") return is_interpolation(call) ? run_resize(node, in) : run_copies(node, in);
  if (const NoiseForm form = noise_form(call)) return run_expanded(node, in, form);
  if (op->expand) return run_expanded(node, in, op->expand);
  return run_primitive(node, in);
}

std::vector<double> spread_of(const Sampled& value) {
  if (!is_real(value.exact)) return {};
  const auto exact = value.exact.tensor().span<double>();
  std::vector<double> spread(exact.size());
  if (value.is_exact()) return spread;
  std::vector<std::span<const double>> copies;
  for (const Data& copy : value.copies) {
    if (copy) copies.push_back(copy.tensor().span<double>());
  }
  if (copies.empty()) return {};
  side_by_side_ranges(spread.size(), 5, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      double squares = 0;
      uint32_t count = 0;
      for (const auto& numbers : copies) {
        const double away = numbers[i] - exact[i];
        if (!std::isfinite(away)) continue;
        squares += away * away;
        ++count;
      }
      const bool unknown = count == 0 && std::isfinite(exact[i]);
      spread[i] = unknown ? std::numeric_limits<double>::infinity() : count == 0 ? 0 : std::sqrt(squares / count);
    }
  });
  return spread;
}

double root_mean_square(const std::vector<double>& spread) {
  double sum = 0;
  for (const double each : spread) sum += std::isfinite(each) ? each * each : 0;
  return spread.empty() ? 0 : std::sqrt(sum / static_cast<double>(spread.size()));
}

}  // namespace unmoor
