#include <cmath>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/activate.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/real.h"

namespace unmoor {

namespace {

double as_double(float value) { return static_cast<double>(value); }

// An activation of one input. `make` reads the attributes and returns the function.
Op activation(std::string name, std::string summary, double flop, Rounding rounding,
              std::function<std::function<double(double)>(const OpCall&)> make) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", float_types())};
  op.outputs = {required("Y", float_types())};
  op.infer = like_first;
  op.reference = [make = std::move(make), flop](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const std::function<double(double)> function = make(call);
    map_reals(in[0].tensor(), out.allocate(0, call.output(0)), flop, function);
  };
  op.cost = cost_per_output(flop);
  op.rounding = rounding;
  op.category = Category::Activation;
  op.cases = {"T[2,3,5]", "T[257]~small", "T[]", "T[0,4]", "T[1,7,3,3]~small", "f32[2,33]~special"};
  return op;
}

float read(const OpCall& call, std::string_view key, float otherwise) {
  return static_cast<float>(call.real(key, as_double(otherwise)));
}

void add_linear_ones(OpSet& ops) {
  Op relu =
      activation("Relu", "x, or 0 below 0.", 1, Rounding::MoveBits, [](const OpCall&) { return activation_named("Relu", {}); });
  relu.inputs[0].dtypes =
      relu.outputs[0].dtypes = {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::I16, DType::I32, DType::I64};
  relu.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    Tensor& result = out.allocate(0, call.output(0));
    with_lane(result.dtype(), [&](auto lane) {
      if constexpr (std::is_same_v<decltype(lane), double>) return map_reals(in[0].tensor(), result, 1, [](double x) { return x < 0 ? 0 : x; });
      std::vector<decltype(lane)> values = read_as<decltype(lane)>(in[0].tensor());
      for (auto& value : values) value = value < 0 ? 0 : value;
      write_as<decltype(lane)>(result, values);
    });
  };
  ops.add(std::move(relu));

  Op leaky = activation("LeakyRelu", "x, or alpha·x below 0.", 2, Rounding::Steps, [](const OpCall& call) {
    return activation_named("LeakyRelu", std::vector<float>{read(call, "alpha", 0.01F)});
  });
  leaky.attributes = {{"alpha", 0.01F}};
  leaky.cases.emplace_back("T[2,17] alpha=0.1,0.0,-0.5");
  ops.add(std::move(leaky));

  Op threshold = activation("ThresholdedRelu", "x above alpha, else 0.", 1, Rounding::MoveBits, [](const OpCall& call) {
    return [alpha = call.real("alpha", 1)](double x) { return x > alpha ? x : 0; };
  });
  threshold.attributes = {{"alpha", 1.0F}};
  threshold.cases.emplace_back("T[2,17] alpha=0.5,2.0");
  ops.add(std::move(threshold));

  Op hard = activation("HardSigmoid", "alpha·x + beta, limited to 0 and 1.", 4, Rounding::Steps, [](const OpCall& call) {
    return activation_named("HardSigmoid", std::vector<float>{read(call, "alpha", 0.2F), read(call, "beta", 0.5F)});
  });
  hard.attributes = {{"alpha", 0.2F}, {"beta", 0.5F}};
  hard.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const ValueId line =
        f.sum(f.product(f.input(0), f.number(f.call().real("alpha", as_double(0.2F)))), f.number(f.call().real("beta", 0.5)));
    f.output(0, f.add("Clip", {line, f.number(0), f.number(1)}));
  };
  hard.cases.emplace_back("T[2,17] alpha=0.25,0.5 beta=0.5,0.6");
  ops.add(std::move(hard));

  Op hard_swish_op = activation("HardSwish", "x times HardSigmoid of x with alpha 1/6 and beta 1/2.", 5, Rounding::Steps,
                                [](const OpCall&) { return hard_swish; });
  hard_swish_op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const ValueId x = f.input(0);
    const ValueId line = f.sum(f.product(x, f.number(1.0 / 6)), f.number(0.5));
    f.output(0, f.product(x, f.add("Clip", {line, f.number(0), f.number(1)})));
  };
  ops.add(std::move(hard_swish_op));
}

