#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/elementwise.h"
#include "unmoor/ops/nan.h"

namespace unmoor {

namespace {

Op unary(std::string name, std::string summary, const std::vector<DType>& dtypes, double flop, Rounding rounding) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", dtypes)};
  op.outputs = {required("Y", dtypes)};
  op.infer = like_first;
  op.cost = cost_per_output(flop);
  op.rounding = rounding;
  return op;
}

struct FloatFunction {
  const char* name;
  const char* summary;
  double (*function)(double);
  double flop;
  Rounding rounding;
  const char* generator;  // For the inputs of most cases.
};

// To nearest, ties to even: the default rounding mode of the processor.
double round_even(double x) { return std::nearbyint(x); }

const FloatFunction float_functions[] = {
    {"Sqrt", "The square root; NaN below zero.", std::sqrt, 1, Rounding::Steps, "positive"},
    {"Reciprocal", "One divided by x.", [](double x) { return 1 / x; }, 1, Rounding::Steps, "positive"},
    {"Exp", "e to the power of x.", std::exp, 8, Rounding::Function, "small"},
    {"Log", "The natural logarithm; NaN below zero.", std::log, 8, Rounding::Function, "positive"},
    {"Erf", "The error function.", std::erf, 16, Rounding::Function, "small"},
    {"Sin", "The sine.", std::sin, 8, Rounding::Function, "small"},
    {"Cos", "The cosine.", std::cos, 8, Rounding::Function, "small"},
    {"Tan", "The tangent.", std::tan, 12, Rounding::Function, "unit"},
    {"Asin", "The arc sine; NaN outside of -1 to 1.", std::asin, 12, Rounding::Function, "unit"},
    {"Acos", "The arc cosine; NaN outside of -1 to 1.", std::acos, 12, Rounding::Function, "unit"},
    {"Atan", "The arc tangent.", std::atan, 12, Rounding::Function, "small"},
    {"Sinh", "The hyperbolic sine.", std::sinh, 10, Rounding::Function, "small"},
    {"Cosh", "The hyperbolic cosine.", std::cosh, 10, Rounding::Function, "small"},
    {"Tanh", "The hyperbolic tangent.", std::tanh, 10, Rounding::Function, "small"},
    {"Asinh", "The inverse hyperbolic sine.", std::asinh, 12, Rounding::Function, "small"},
    {"Acosh", "The inverse hyperbolic cosine; NaN below 1.", std::acosh, 12, Rounding::Function, "positive"},
    {"Atanh", "The inverse hyperbolic tangent; NaN outside of -1 to 1.", std::atanh, 12, Rounding::Function, "unit"},
    {"Floor", "The greatest whole number not above x.", std::floor, 1, Rounding::MoveBits, ""},
    {"Ceil", "The least whole number not below x.", std::ceil, 1, Rounding::MoveBits, ""},
    {"Round", "The nearest whole number; halves go to the even one.", round_even, 1, Rounding::MoveBits, ""},
};

constexpr double function_cost = 10;  // About how many nanoseconds one takes.

void add_float_functions(OpSet& ops) {
  for (const FloatFunction& entry : float_functions) {
    Op op = unary(entry.name, entry.summary, float_types(), entry.flop, entry.rounding);
    op.reference = [function = entry.function](const OpCall& call, std::span<const Data> in, Outputs& out) {
      map_reals(in[0].tensor(), out.allocate(0, call.output(0)), function_cost, function);
    };
    const std::string generator = entry.generator;
    const std::string suffix = generator.empty() ? "" : cat("~", generator);
    op.cases = {cat("T[2,3,5]", suffix), cat("T[257]", suffix), cat("T[]", suffix), "T[0,4]", "f32[2,33]~special"};
    if (op.name == "Round") op.cases.emplace_back("f32[9]{-2.5,-1.5,-0.5,-0.25,0.5,0.75,1.5,2.5,3.5}");
    if (op.name == "Tanh" || op.name == "Erf") op.category = Category::Activation;
    ops.add(std::move(op));
  }
}

template <class T>
T sign_of(T x) {
  if (is_nan(x)) return x;
  return static_cast<T>(static_cast<int>(x > T{0}) - static_cast<int>(x < T{0}));
}

template <class T>
T negated(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return -x;
  } else {
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  }
}

template <class T>
T magnitude(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::fabs(x);
  } else if constexpr (std::is_signed_v<T>) {
    return x < 0 ? negated(x) : x;
  } else {
    return x;
  }
}

