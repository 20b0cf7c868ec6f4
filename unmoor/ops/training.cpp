#include <array>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"

// Optimizers of ai.onnx.preview.training. Inputs: the learning rate, the number of updates made, then all tensors, all their
// gradients and all of each state that is kept of past gradients. Outputs: the new tensors, then the new states.
namespace unmoor {
namespace {

// Updates one element x and its states, [x, state…], by its gradient.
using Step = std::function<void(double gradient, std::span<double> values)>;
using Values = std::vector<ValueId>;

struct Optimizer {
  size_t states = 1;
  Step (*step)(const OpCall& call, double rate, double updates);
  Values (*formula)(Formula& f, ValueId rate, ValueId updates, ValueId gradient, const Values& values);
};

constexpr float small_number = 1e-6F;

double setting(const OpCall& call, std::string_view key, float otherwise) {
  return call.real(key, static_cast<double>(otherwise));
}

double needed_setting(const OpCall& call, std::string_view key) {
  if (!call.has_attribute(key)) fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' is missing");
  return call.real(key, 0);
}

// How many tensors are updated.
size_t tensor_count(const OpCall& call, size_t parts) {
  const size_t given = call.input_count() < 2 ? 0 : call.input_count() - 2;
  if (given == 0 || given % parts != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": ", given, " tensors are not ", parts, " for each one to update");
  }
  return given / parts;
}

// Where part `part` of tensor `i` stands among the inputs: 0 the tensor, 1 its gradient, then its states.
size_t input_of(size_t count, size_t part, size_t i) { return 2 + part * count + i; }

std::vector<Type> infer_optimizer(const OpCall& call, size_t states) {
  const size_t count = tensor_count(call, states + 2);
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = call.input(i).shape;
    if (shape.is_known() && shape.elements() != 1)
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", shape, ", not one element");
  }
  std::vector<Type> types;
  for (size_t part = 0; part < states + 2; ++part) {
    for (size_t i = 0; i < count; ++i) {
      const TensorType& tensor = call.input(input_of(count, 0, i));
      const TensorType& type = call.input(input_of(count, part, i));
      if (tensor.is_known() && type.is_known() && tensor.shape != type.shape) {
        fail(ErrorKind::InvalidModel, title(call), ": input ", input_of(count, part, i), " has shape ", type.shape, ", not ",
             tensor.shape);
      }
      if (part != 1) types.emplace_back(type);
    }
  }
  return types;
}

void run_optimizer(const OpCall& call, std::span<const Data> in, Outputs& out, const Optimizer& optimizer) {
  infer_optimizer(with_data(call, in), optimizer.states);
  const size_t count = tensor_count(call, optimizer.states + 2);
  const Step step = optimizer.step(call, doubles(in[0].tensor()).at(0), doubles(in[1].tensor()).at(0));
  for (size_t i = 0; i < count; ++i) {
    const auto gradient = doubles(in[input_of(count, 1, i)].tensor());
    std::vector<std::vector<double>> parts{doubles(in[input_of(count, 0, i)].tensor())};
    for (size_t state = 0; state < optimizer.states; ++state)
      parts.push_back(doubles(in[input_of(count, state + 2, i)].tensor()));
    std::vector<double> values(parts.size());
    for (size_t k = 0; k < gradient.size(); ++k) {
      for (size_t part = 0; part < parts.size(); ++part) values[part] = parts[part][k];
      step(gradient[k], values);
      for (size_t part = 0; part < parts.size(); ++part) parts[part][k] = values[part];
    }
    for (size_t part = 0; part < parts.size(); ++part) {
      if (call.wants_output(part * count + i)) put(call, out, part * count + i, std::span<const double>(parts[part]));
    }
  }
}

void expand_optimizer(GraphBuilder& builder, const Optimizer& optimizer) {
  const OpCall& call = builder.call();
  const size_t count = tensor_count(call, optimizer.states + 2);
  DType dtype = DType::F32;
  for (size_t i = 0; i < call.input_count(); ++i) dtype = call.input(i).dtype == DType::F64 ? DType::F64 : dtype;
  Formula f(builder, dtype);
  const auto scalar = [&](size_t i) { return f.reshaped(f.input(i), {}); };
  for (size_t i = 0; i < count; ++i) {
    Values values{f.input(input_of(count, 0, i))};
    for (size_t state = 0; state < optimizer.states; ++state) values.push_back(f.input(input_of(count, state + 2, i)));
    const Values updated = optimizer.formula(f, scalar(0), scalar(1), f.input(input_of(count, 1, i)), values);
    for (size_t part = 0; part < updated.size(); ++part) {
      if (call.wants_output(part * count + i)) f.output(part * count + i, updated[part]);
    }
  }
}