void add_exponential_ones(OpSet& ops) {
  ops.add(activation("Sigmoid", "1 / (1 + e^-x).", 10, Rounding::Function, [](const OpCall&) { return sigmoid; }));
  ops.add(activation("Softplus", "log(1 + e^x).", 16, Rounding::Function, [](const OpCall&) { return softplus; }));
  ops.add(activation("Softsign", "x / (1 + |x|).", 3, Rounding::Steps,
                     [](const OpCall&) { return [](double x) { return x / (1 + std::fabs(x)); }; }));
  Op elu = activation("Elu", "x, or alpha·(e^x - 1) below 0.", 10, Rounding::Function, [](const OpCall& call) {
    return [alpha = call.real("alpha", 1)](double x) { return x < 0 ? alpha * std::expm1(x) : x; };
  });
  elu.attributes = {{"alpha", 1.0F}};
  elu.cases.emplace_back("T[2,17] alpha=0.5,2.0");
  ops.add(std::move(elu));
  constexpr float selu_alpha = 1.67326319217681884765625F;
  constexpr float selu_gamma = 1.05070102214813232421875F;
  Op selu = activation("Selu", "gamma·x, or gamma·alpha·(e^x - 1) below 0.", 11, Rounding::Function, [](const OpCall& call) {
    return [alpha = call.real("alpha", as_double(selu_alpha)), gamma = call.real("gamma", as_double(selu_gamma))](double x) {
      return gamma * (x <= 0 ? alpha * std::expm1(x) : x);
    };
  });
  selu.attributes = {{"alpha", selu_alpha}, {"gamma", selu_gamma}};
  selu.cases.emplace_back("T[2,17] alpha=2.0 gamma=3.0");
  ops.add(std::move(selu));
  Op celu = activation("Celu", "max(0, x) + min(0, alpha·(e^(x/alpha) - 1)).", 12, Rounding::Function, [](const OpCall& call) {
    return [alpha = call.real("alpha", 1)](double x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; };
  });
  celu.attributes = {{"alpha", 1.0F}};
  celu.cases.emplace_back("T[2,17] alpha=0.5,2.0,-0.5");
  ops.add(std::move(celu));
  Op mish = activation("Mish", "x·tanh(log(1 + e^x)).", 26, Rounding::Function,
                       [](const OpCall&) { return [](double x) { return x * std::tanh(softplus(x)); }; });
  mish.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const ValueId x = f.input(0);
    f.output(0, f.product(x, f.add("Tanh", {f.add("Softplus", {x})})));
  };
  ops.add(std::move(mish));
}

void expand_gelu(Formula& f, ValueId x, bool tanh) {
  const ValueId half = f.product(x, f.number(0.5));
  ValueId bend{};
  if (tanh) {
    const ValueId cube = f.product(f.square(x), x);
    const ValueId inside = f.product(f.sum(x, f.product(cube, f.number(0.044715))), f.number(std::sqrt(2 / std::numbers::pi)));
    bend = f.add("Tanh", {inside});
  } else {
    bend = f.add("Erf", {f.product(x, f.number(1 / std::numbers::sqrt2))});
  }
  f.output(0, f.product(half, f.sum(bend, f.number(1))));
}

bool wants_tanh(const OpCall& call) {
  const std::string approximate = call.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    fail(ErrorKind::InvalidModel, title(call), ": approximate is '", approximate, "', not none or tanh");
  }
  return approximate == "tanh";
}

void expand_swish(GraphBuilder& builder, double alpha) {
  Formula f(builder);
  const ValueId x = f.input(0);
  const ValueId inside = alpha == 1 ? x : f.product(x, f.number(alpha));
  f.output(0, f.product(x, f.add("Sigmoid", {inside})));
}

