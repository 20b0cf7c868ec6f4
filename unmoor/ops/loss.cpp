#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {
namespace {

std::string reduction_of(const OpCall& call) {
  std::string reduction = call.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    fail(ErrorKind::InvalidModel, title(call), ": reduction is '", reduction, "', not none, sum or mean");
  }
  return reduction;
}

std::optional<int64_t> ignored_class(const OpCall& call) {
  if (!call.has_attribute("ignore_index")) return std::nullopt;
  return call.integer("ignore_index", 0);
}

// The shape of the targets [N, d1, …], from theirs and from that of the scores [N, C, d1, …].
Shape target_shape(const OpCall& call) {
  const Shape& scores = call.input(0).shape;
  const Shape& targets = call.input(1).shape;
  if (scores.has_rank() && scores.rank() < 2) fail(ErrorKind::InvalidModel, title(call), ": shape ", scores, " has no classes");
  if (call.has(2)) {
    require_rank(call, 2, 1);
    if (scores.has_rank() && call.input(2).shape.has_rank())
      same_dim(call, scores[1], call.input(2).shape[0], "the number of classes");
  }
  if (!scores.has_rank()) return targets;
  require_rank(call, 1, scores.rank() - 1);
  Shape shape;
  for (size_t axis = 0; axis < scores.rank(); ++axis) {
    if (axis != 1) shape.push_back(scores, axis);
  }
  for (size_t axis = 0; targets.has_rank() && axis < shape.rank(); ++axis) {
    const int64_t dim = same_dim(call, shape[axis], targets[axis], "a size of the targets");
    if (shape[axis] != dim) shape.set(axis, dim);
  }
  return shape;
}

std::vector<Type> infer_loss(const OpCall& call) {
  const Shape shape = target_shape(call);
  const TensorType& scores = call.input(0);
  return {TensorType{scores.dtype, reduction_of(call) == "none" ? shape : Shape()}, scores};
}

// Losses of the targets from log-probabilities [N, C, plane], reduced, as output 0.
void put_loss(const OpCall& call, std::span<const Data> in, const std::vector<double>& logarithms, Outputs& out) {
  const Split at = split_at(in[0].tensor().shape(), 1);
  const auto targets = integers(in[1].tensor());
  const auto weights = doubles_at(in, 2);
  const auto ignored = ignored_class(call);
  std::vector<double> losses(targets.size());
  double sum = 0;
  double weight_sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == ignored) continue;
    if (targets[i] < 0 || targets[i] >= static_cast<int64_t>(at.length)) {
      fail(ErrorKind::InvalidArgument, title(call), ": target ", targets[i], " is none of ", at.length, " classes");
    }
    const auto target = static_cast<size_t>(targets[i]);
    const double weight = weights.empty() ? 1 : weights[target];
    losses[i] = -logarithms[(i / at.inner * at.length + target) * at.inner + i % at.inner] * weight;
    sum += losses[i];
    weight_sum += weight;
  }
  const std::string reduction = reduction_of(call);
  if (reduction == "mean") sum /= weight_sum;
  put(call, out, 0, reduction == "none" ? std::span<const double>(losses) : std::span<const double>(&sum, 1));
}

void run_likelihood(const OpCall& call, std::span<const Data> in, Outputs& out) {
  target_shape(with_data(call, in));
  put_loss(call, in, doubles(in[0].tensor()), out);
}

void run_cross_entropy(const OpCall& call, std::span<const Data> in, Outputs& out) {
  target_shape(with_data(call, in));
  const Split at = split_at(in[0].tensor().shape(), 1);
  auto values = doubles(in[0].tensor());
  for (size_t line = 0; line < at.outer * at.inner && at.length > 0; ++line) {
    double* const first = &values[line / at.inner * at.length * at.inner + line % at.inner];
    double top = *first;
    for (size_t c = 0; c < at.length; ++c) top = std::max(top, first[c * at.inner]);
    double sum = 0;
    for (size_t c = 0; c < at.length; ++c) sum += std::exp(first[c * at.inner] - top);
    for (size_t c = 0; c < at.length; ++c) first[c * at.inner] -= top + std::log(sum);
  }
  if (call.wants_output(1)) put(call, out, 1, std::span<const double>(values));
  put_loss(call, in, values, out);
}

