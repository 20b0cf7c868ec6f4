#include "unmoor/ops/elementwise.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/families.h"

namespace unmoor {

namespace {

const std::vector<std::string>& binary_cases() {
  static const std::vector<std::string> list{"T[2,3,4] T[2,3,4]", "T[2,3,4] T[4]", "T[3,1] T[2,1,5]", "T[] T[7]",      "T[5] T[]",
                                             "T[0,4] T[4]",       "T[33] T[1]",    "T[] T[]",         "T[2,3] T[2,3]!"};
  return list;
}

// Wraps around as two's complement does, without overflow of a signed type.
template <class T, class Function>
T wrapping(T a, T b, Function function) {
  if constexpr (std::is_same_v<T, double>) {
    return function(a, b);
  } else {
    return static_cast<T>(function(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }
}

// Truncates toward zero; ONNX leaves integer division by zero undefined: it gives 0 here.
template <class T>
T divide(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrapping(T{0}, a, std::minus<>());
    }
    return a / b;
  }
}

// The remainder: with the dividend's sign if `fmod`, else with the divisor's. 0 for integers modulo 0.
template <class T>
T modulo(T a, T b, bool fmod) {
  if constexpr (std::is_same_v<T, double>) {
    const double rest = std::fmod(a, b);
    if (fmod || std::isnan(rest)) return rest;
    if (rest == 0) return std::copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    const T rest = static_cast<T>(a % b);
    if constexpr (std::is_signed_v<T>) {
      if (!fmod && rest != 0 && (rest < 0) != (b < 0)) return rest + b;
    }
    return rest;
  }
}

Op arithmetic(std::string name, std::string summary, double flop, Rounding rounding) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("A", number_types()), required("B", number_types())};
  op.outputs = {required("C", number_types())};
  op.infer = infer_binary;
  op.cost = cost_per_output(flop);
  op.rounding = rounding;
  op.cases = binary_cases();
  return op;
}

void add_basic(OpSet& ops) {
  Op add = arithmetic("Add", "The sum of two tensors.", 1, Rounding::Steps);
  add.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return wrapping(a, b, std::plus<>()); });
  };
  ops.add(std::move(add));
  Op sub = arithmetic("Sub", "The difference of two tensors.", 1, Rounding::Steps);
  sub.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return wrapping(a, b, std::minus<>()); });
  };
  ops.add(std::move(sub));
  Op mul = arithmetic("Mul", "The product of two tensors.", 1, Rounding::Steps);
  mul.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return wrapping(a, b, std::multiplies<>()); });
  };
  ops.add(std::move(mul));
  Op div = arithmetic("Div", "The quotient of two tensors; integers truncate toward zero.", 1, Rounding::Steps);
  div.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return divide(a, b); });
  };
  div.cases = {"T[2,3,4] T[2,3,4]~positive", "T[2,3,4] T[4]~positive",     "T[3,1] T[2,1,5]~positive",
               "T[] T[7]~positive",          "T[5] T[]~positive",          "T[0,4] T[4]",
               "T[33] T[1]~positive!",       "f32[2,17] f32[17]",          "i32[4]{7,-7,7,-7} i32[4]{2,2,-2,-2}",
               "i64[3]{5,-5,9} i64[]{3}",    "u8[3]{255,7,0} u8[3]{2,7,3}",
               "u32[2]{7,4294967295} u32[2]{4294967295,4294967295}", "u64[2]{7,18446744073709551615} u64[]{18446744073709551615}"};
  ops.add(std::move(div));
}