void add_gelus(OpSet& ops) {
  Op gelu_op = activation("Gelu", "x times the normal distribution function of x, or its tanh approximation.", 20,
                          Rounding::Function, [](const OpCall& call) { return wants_tanh(call) ? gelu_tanh : gelu; });
  gelu_op.attributes = {{"approximate", std::string("none")}};
  gelu_op.infer = [](const OpCall& call) { return wants_tanh(call), like_first(call); };
  gelu_op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    expand_gelu(f, f.input(0), wants_tanh(f.call()));
  };
  gelu_op.cases = {"T[2,3,5] approximate=none,tanh", "T[257]~small approximate=none,tanh", "T[]", "T[0,4]",
                   "f32[2,33]~special approximate=none,tanh"};
  ops.add(std::move(gelu_op));
  Op contrib = activation("com.microsoft:Gelu", "x times the normal distribution function of x.", 20, Rounding::Function,
                          [](const OpCall&) { return gelu; });
  contrib.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    expand_gelu(f, f.input(0), false);
  };
  ops.add(std::move(contrib));
  Op swish_op = activation("Swish", "x·sigmoid(alpha·x).", 12, Rounding::Function, [](const OpCall& call) {
    return [alpha = call.real("alpha", 1)](double x) { return swish(x, alpha); };
  });
  swish_op.attributes = {{"alpha", 1.0F}};
  swish_op.expand = [](GraphBuilder& builder) { expand_swish(builder, builder.call().real("alpha", 1)); };
  swish_op.cases.emplace_back("T[2,17] alpha=0.5,2.0");
  ops.add(std::move(swish_op));
  Op quick = activation("com.microsoft:QuickGelu", "x·sigmoid(alpha·x).", 12, Rounding::Function, [](const OpCall& call) {
    return [alpha = call.real("alpha", as_double(1.702F))](double x) { return swish(x, alpha); };
  });
  quick.attributes = {{"alpha", 1.702F}};
  quick.expand = [](GraphBuilder& builder) { expand_swish(builder, builder.call().real("alpha", as_double(1.702F))); };
  ops.add(std::move(quick));
}

// The gate's Swish times the other input, without broadcasting.
void add_swiglu(OpSet& ops) {
  Op op = activation("SwiGLU", "A·sigmoid(alpha·A)·B.", 13, Rounding::Function, {});
  op.inputs = {required("A", float_types()), required("B", float_types())};
  op.attributes = {{"alpha", 1.0F}};
  op.infer = [](const OpCall& call) {
    require_same_dtype(call);
    const Shape& a = call.input(0).shape;
    const Shape& b = call.input(1).shape;
    if (!a.has_rank() || !b.has_rank()) return std::vector<Type>{TensorType{call.input(0).dtype, a.has_rank() ? a : b}};
    require_rank(call, 1, a.rank());
    Shape shape;
    for (size_t axis = 0; axis < a.rank(); ++axis) {
      same_dim(call, a[axis], b[axis], "a dimension of A and B");
      shape.push_back(a[axis] < 0 ? b : a, axis);
    }
    return std::vector<Type>{TensorType{call.input(0).dtype, shape}};
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    std::vector<double> a = doubles(in[0].tensor());
    const std::vector<double> b = doubles(in[1].tensor());
    const double alpha = call.real("alpha", 1);
    for (size_t i = 0; i < a.size(); ++i) a[i] = swish(a[i], alpha) * b[i];
    put(call, out, 0, std::span<const double>(a));
  };
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    f.output(0, f.product(f.add("Swish", {f.input(0)}, {{"alpha", read(f.call(), "alpha", 1)}}), f.input(1)));
  };
  op.cases = {"T[2,3,5]~small T[2,3,5]~small alpha=1.0,0.5,-2.0,0.0",
              "T[257]~small T[257]~small",
              "T[] T[]",
              "T[0,4] T[0,4]",
              "T[1,7,3,3]~small T[1,7,3,3]~small",
              "T[1,1]~small T[1,1]~small",
              "T[3,64]~small T[3,64]~small!",
              "f32[2,33]~special f32[2,33]~small"};
  ops.add(std::move(op));
}