// As put_loss, from operators.
void expand_loss(Formula& f, ValueId logarithms) {
  const ValueId axis = f.ints({1});
  ValueId targets = f.add("Cast", {f.raw(1)}, {{"to", onnx_number(DType::I64)}});
  ValueId mask = no_value;
  if (const auto ignored = ignored_class(f.call())) {
    mask = f.add("Equal", {targets, f.ints({*ignored})});
    targets = f.add("Where", {mask, f.ints({0}), targets});
  }
  const ValueId picked = f.add("GatherElements", {logarithms, f.add("Unsqueeze", {targets, axis})}, {{"axis", int64_t{1}}});
  ValueId loss = f.add("Neg", {f.add("Squeeze", {picked, axis})});
  ValueId weights = no_value;
  if (f.has(2)) {
    weights = f.add("Gather", {f.input(2), targets}, {{"axis", int64_t{0}}});
    loss = f.product(loss, weights);
  }
  if (mask != no_value) {
    loss = f.add("Where", {mask, f.number(0), loss});
    weights = f.add("Where", {mask, f.number(0), weights == no_value ? f.number(1) : weights});
  }
  const std::string reduction = reduction_of(f.call());
  const auto total = [&f](ValueId value, std::string op) { return f.add(std::move(op), {value}, {{"keepdims", int64_t{0}}}); };
  if (reduction == "sum") loss = total(loss, "ReduceSum");
  if (reduction == "mean") {
    loss = weights == no_value ? total(loss, "ReduceMean") : f.quotient(total(loss, "ReduceSum"), total(weights, "ReduceSum"));
  }
  f.output(0, loss);
}

void expand_likelihood(GraphBuilder& builder) {
  Formula f(builder);
  expand_loss(f, f.input(0));
}

void expand_cross_entropy(GraphBuilder& builder) {
  Formula f(builder);
  const ValueId logarithms = f.add("LogSoftmax", {f.input(0)}, {{"axis", int64_t{1}}});
  if (f.call().wants_output(1)) f.output(1, logarithms);
  expand_loss(f, logarithms);
}

Op loss_op(std::string name, std::string summary, const std::vector<std::string>& ports) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required(ports[0], float_types()), required(ports[1], index_types()), optional(ports[2], float_types())};
  op.outputs = {required(ports[3], float_types())};
  op.attributes = {{"reduction", std::string("mean")}};
  op.infer = infer_loss;
  op.cost = cost_per_input(1);
  op.rounding = Rounding::Sum;
  op.category = Category::Reduction;
  op.cases = {"T[3,5]~small i64[3]~index:5 reduction=none,sum,mean",
              "T[3,5]~small i32[3]~index:5 T[5]~positive reduction=none,sum,mean",
              "T[3,5,2]~small i64[3,2]~index:5 reduction=none,sum,mean",
              "T[3,5,6,7]~small i64[3,6,7]~index:5 T[5]~positive reduction=none,sum,mean ignore_index=1",
              "T[3,5,6]~small i64[3,6]~index:5 reduction=none,sum,mean ignore_index=2",
              "T[3,5]~small i64[3]{0,-7,4} T[5]~positive reduction=none,mean ignore_index=-7",
              "T[3,5]~small i64[3]{0,10,4} reduction=none,mean ignore_index=10",
              "T[2,3]~small i64[2]{1,1} reduction=none,sum ignore_index=1",
              "T[2,3,2,1,2]~small i64[2,2,1,2]~index:3 T[3]~positive",
              "T[1,1]~small i64[1]{0}",
              "T[0,3] i64[0] reduction=none,sum",
              "T[2,3,0] i64[2,0] reduction=none,sum"};
  return op;
}

}  // namespace

void add_loss_ops(OpSet& ops) {
  Op likelihood = loss_op("NegativeLogLikelihoodLoss",
                          "The negative log-probabilities of the targets, weighted by class, or their sum or mean.",
                          {"input", "target", "weight", "loss"});
  likelihood.infer = [](const OpCall& call) { return std::vector<Type>{infer_loss(call)[0]}; };
  likelihood.reference = run_likelihood;
  likelihood.expand = expand_likelihood;
  ops.add(std::move(likelihood));

  Op entropy = loss_op("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss of the scores' LogSoftmax over the classes.",
                       {"scores", "labels", "weights", "output"});
  entropy.outputs.push_back(optional("log_prob", float_types()));
  entropy.reference = run_cross_entropy;
  entropy.expand = expand_cross_entropy;
  entropy.cost = cost_per_input(12);
  entropy.rounding = Rounding::Function;
  entropy.cases.emplace_back("T[3,5,2]~small i64[3,2]~index:5 T[5]~positive reduction=none,mean ignore_index=3 outputs=2");
  entropy.cases.emplace_back("f32[2,3]{1000,1000,999,-1000,0,1000} i64[2]{2,0} reduction=none outputs=2");
  ops.add(std::move(entropy));
}

}  // namespace unmoor