// The gradient with that of norm_coefficient / 2 times the squared tensor added.
ValueId regularized(Formula& f, ValueId x, ValueId gradient) {
  return f.sum(f.product(f.number(f.call().real("norm_coefficient", 0)), x), gradient);
}

Step adagrad_step(const OpCall& call, double rate, double updates) {
  const double r = rate / (1 + updates * call.real("decay_factor", 0));
  const double norm = call.real("norm_coefficient", 0);
  const double epsilon = setting(call, "epsilon", small_number);
  return [=](double gradient, std::span<double> values) {
    const double g = norm * values[0] + gradient;
    values[1] += g * g;
    values[0] -= r * g / (std::sqrt(values[1]) + epsilon);
  };
}

Values adagrad_formula(Formula& f, ValueId rate, ValueId updates, ValueId gradient, const Values& values) {
  const ValueId r = f.quotient(rate, f.sum(f.number(1), f.product(updates, f.number(f.call().real("decay_factor", 0)))));
  const ValueId g = regularized(f, values[0], gradient);
  const ValueId squares = f.sum(values[1], f.square(g));
  const ValueId size = f.sum(f.add("Sqrt", {squares}), f.number(setting(f.call(), "epsilon", small_number)));
  return {f.difference(values[0], f.quotient(f.product(r, g), size)), squares};
}

struct AdamSettings {
  double alpha, beta, norm, norm_after, epsilon;
  explicit AdamSettings(const OpCall& call)
      : alpha(setting(call, "alpha", 0.9F)),
        beta(setting(call, "beta", 0.999F)),
        norm(call.real("norm_coefficient", 0)),
        norm_after(call.real("norm_coefficient_post", 0)),
        epsilon(setting(call, "epsilon", small_number)) {}
};

Step adam_step(const OpCall& call, double rate, double updates) {
  const AdamSettings s(call);
  const double r = updates > 0 ? rate * std::sqrt(1 - std::pow(s.beta, updates)) / (1 - std::pow(s.alpha, updates)) : rate;
  return [=](double gradient, std::span<double> values) {
    const double g = s.norm * values[0] + gradient;
    values[1] = s.alpha * values[1] + (1 - s.alpha) * g;
    values[2] = s.beta * values[2] + (1 - s.beta) * g * g;
    values[0] = (1 - s.norm_after) * (values[0] - r * values[1] / (std::sqrt(values[2]) + s.epsilon));
  };
}

Values adam_formula(Formula& f, ValueId rate, ValueId updates, ValueId gradient, const Values& values) {
  const AdamSettings s(f.call());
  const auto rest = [&](double base) { return f.difference(f.number(1), f.add("Pow", {f.number(base), updates})); };
  const ValueId adjusted = f.quotient(f.product(rate, f.add("Sqrt", {rest(s.beta)})), rest(s.alpha));
  const ValueId r = f.add("Where", {f.add("Greater", {updates, f.number(0)}), adjusted, rate});
  const ValueId g = regularized(f, values[0], gradient);
  const ValueId mean = f.sum(f.product(f.number(s.alpha), values[1]), f.product(f.number(1 - s.alpha), g));
  const ValueId squares = f.sum(f.product(f.number(s.beta), values[2]), f.product(f.number(1 - s.beta), f.square(g)));
  const ValueId size = f.sum(f.add("Sqrt", {squares}), f.number(s.epsilon));
  const ValueId x = f.difference(values[0], f.quotient(f.product(r, mean), size));
  return {f.product(f.number(1 - s.norm_after), x), mean, squares};
}

bool is_nesterov(const OpCall& call) {
  const std::string mode = call.text("mode", "");
  if (mode != "nesterov" && mode != "standard")
    fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not nesterov or standard");
  return mode == "nesterov";
}

Step momentum_step(const OpCall& call, double rate, double updates) {
  const bool nesterov = is_nesterov(call);
  const double alpha = needed_setting(call, "alpha");
  const double beta = updates > 0 ? needed_setting(call, "beta") : 1;
  const double norm = needed_setting(call, "norm_coefficient");
  return [=](double gradient, std::span<double> values) {
    const double g = norm * values[0] + gradient;
    values[1] = alpha * values[1] + beta * g;
    values[0] -= rate * (nesterov ? g + alpha * values[1] : values[1]);
  };
}