template <class T>
T integer_power(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if constexpr (std::is_signed_v<T>) {
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    }
    return 0;
  }
  uint64_t result = 1;
  uint64_t factor = static_cast<uint64_t>(base);
  for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1U) {
    if ((left & 1U) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

// The base and the exponent may differ in dtype; the result has the base's.
void power_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = out.allocate(0, call.output(0));
  const Shape& shape = result.shape();
  const std::array<std::vector<int64_t>, 2> strides{broadcast_strides(in[0].tensor().shape(), shape),
                                                    broadcast_strides(in[1].tensor().shape(), shape)};
  if (is_float(call.input(0).dtype) || is_float(call.input(1).dtype)) {
    const std::vector<double> base = doubles(in[0].tensor());
    const std::vector<double> exponent = doubles(in[1].tensor());
    std::vector<double> values(result.elements());
    walk<2>(shape, strides, [&](size_t i, const std::array<int64_t, 2>& at) {
      values[i] = std::pow(base[static_cast<size_t>(at[0])], exponent[static_cast<size_t>(at[1])]);
    });
    write_as<double>(result, values);
    return;
  }
  const std::vector<int64_t> exponent = integers(in[1].tensor());
  with_lane(call.input(0).dtype, [&](auto lane) {
    using T = decltype(lane);
    const std::vector<T> base = read_as<T>(in[0].tensor());
    if constexpr (!std::is_same_v<T, double>) {
      std::vector<T> values(result.elements());
      walk<2>(shape, strides, [&](size_t i, const std::array<int64_t, 2>& at) {
        values[i] = integer_power(base[static_cast<size_t>(at[0])], exponent[static_cast<size_t>(at[1])]);
      });
      write_as<T>(result, values);
    }
  });
}

void add_power_and_modulo(OpSet& ops) {
  Op pow = arithmetic("Pow", "A to the power of B, in the dtype of A.", 10, Rounding::Function);
  pow.inputs = {required("X", number_types()), required("Y", number_types())};
  pow.outputs = {required("Z", number_types())};
  pow.infer = like_first_broadcast;
  pow.reference = power_reference;
  pow.cases = {"f32[2,3,4]~positive f32[2,3,4]~unit",
               "T[2,3,4] T[]{2}",
               "T[2,17] T[1]{3}",
               "T[2,3,4]~positive f32[4]~unit",
               "T[5] i64[5]{0,1,2,3,4}",
               "T[0,4] T[4]",
               "f32[7]~positive f32[]{0.5}",
               "f32[7]~positive f32[]{-0.5}",
               "f32[4]{-2,-2,-8,0} f32[4]{3,-1,0.5,-1}",
               "i32[3]{2,-3,0} i32[3]{10,3,0}",
               "i64[3]{1,2,3} f32[3]{2,0.5,2}"};
  ops.add(std::move(pow));

  Op mod = arithmetic("Mod", "The remainder of a division: of the divisor's sign, or of the dividend's if fmod is 1.", 4,
                      Rounding::Steps);
  mod.attributes = {{"fmod", int64_t{0}}};
  mod.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const bool fmod = call.integer("fmod", 0) != 0;
    binary_reference(call, in, out, [fmod](auto a, auto b) { return modulo(a, b, fmod); });
  };
  mod.cases = {"T[2,3,4] T[2,3,4]~positive fmod=1",
               "f32[4]{-4.5,4.5,-4.5,4.5} f32[4]{2,2,-2,-2} fmod=1",
               "f32[6]{-4.5,4.5,-4.5,4.5,0,-3} f32[6]{2,2,-2,-2,-2,inf} fmod=0",
               "i32[6]{-4,7,5,4,-7,8} i32[6]{2,-3,8,-2,3,5} fmod=0,1",
               "i64[2,3] i64[3]~positive",
               "u8[4]{255,9,7,0} u8[]{5}",
               "i32[0,4] i32[4]"};
  ops.add(std::move(mod));
}

// Folds all inputs from the left with `step`, then `finish`es each element with the count.
template <class Step, class Finish>
void fold_reference(const OpCall& call, std::span<const Data> in, Outputs& out, Step step, Finish finish) {
  Tensor& result = out.allocate(0, call.output(0));
  const Shape& shape = result.shape();
  with_lane(call.input(0).dtype, [&](auto lane) {
    using T = decltype(lane);
    if constexpr (std::is_same_v<T, double>) {
      if (in.size() == 2) return combine_reals(in[0].tensor(), in[1].tensor(), result, [&](double a, double b) { return finish(step(a, b), 2); });
    }
    std::vector<T> values(result.elements());
    for (size_t k = 0; k < in.size(); ++k) {
      const std::vector<T> more = read_as<T>(in[k].tensor());
      walk<1>(shape, {broadcast_strides(in[k].tensor().shape(), shape)}, [&](size_t i, const std::array<int64_t, 1>& at) {
        const T value = more[static_cast<size_t>(at[0])];
        values[i] = k == 0 ? value : step(values[i], value);
      });
    }
    for (T& value : values) value = finish(value, in.size());
    write_as<T>(result, values);
  });
}