template <class Function>
void any_reference(const OpCall& call, std::span<const Data> in, Outputs& out, Function function) {
  Tensor& result = out.allocate(0, call.output(0));
  with_lane(call.input(0).dtype, [&](auto lane) {
    using T = decltype(lane);
    if constexpr (std::is_same_v<T, double>) return map_reals(in[0].tensor(), result, 1, function);
    std::vector<T> values = read_as<T>(in[0].tensor());
    for (T& value : values) value = function(value);
    write_as<T>(result, values);
  });
}

void add_signs(OpSet& ops) {
  const std::vector<std::string> cases{"T[2,3,5]", "T[257]", "T[]", "T[0,4]", "f32[2,33]~special", "i8[4]{-128,-1,0,127}"};
  Op abs = unary("Abs", "The absolute value.", number_types(), 1, Rounding::MoveBits);
  abs.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    any_reference(call, in, out, [](auto x) { return magnitude(x); });
  };
  abs.cases = cases;
  ops.add(std::move(abs));
  Op neg = unary("Neg", "The negative.",
                 {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32, DType::I64, DType::I8, DType::I16}, 1,
                 Rounding::MoveBits);
  neg.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    any_reference(call, in, out, [](auto x) { return negated(x); });
  };
  neg.cases = cases;
  ops.add(std::move(neg));
  Op sign = unary("Sign", "-1, 0 or 1; NaN stays.", number_types(), 1, Rounding::MoveBits);
  sign.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    any_reference(call, in, out, [](auto x) { return sign_of(x); });
  };
  sign.cases = cases;
  ops.add(std::move(sign));
}

std::vector<Type> infer_clip(const OpCall& call) {
  require_same_dtype(call);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!call.has(i) || !call.input(i).shape.is_known() || call.input(i).shape.elements() == 1) continue;
    fail(ErrorKind::InvalidModel, title(call), ": bound ", i, " has shape ", call.input(i).shape, "; one element was expected");
  }
  return like_first(call);
}

void clip_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = out.allocate(0, call.output(0));
  with_lane(call.input(0).dtype, [&](auto lane) {
    using T = decltype(lane);
    std::vector<T> values = read_as<T>(in[0].tensor());
    for (const size_t i : {size_t{1}, size_t{2}}) {
      if (tensor_at(in, i) == nullptr) continue;
      const T bound = read_as<T>(*tensor_at(in, i)).at(0);
      for (T& value : values) value = extreme(value, bound, i == 1);
    }
    write_as<T>(result, values);
  });
}

void expand_clip(GraphBuilder& builder) {
  ValueId value = builder.input(0);
  const auto bound = [&](size_t i) {
    const Shape& shape = builder.call().input(i).shape;
    const bool scalar = shape.has_rank() && shape.rank() == 0;
    return scalar ? builder.input(i) : builder.add("Reshape", {builder.input(i), builder.ints({})});
  };
  if (builder.input(1) != no_value) value = builder.add("Max", {value, bound(1)});
  if (builder.input(2) != no_value) value = builder.add("Min", {value, bound(2)});
  builder.output(0, value == builder.input(0) ? builder.add("Identity", {value}) : value);
}

void add_clip(OpSet& ops) {
  Op clip = unary("Clip", "Limits to min and max; all become max where min is greater.", number_types(), 2, Rounding::MoveBits);
  clip.inputs = {required("input", number_types()), optional("min", number_types()), optional("max", number_types())};
  clip.outputs = {required("output", number_types())};
  clip.infer = infer_clip;
  clip.reference = clip_reference;
  clip.expand = expand_clip;
  clip.category = Category::Activation;
  clip.cases = {"T[2,3,5] T[]{0} T[]{6}",
                "T[33] - T[]{1}",
                "T[2,3,5] T[] T[]{6}",
                "T[33] T[]{1}",
                "T[3,5] T[1,1]{0} T[1]{1}",
                "T[33]",
                "T[0,4] T[]{0} T[]{1}",
                "f32[7] f32[]{2} f32[]{-2}",
                "f32[2,33]~special f32[]{-1} f32[]{1}",
                "f32[3]{1,-2,nan} f32[]{nan} f32[]{1}",
                "f32[3]{1,-2,nan} - f32[]{nan}",
                "T[3] T[1,1]{0} T[1]{1}",
                "i8[5]{-128,-5,0,5,127} i8[]{-4} i8[]{4}"};
  ops.add(std::move(clip));
}

}  // namespace

void add_unary_ops(OpSet& ops) {
  add_float_functions(ops);
  add_signs(ops);
  add_clip(ops);
}

}  // namespace unmoor