Values momentum_formula(Formula& f, ValueId rate, ValueId updates, ValueId gradient, const Values& values) {
  const ValueId alpha = f.number(needed_setting(f.call(), "alpha"));
  const ValueId first = f.add("Greater", {updates, f.number(0)});
  const ValueId beta = f.add("Where", {first, f.number(needed_setting(f.call(), "beta")), f.number(1)});
  const ValueId g = regularized(f, values[0], gradient);
  const ValueId momentum = f.sum(f.product(alpha, values[1]), f.product(beta, g));
  const ValueId direction = is_nesterov(f.call()) ? f.sum(g, f.product(alpha, momentum)) : momentum;
  return {f.difference(values[0], f.product(rate, direction)), momentum};
}

std::vector<Type> infer_momentum(const OpCall& call) {
  is_nesterov(call);
  for (const char* key : {"alpha", "beta", "norm_coefficient"}) needed_setting(call, key);
  return infer_optimizer(call, 1);
}

Op optimizer_op(std::string_view name, std::string summary, Optimizer optimizer) {
  Op op;
  op.name = cat("ai.onnx.preview.training:", name);
  op.summary = std::move(summary);
  const std::vector<DType> types{DType::F32, DType::F64};
  op.inputs = {required("R", types), required("T", {DType::I64}), variadic("inputs", types)};
  op.outputs = {variadic("outputs", types)};
  op.infer = [optimizer](const OpCall& call) { return infer_optimizer(call, optimizer.states); };
  op.reference = [optimizer](const OpCall& call, std::span<const Data> in, Outputs& out) {
    run_optimizer(call, in, out, optimizer);
  };
  op.expand = [optimizer](GraphBuilder& builder) { expand_optimizer(builder, optimizer); };
  op.cost = cost_per_output(12);
  return op;
}

}  // namespace

void add_training_ops(OpSet& ops) {
  Op adagrad = optimizer_op("Adagrad", "One step of Adagrad (Duchi, Hazan, Singer 2011).", {1, adagrad_step, adagrad_formula});
  adagrad.attributes = {{"decay_factor", 0.0F}, {"epsilon", small_number}, {"norm_coefficient", 0.0F}};
  const std::string one = "T[]~unit i64[]{3} T[4]~small T[4]~small T[4]~positive";
  const std::string two =
      "T[]~unit i64[]{1} T[2,3]~small T[1]~small T[2,3]~small T[1]~small T[2,3]~positive T[1]~positive outputs=4";
  const std::string none = "T[1]~unit i64[1]{0} T[0] T[0] T[0] outputs=2";
  adagrad.cases = {cat(one, " outputs=2"), cat(one, " decay_factor=0.1 epsilon=0.01 norm_coefficient=0.001 outputs=2"),
                   cat(two, " norm_coefficient=0.5"), none,
                   "f64[]~unit i64[]{0} f32[3]~small f32[3]~small f32[3]~positive decay_factor=0.5 outputs=2"};
  ops.add(std::move(adagrad));

  Op momentum = optimizer_op("Momentum", "One step along the gradient with momentum, in the standard or Nesterov's form.",
                             {1, momentum_step, momentum_formula});
  momentum.infer = infer_momentum;
  const std::string settings = " alpha=0.95 beta=0.1 norm_coefficient=0.001 mode=standard,nesterov";
  momentum.cases = {cat(one, settings, " outputs=2"), cat(two, settings), cat(none, settings),
                    cat("T[]~unit i64[]{0} T[3]~small T[3]~small T[3]~small outputs=2", settings)};
  ops.add(std::move(momentum));

  Op adam = optimizer_op("Adam", "One step of Adam (Kingma, Ba 2014), with bias correction after the first.",
                         {2, adam_step, adam_formula});
  adam.attributes = {
      {"alpha", 0.9F}, {"beta", 0.999F}, {"epsilon", small_number}, {"norm_coefficient", 0.0F}, {"norm_coefficient_post", 0.0F}};
  adam.cases = {
      "T[]~unit i64[]{1} T[4]~small T[4]~small T[4]~small T[4]~positive outputs=3",
      "T[]~unit i64[]{0} T[4]~small T[4]~small T[4]~small T[4]~positive outputs=3",
      "T[]~unit i64[]{500} T[2,2]~small T[2,2]~small T[2,2]~small T[2,2]~positive outputs=3",
      "T[]~unit i64[]{2} T[4]~small T[4]~small T[4]~small T[4]~positive alpha=0.95 beta=0.9 epsilon=0.01 norm_coefficient=0.1 "
      "norm_coefficient_post=0.2 outputs=3",
      "T[]~unit i64[]{2} T[2]~small T[3]~small T[2]~small T[3]~small T[2]~small T[3]~small T[2]~positive T[3]~positive outputs=6",
      "T[1]~unit i64[1]{0} T[0] T[0] T[0] T[0] outputs=3"};
  ops.add(std::move(adam));
}

}  // namespace unmoor