Op fold(std::string name, std::string summary, const std::vector<DType>& dtypes, Rounding rounding, std::string output) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {variadic("data_0", dtypes)};
  op.outputs = {required(std::move(output), dtypes)};
  op.infer = infer_binary;
  op.cost = [](const OpCall& call) {
    return Cost{elements_or_zero(call.output(0).shape) * static_cast<double>(call.input_count() - 1), bytes_moved(call)};
  };
  op.rounding = rounding;
  op.cases = {"T[2,3,4] T[4]", "T[2,3,4] T[2,3,4] T[2,3,4]",         "T[3,1] T[1,5] T[]", "T[5]", "T[0,4] T[4]",
              "T[] T[]",       "f32[2,33]~special f32[2,33]~special"};
  return op;
}

// A chain of two-input operators, left to right.
void expand_chain(GraphBuilder& builder, const std::string& op) {
  ValueId value = builder.input(0);
  for (size_t i = 1; i < builder.call().input_count(); ++i) value = builder.add(op, {value, builder.input(i)});
  builder.output(0, value);
}

void add_folds(OpSet& ops) {
  const auto same = [](auto value, size_t) { return value; };
  Op max = fold("Max", "The greatest of all inputs, element by element; NaN wins.", number_types(), Rounding::MoveBits, "max");
  max.reference = [same](const OpCall& call, std::span<const Data> in, Outputs& out) {
    fold_reference(
        call, in, out, [](auto a, auto b) { return extreme(a, b, true); }, same);
  };
  ops.add(std::move(max));
  Op min = fold("Min", "The least of all inputs, element by element; NaN wins.", number_types(), Rounding::MoveBits, "min");
  min.reference = [same](const OpCall& call, std::span<const Data> in, Outputs& out) {
    fold_reference(
        call, in, out, [](auto a, auto b) { return extreme(a, b, false); }, same);
  };
  ops.add(std::move(min));
  const auto plus = [](auto a, auto b) { return wrapping(a, b, std::plus<>()); };
  Op sum = fold("Sum", "The sum of all inputs, element by element.", float_types(), Rounding::Sum, "sum");
  sum.reference = [same, plus](const OpCall& call, std::span<const Data> in, Outputs& out) {
    fold_reference(call, in, out, plus, same);
  };
  sum.expand = [](GraphBuilder& builder) {
    if (builder.call().input_count() == 1) {
      builder.output(0, builder.add("Identity", {builder.input(0)}));
    } else {
      expand_chain(builder, "Add");
    }
  };
  ops.add(std::move(sum));
  Op mean = fold("Mean", "The mean of all inputs, element by element.", float_types(), Rounding::Sum, "mean");
  mean.reference = [plus](const OpCall& call, std::span<const Data> in, Outputs& out) {
    fold_reference(call, in, out, plus, [](auto value, size_t count) {
      return static_cast<decltype(value)>(value / static_cast<decltype(value)>(count));
    });
  };
  mean.expand = [](GraphBuilder& builder) {
    ValueId value = builder.input(0);
    const size_t count = builder.call().input_count();
    for (size_t i = 1; i < count; ++i) value = builder.add("Add", {value, builder.input(i)});
    builder.output(0, builder.add("Div", {value, builder.scalar(static_cast<double>(count), builder.call().input(0).dtype)}));
  };
  ops.add(std::move(mean));
}

}  // namespace

std::vector<Type> infer_binary(const OpCall& call) {
  require_same_dtype(call);
  return like_first_broadcast(call);
}

void add_arithmetic_ops(OpSet& ops) {
  add_basic(ops);
  add_power_and_modulo(ops);
  add_folds(ops);
}

void add_elementwise_ops(OpSet& ops) {
  add_unary_ops(ops);
  add_arithmetic_ops(ops);
  add_comparison_ops(ops);
}

}  // namespace unmoor
