#include "unmoor/ops/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/activate.h"
#include "unmoor/ops/families.h"

namespace unmoor {
namespace {

using Activation = std::function<double(double gate, double value)>;  // The value counts for gated ones, or with a third matrix.

bool is_gated(const std::string& type) { return type == "swiglu" || type == "geglu"; }

Activation swiglu_of(const OpCall& call) {
  const double alpha = call.real("activation_alpha", 1);
  const double beta = call.real("activation_beta", 0);
  const double limit = call.real("swiglu_limit", std::numeric_limits<double>::infinity());
  const bool after = call.integer("swiglu_limit_after_activation", 0) != 0;
  if (!(limit >= 0)) fail(ErrorKind::InvalidModel, title(call), ": swiglu_limit is ", limit);
  return [=](double gate, double value) {
    const double bound = after ? gate : std::min(gate, limit);
    const double swish = bound * sigmoid(alpha * bound);
    return (after ? std::min(swish, limit) : swish) * (std::clamp(value, -limit, limit) + beta);
  };
}

Activation activation_of(const OpCall& call) {
  const std::string type = call.text("activation_type", "relu");
  const auto times = [](double (*function)(double)) {
    return [function](double gate, double value) { return function(gate) * value; };
  };
  if (type == "relu") return times([](double x) { return x < 0 ? 0 : x; });
  if (type == "gelu" || type == "geglu") return times(gelu_tanh);
  if (type == "silu") return times([](double x) { return x * sigmoid(x); });
  if (type == "relu2") return times([](double x) { return x < 0 ? 0 : x * x; });
  if (type == "identity") return times([](double x) { return x; });
  if (type == "swiglu") return swiglu_of(call);
  fail(ErrorKind::InvalidModel, title(call), ": activation_type is '", type,
       "', not relu, relu2, gelu, geglu, silu, swiglu or identity");
}

void check_form(const OpCall& call, const Mixture& mixture) {
  const bool gated = is_gated(call.text("activation_type", "relu"));
  const int64_t fusion = call.integer("swiglu_fusion", 0);
  if (fusion < 0 || fusion > 2) fail(ErrorKind::InvalidModel, title(call), ": swiglu_fusion is ", fusion, ", not 0, 1 or 2");
  if (gated && !mixture.fused && !mixture.third) {
    fail(ErrorKind::InvalidModel, title(call), ": a gated activation needs swiglu_fusion 1 or 2, or a third matrix");
  }
  if (mixture.fused && mixture.third) fail(ErrorKind::InvalidModel, title(call), ": its fused first matrix leaves no third one");
}

void meet(const OpCall& call, size_t i, size_t rank, size_t axis, int64_t& size, std::string_view what) {
  if (!call.has(i)) return;
  require_rank(call, i, rank);
  if (call.input(i).shape.has_rank()) size = same_dim(call, size, call.input(i).shape[axis], what);
}

// The numbers along the last axis of a matrix whose elements hold several.
void meet_packed(const OpCall& call, size_t i, double each, int64_t& size, std::string_view what) {
  if (!call.has(i) || !call.input(i).shape.has_rank()) return;
  const int64_t dim = call.input(i).shape[2];
  if (dim < 0) return;
  const auto numbers = static_cast<int64_t>(std::llround(std::min(static_cast<double>(dim) * each, 1e15)));
  size = same_dim(call, size, numbers, what);
}

void check_rows(const OpCall& call, Mixture& mixture) {
  const Shape& x = call.input(0).shape;
  if (x.has_rank()) {
    if (x.rank() != 2 && x.rank() != 3) fail(ErrorKind::InvalidModel, title(call), ": input has shape ", x, ", not rank 2 or 3");
    mixture.hidden = x[x.rank() - 1];
    if (x.rank() == 2) mixture.rows = x[0];
    if (x.rank() == 3 && x[0] >= 0 && x[1] >= 0) mixture.rows = x.elements(0, 2);
  }
  meet(call, 1, 2, 0, mixture.rows, "the number of rows");
  meet(call, 1, 2, 1, mixture.experts, "the number of experts");
}

}  // namespace

Mixture mixture_of(const OpCall& call, const MixturePlaces& places, const std::array<double, 3>& numbers_per_element) {
  Mixture mixture;
  activation_of(call);
  mixture.fused = is_gated(call.text("activation_type", "relu")) && call.integer("swiglu_fusion", 0) != 0;
  mixture.third = call.has(places.weights[2]);
  check_form(call, mixture);
  check_rows(call, mixture);
  for (const size_t i : places.weights) meet(call, i, 3, 0, mixture.experts, "the number of experts");
  for (const size_t i : places.bias) meet(call, i, 2, 0, mixture.experts, "the number of experts");
  for (const size_t layer : {size_t{0}, size_t{2}}) {
    meet_packed(call, places.weights[layer], numbers_per_element[layer], mixture.hidden, "the size of a row");
  }
  meet(call, places.weights[1], 3, 1, mixture.hidden, "the size of a row");
  meet(call, places.bias[1], 2, 1, mixture.hidden, "the size of a row");
  meet_packed(call, places.weights[1], numbers_per_element[1], mixture.inner, "the inner size");
  meet(call, places.weights[2], 3, 1, mixture.inner, "the inner size");
  meet(call, places.bias[2], 2, 1, mixture.inner, "the inner size");
  int64_t first = mixture.first_rows();
  meet(call, places.weights[0], 3, 1, first, "the rows of the first matrix");
  meet(call, places.bias[0], 2, 1, first, "the rows of the first matrix");
  for (const int64_t size : {mixture.hidden, mixture.inner, first}) {
    if (size == 0) fail(ErrorKind::InvalidModel, title(call), ": its matrices have an empty side");
  }
  mixture.chosen = call.integer("k", 1);
  if (mixture.chosen < 1 || (mixture.experts >= 0 && mixture.chosen > mixture.experts)) {
    fail(ErrorKind::InvalidModel, title(call), ": k is ", mixture.chosen, " of ", mixture.experts, " experts");
  }
  if (call.integer("use_sparse_mixer", 0) != 0 && mixture.chosen != 2) {
    fail(ErrorKind::InvalidModel, title(call), ": the sparse mixer chooses 2 experts, not k = ", mixture.chosen);
  }
  return mixture;
}

std::vector<double> expert_part(const Tensor& tensor, size_t expert) {
  const TensorType type{tensor.dtype(), Shape{tensor.shape().elements(1, tensor.shape().rank())}};
  return doubles(
      Tensor::view(type, tensor.bytes().subspan(expert * type.bytes(), type.bytes()), std::make_shared<Tensor>(tensor)));
}

std::vector<size_t> largest(std::span<const double> logits, size_t count) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a > b; });
  order.resize(count);
  return order;
}