// com.microsoft's Gelu of x + bias, the bias along the last axis.
Op biased(std::string name, std::string summary, bool tanh) {
  Op op = activation(std::move(name), std::move(summary), 21, Rounding::Function, {});
  op.inputs = {required("X", float_types()), tanh ? optional("bias", float_types()) : required("bias", float_types())};
  op.infer = [](const OpCall& call) {
    if (call.has(1)) require_rank(call, 1, 1), require_broadcast_to(call, 1, call.input(0).shape);
    return like_first(call);
  };
  op.reference = [tanh](const OpCall& call, std::span<const Data> in, Outputs& out) {
    std::vector<double> x = doubles(in[0].tensor());
    const std::vector<double> bias = doubles_at(in, 1);
    for (size_t i = 0; i < x.size(); ++i) {
      const double sum = bias.empty() ? x[i] : x[i] + bias[i % bias.size()];
      x[i] = tanh ? gelu_tanh(sum) : gelu(sum);
    }
    put(call, out, 0, std::span<const double>(x));
  };
  op.expand = [tanh](GraphBuilder& builder) {
    Formula f(builder);
    expand_gelu(f, f.has(1) ? f.sum(f.input(0), f.input(1)) : f.input(0), tanh);
  };
  op.cases = {"T[2,3,17] T[17]!", "T[5,64]~small T[64]!", "T[0,4] T[4]!"};
  if (tanh) op.cases.emplace_back("T[2,33]");
  return op;
}

template <class T>
T product(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return a * b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));  // Wraps around.
  }
}

// A slope for each element, broadcast to X; below zero only.
void add_prelu(OpSet& ops) {
  const std::vector<DType> dtypes{DType::F32, DType::F16, DType::BF16, DType::F64,
                                  DType::I32, DType::I64, DType::U32,  DType::U64};
  Op op = activation("PRelu", "x, or slope·x below 0.", 2, Rounding::Steps, {});
  op.inputs = {required("X", dtypes), required("slope", dtypes)};
  op.outputs = {required("Y", dtypes)};
  op.infer = [](const OpCall& call) {
    require_same_dtype(call);
    require_broadcast_to(call, 1, call.input(0).shape);
    return like_first(call);
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    Tensor& result = out.allocate(0, call.output(0));
    with_lane(result.dtype(), [&](auto lane) {
      using T = decltype(lane);
      std::vector<T> x = read_as<T>(in[0].tensor());
      const std::vector<T> slope = read_as<T>(in[1].tensor());
      walk<1>(result.shape(), {broadcast_strides(in[1].tensor().shape(), result.shape())}, [&](size_t i, const auto& at) {
        if (x[i] < 0) x[i] = product(x[i], slope[static_cast<size_t>(at[0])]);
      });
      write_as<T>(result, x);
    });
  };
  op.cases = {"T[2,3,4] T[3,1]!", "T[2,3,4] T[1]!", "T[2,3,4] T[2,3,4]", "T[1,4,5,5] T[4,1,1]!", "T[0,4] T[4]",
              "T[5] T[]",         "T[] T[]"};
  ops.add(std::move(op));
}

void add_shrink(OpSet& ops) {
  Op op =
      activation("Shrink", "x + bias below -lambd, x - bias above lambd, else 0.", 2, Rounding::Steps, [](const OpCall& call) {
        return [lambd = call.real("lambd", 0.5), bias = call.real("bias", 0)](double x) {
          return x < -lambd ? x + bias : x > lambd ? x - bias : 0;
        };
      });
  op.inputs[0].dtypes = op.outputs[0].dtypes = number_types();
  op.attributes = {{"lambd", 0.5F}, {"bias", 0.0F}};
  op.cases.emplace_back("T[2,17] lambd=1.5 bias=0.0,1.5");
  ops.add(std::move(op));
}

}  // namespace

void add_activation_ops(OpSet& ops) {
  add_linear_ones(ops);
  add_exponential_ones(ops);
  add_gelus(ops);
  add_swiglu(ops);
  ops.add(biased("com.microsoft:BiasGelu", "Gelu of x plus a bias.", false));
  ops.add(biased("com.microsoft:FastGelu", "The tanh approximation of Gelu, of x plus a bias if there is one.", true));
  add_prelu(ops);
  add_shrink(ops);
}

}  // namespace unmoor
