#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

const std::vector<std::string_view>& norm_ops() {
  static const std::vector<std::string_view> ops{"LayerNormalization",
                                                 "RMSNormalization",
                                                 "InstanceNormalization",
                                                 "GroupNormalization",
                                                 "BatchNormalization",
                                                 "com.microsoft:SkipLayerNormalization",
                                                 "com.microsoft:SkipSimplifiedLayerNormalization",
                                                 "com.microsoft:EmbedLayerNormalization",
                                                 "com.microsoft:GroupNorm",
                                                 "com.microsoft:SkipGroupNorm",
                                                 "MeanVarianceNormalization"};
  return ops;
}

template <class... More>
std::vector<std::string_view> norms_and(More... more) {
  std::vector<std::string_view> ops = norm_ops();
  (ops.push_back(more), ...);
  return ops;
}

constexpr double usual[] = {0, 1e-12, 1e-6, 1e-5, 1e-3};

bool is_same(double a, double b) { return std::fabs(a - b) <= 1e-3 * std::max(std::fabs(b), 1e-12); }

// A single small number added: the epsilon of a normalisation that was exported in parts.
std::optional<size_t> added_epsilon(const Situation& at) {
  for (const size_t i : {size_t{1}, size_t{0}}) {
    if (!at.has_floats(i) || !at.is_weight(i)) continue;
    const auto value = only_element(at.tensor(i));
    if (value && *value > 0 && *value <= 0.01) return i;
  }
  return std::nullopt;
}

std::vector<Change> other_epsilon(const Situation& at) {
  std::vector<Change> changes;
  if (at.op() == "Add") {
    const auto i = added_epsilon(at);
    if (!i) return {};
    for (const double value : usual) {
      if (!is_same(value, *only_element(at.tensor(*i))))
        changes.push_back(with_input(at, *i, filled(at.tensor(*i), value), cat(value)));
    }
    return changes;
  }
  if (at.op() == "MeanVarianceNormalization") return {};
  const double otherwise =
      at.op().find("Skip") != std::string_view::npos || at.op().find("Embed") != std::string_view::npos ? 1e-12 : 1e-5;
  const double own = at.call.real("epsilon", otherwise);
  for (const double value : usual) {
    if (!is_same(value, own)) changes.push_back(with_attribute(at, "epsilon", static_cast<float>(value), cat(value)));
  }
  return changes;
}

std::vector<Change> as_list(std::optional<Change> change) {
  if (!change) return {};
  return {std::move(*change)};
}

// √(v + ε) becomes √v + ε.
std::vector<Change> epsilon_outside(const Situation& at) {
  return as_list(with_edit(at, [](const Copied& at_node) -> std::optional<ValueId> {
    if (at_node.node.op != "Sqrt") return std::nullopt;
    const Node* const sum = at_node.producer(at_node.node.inputs[0]);
    if (sum == nullptr || sum->op != "Add" || at_node.original.constant_tensor(sum->inputs[1]) == nullptr) return std::nullopt;
    const ValueId root = at_node.builder.add("Sqrt", {at_node.copy_of(sum->inputs[0])});
    return at_node.builder.add("Add", {root, at_node.copy_of(sum->inputs[1])});
  }));
}

// The mean of squared differences from a mean: what it is a mean of, if the node is one.
struct Variance {
  ValueId x, mean;
};
std::optional<Variance> variance_at(const Copied& at) {
  if (at.node.op != "ReduceMean") return std::nullopt;
  const Node* const square = at.producer(at.node.inputs[0]);
  if (square == nullptr || square->op != "Mul" || square->inputs[0] != square->inputs[1]) return std::nullopt;
  const Node* const difference = at.producer(square->inputs[0]);
  if (difference == nullptr || difference->op != "Sub") return std::nullopt;
  return Variance{difference->inputs[0], difference->inputs[1]};
}

const TensorType& type_in(const Copied& at, ValueId original) {
  return std::get<TensorType>(at.builder.type(at.copy_of(original)));
}

std::vector<Change> naive_variance(const Situation& at) {
  auto change = with_edit(at, [](const Copied& node) -> std::optional<ValueId> {
    const auto found = variance_at(node);
    if (!found) return std::nullopt;
    GraphBuilder& builder = node.builder;
    const ValueId x = node.copy_of(found->x);
    const ValueId mean = node.copy_of(found->mean);
    const ValueId squares = builder.add("ReduceMean", {builder.add("Mul", {x, x}), node.inputs[1]}, node.node.attributes);
    const ValueId variance = builder.add("Sub", {squares, builder.add("Mul", {mean, mean})});
    return builder.add("Max", {variance, builder.scalar(0, type_in(node, found->x).dtype)});
  });
  if (change) change->same_values = true;
  return as_list(std::move(change));
}

std::vector<Change> unbiased_variance(const Situation& at) {
  return as_list(with_edit(at, [](const Copied& node) -> std::optional<ValueId> {
    const auto found = variance_at(node);
    if (!found) return std::nullopt;
    const TensorType& x = type_in(node, found->x);
    const TensorType& mean = type_in(node, found->mean);
    if (!x.is_known() || !mean.is_known() || mean.shape.elements() == 0) return std::nullopt;
    const auto n = static_cast<double>(x.shape.elements() / mean.shape.elements());
    if (n < 2) return std::nullopt;
    const ValueId variance = node.builder.add(node.node.op, {node.inputs.begin(), node.inputs.end()}, node.node.attributes);
    return node.builder.add("Mul", {variance, node.builder.scalar(n / (n - 1), x.dtype)});
  }));
}

std::vector<Change> mean_kept(const Situation& at) {
  if (at.op() == "BatchNormalization") {
    if (!at.has_floats(3) || at.call.integer("training_mode", 0) != 0) return {};
    return {with_input(at, 3, filled(at.tensor(3), 0))};
  }
  return as_list(with_edit(at, [](const Copied& node) -> std::optional<ValueId> {
    if (node.node.op != "Sub") return std::nullopt;
    const Node* const mean = node.producer(node.node.inputs[1]);
    if (mean == nullptr || mean->op != "ReduceMean" || mean->inputs[0] != node.node.inputs[0]) return std::nullopt;
    return node.inputs[0];
  }));
}

}  // namespace

void add_norm_causes(std::vector<Entry>& table) {
  table.push_back({"epsilon", "adds another epsilon to the variance",
                   "Set the epsilon of the target's normalisation to the model's.", 1, true, norms_and("Add"), other_epsilon});
  table.push_back({"epsilon-outside", "adds epsilon outside of the root, to the deviation",
                   "Use the target's normalisation that adds epsilon to the variance, or take the operator apart.", 1, true,
                   norm_ops(), epsilon_outside});
  table.push_back({"variance-naive", "computes the variance as E[x²] - E[x]², which loses its digits where the mean is large",
                   "Ask for a two-pass or Welford variance, or centre the input before the operator.", 2, true, norm_ops(),
                   naive_variance});
  table.push_back({"variance-unbiased", "divides the squares by n - 1 instead of n",
                   "Set the target's variance to the biased one.", 1, true, norm_ops(), unbiased_variance});
  table.push_back({"mean-kept", "does not subtract the mean, as RMS normalisation does",
                   "Use the target's LayerNormalization, not its RMS form.", 1, true, norm_ops(), mean_kept});
}

}  // namespace unmoor::causes