// Each choice is weighed among the logits near to it, within twice the jitter of the larger size; the first choice is out for the
// second.
std::vector<Route> sparse_routes(std::span<const double> logits) {
  constexpr double jitter = 0.01;
  std::vector<Route> routes;
  for (size_t choice = 0; choice < 2; ++choice) {
    const auto is_out = [&](size_t i) { return choice == 1 && i == routes[0].expert; };
    size_t best = logits.size();
    for (size_t i = 0; i < logits.size(); ++i) {
      if (!is_out(i) && (best == logits.size() || logits[i] > logits[best])) best = i;
    }
    double sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double factor = std::max(std::fabs(logits[i]), logits[best]);
      if (!is_out(i) && logits[best] - logits[i] <= 2 * jitter * factor) sum += std::exp(logits[i] - logits[best]);
    }
    routes.push_back({best, 1 / sum});
  }
  return routes;
}

namespace {

// y = W·x + b for a matrix [outputs, inputs]; a bias of one expert may be absent.
std::vector<double> times(const std::vector<double>& matrix, std::span<const double> x, std::span<const double> bias) {
  const size_t outputs = x.empty() ? bias.size() : matrix.size() / x.size();
  std::vector<double> y(outputs);
  for (size_t i = 0; i < outputs; ++i) {
    double sum = bias.empty() ? 0 : bias[i];
    for (size_t k = 0; k < x.size(); ++k) sum += matrix[i * x.size() + k] * x[k];
    y[i] = sum;
  }
  return y;
}

class Expert {
 public:
  Expert(const OpCall& call, const Mixture& mixture, const MixturePlaces& places, std::span<const Data> in, size_t expert,
         const ExpertWeights& weights)
      : mixture_(mixture), interleaved_(call.integer("swiglu_fusion", 0) == 1), activation_(activation_of(call)) {
    for (size_t layer = 0; layer < (mixture.third ? size_t{3} : size_t{2}); ++layer) {
      matrices_[layer] = weights(layer, expert);
      if (places.bias[layer] == 0 || tensor_at(in, places.bias[layer]) == nullptr) continue;
      bias_[layer] = expert_part(*tensor_at(in, places.bias[layer]), expert);
    }
  }

  std::vector<double> run(std::span<const double> row) const {
    const std::vector<double> first = times(matrices_[0], row, bias_[0]);
    const std::vector<double> third = mixture_.third ? times(matrices_[2], row, bias_[2]) : std::vector<double>();
    std::vector<double> inner(static_cast<size_t>(mixture_.inner));
    for (size_t i = 0; i < inner.size(); ++i) {
      const double gate = first[mixture_.fused && interleaved_ ? 2 * i : i];
      const double value = mixture_.fused ? first[interleaved_ ? 2 * i + 1 : inner.size() + i] : third.empty() ? 1 : third[i];
      inner[i] = activation_(gate, value);
    }
    return times(matrices_[1], inner, bias_[1]);
  }

 private:
  const Mixture& mixture_;
  bool interleaved_;
  Activation activation_;
  std::array<std::vector<double>, 3> matrices_, bias_;
};

}  // namespace

std::vector<double> mix(const OpCall& call, const Mixture& mixture, const MixturePlaces& places, std::span<const Data> in,
                        const std::vector<std::vector<Route>>& routes, const ExpertWeights& weights) {
  const std::vector<double> x = doubles(in[0].tensor());
  const auto hidden = static_cast<size_t>(mixture.hidden);
  std::vector<double> y(x.size());
  for (size_t expert = 0; expert < static_cast<size_t>(mixture.experts); ++expert) {
    std::optional<Expert> opened;  // Its weights are read only if a row goes through it.
    for (size_t row = 0; row < routes.size(); ++row) {
      for (const Route& route : routes[row]) {
        if (route.expert != expert || route.weight == 0) continue;
        if (!opened) opened.emplace(call, mixture, places, in, expert, weights);
        const std::vector<double> part = opened->run(std::span<const double>(x).subspan(row * hidden, hidden));
        for (size_t i = 0; i < hidden; ++i) y[row * hidden + i] += route.weight * part[i];
      }
    }
  }
  return y;
}

Cost mixture_cost(const OpCall& call, const Mixture& mixture) {
  if (mixture.rows < 0 || mixture.hidden < 0 || mixture.inner < 0) return {0, bytes_moved(call)};
  const double matrices = mixture.fused || mixture.third ? 3 : 2;
  const double rows = static_cast<double>(mixture.rows) * static_cast<double>(mixture.chosen);
  return {2 * rows * matrices * static_cast<double>(mixture.hidden) * static_cast<double>(mixture.inner), bytes_moved(call)};
}

Attributes mixture_attributes() {
  return {{"activation_alpha", 1.0F},
          {"activation_beta", 0.0F},
          {"activation_type", std::string("relu")},
          {"k", int64_t{1}},
          {"normalize_routing_weights", int64_t{0}},
          {"swiglu_fusion", int64_t{0}},
          {"swiglu_limit", std::numeric_limits<float>::infinity()},
          {"swiglu_limit_after_activation", int64_t{0}},
          {"use_sparse_mixer", int64_t{0}}};
}

namespace {

// Inputs: input, router_probs, then weights and bias of each matrix.
const MixturePlaces moe_places{{2, 4, 6}, {3, 5, 7}};

Mixture moe_of(const OpCall& call) { return mixture_of(call, moe_places, {1, 1, 1}); }

std::vector<std::vector<Route>> moe_routes(const OpCall& call, const Mixture& mixture, std::span<const Data> in) {
  const std::vector<double> logits = doubles(in[1].tensor());
  const auto experts = static_cast<size_t>(mixture.experts);
  const bool normalizes = call.integer("normalize_routing_weights", 0) != 0;
  std::vector<std::vector<Route>> routes(static_cast<size_t>(mixture.rows));
  for (size_t row = 0; row < routes.size(); ++row) {
    const auto own = std::span<const double>(logits).subspan(row * experts, experts);
    if (call.integer("use_sparse_mixer", 0) != 0) {
      routes[row] = sparse_routes(own);
      continue;
    }
    const std::vector<size_t> chosen = largest(own, static_cast<size_t>(mixture.chosen));
    double all = 0;
    for (const double logit : own) all += std::exp(logit - own[chosen[0]]);
    double of_chosen = 0;
    for (const size_t expert : chosen) {
      routes[row].push_back({expert, std::exp(own[expert] - own[chosen[0]])});
      of_chosen += routes[row].back().weight;
    }
    for (Route& route : routes[row]) route.weight /= normalizes ? of_chosen : all;
  }
  return routes;
}

}  // namespace

void add_mixture_ops(OpSet& ops) {
  Op op;
  op.name = "com.microsoft:MoE";
  op.summary = "Each row through the experts that its router logits choose, added by their weights.";
  op.inputs = {required("input", float_types()),
               required("router_probs", float_types()),
               required("fc1_experts_weights", float_types()),
               optional("fc1_experts_bias", float_types()),
               required("fc2_experts_weights", float_types()),
               optional("fc2_experts_bias", float_types()),
               optional("fc3_experts_weights", float_types()),
               optional("fc3_experts_bias", float_types())};
  op.outputs = {required("output", float_types())};
  op.attributes = mixture_attributes();
  op.infer = [](const OpCall& call) {
    require_same_dtype(call);
    moe_of(call);
    return like_first(call);
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const Mixture mixture = moe_of(call);
    const auto weights = [&in](size_t layer, size_t expert) {
      return expert_part(in[moe_places.weights[layer]].tensor(), expert);
    };
    put(call, out, 0, std::span<const double>(mix(call, mixture, moe_places, in, moe_routes(call, mixture, in), weights)));
  };
  op.cost = [](const OpCall& call) { return mixture_cost(call, moe_of(call)); };
  op.rounding = Rounding::Function;
  op.category = Category::Matrix;
  const std::string start = "T[5,8]~small T[5,4]~small ";
  op.cases = {
      cat(start, "T[4,6,8]~small! T[4,6]~small! T[4,8,6]~small! T[4,8]~small! k=1,2 activation_type=relu,gelu,silu,identity"),
      cat(start, "T[4,6,8]~small! - T[4,8,6]~small! k=1,4 normalize_routing_weights=0,1"),
      cat(start, "T[4,12,8]~small! T[4,12]~small! T[4,8,6]~small! T[4,8]~small! k=2 activation_type=swiglu swiglu_fusion=1,2"),
      cat(start,
          "T[4,12,8]~small! - T[4,8,6]~small! - k=2 activation_type=swiglu swiglu_fusion=1 activation_alpha=1.702 "
          "activation_beta=1 swiglu_limit=0.5 swiglu_limit_after_activation=0,1"),
      cat(start, "T[4,6,8]~small! T[4,6]~small! T[4,8,6]~small! - T[4,6,8]~small! T[4,6]~small! k=2 activation_type=silu,swiglu"),
      cat(start, "T[4,12,8]~small! - T[4,8,6]~small! k=1 activation_type=geglu swiglu_fusion=1,2"),
      cat(start, "T[4,6,8]~small! - T[4,8,6]~small! k=2 use_sparse_mixer=1 activation_type=relu2"),
      "T[2,3,8]~small T[6,4]~small T[4,6,8]~small! - T[4,8,6]~small! k=2 normalize_routing_weights=1",
      "T[0,8] T[0,4] T[4,6,8]! - T[4,8,6]! k=2",
      "T[3,8]~small T[3,1]~small T[1,6,8]~small! - T[1,8,6]~small! k=1"};
  ops.add(std::move(op));
  add_quantized_mixture_op(ops);
}

}  // namespace unmoor
