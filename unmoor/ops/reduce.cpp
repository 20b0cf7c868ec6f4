#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/along_axis.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/nan.h"
#include "unmoor/ops/real.h"

namespace unmoor {

namespace {

enum class Kind { Sum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare };

// Roots and logarithms leave the whole numbers.
bool needs_double(Kind kind) { return kind == Kind::L2 || kind == Kind::LogSum || kind == Kind::LogSumExp; }

// Which axes go, by axis. No axes: all of them, or none with noop_with_empty_axes.
std::vector<bool> reduced_axes(const OpCall& call, const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<bool> reduced(shape.rank(), axes.empty() && call.integer("noop_with_empty_axes", 0) == 0);
  for (const int64_t axis : axes) reduced[axis_of(call, shape, axis)] = true;
  return reduced;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keep) {
  Shape result;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[axis]) {
      result.push_back(shape, axis);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return result;
}

bool keeps_dims(const OpCall& call) { return call.integer("keepdims", 1) != 0; }

std::vector<Type> infer_reduce(const OpCall& call) {
  const TensorType& data = call.input(0);
  const bool keep = keeps_dims(call);
  if (!data.shape.has_rank()) return {TensorType{data.dtype, Shape::of_unknown_rank()}};
  if (!call.has(1)) return {TensorType{data.dtype, reduced_shape(data.shape, reduced_axes(call, data.shape, {}), keep)}};
  if (const auto axes = constant_integers(call, 1)) {
    return {TensorType{data.dtype, reduced_shape(data.shape, reduced_axes(call, data.shape, *axes), keep)}};
  }
  return {TensorType{data.dtype, keep ? unknown_shape(data.shape.rank()) : Shape::of_unknown_rank()}};
}

template <class T>
T lowest(DType dtype) {
  if constexpr (std::is_same_v<T, double>) {
    return -std::numeric_limits<double>::infinity();
  } else {
    if (!std::is_signed_v<T> || dtype == DType::Bool) return 0;
    return static_cast<T>(-(int64_t{1} << (bits_of(dtype) - 2)) * 2);
  }
}

template <class T>
T highest(DType dtype) {
  if constexpr (std::is_same_v<T, double>) {
    return std::numeric_limits<double>::infinity();
  } else {
    if (dtype == DType::Bool) return 1;
    const size_t bits = bits_of(dtype) - (std::is_signed_v<T> ? 1 : 0);
    return static_cast<T>(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  }
}

template <class T>
T start(Kind kind, DType dtype) {
  if (kind == Kind::Max) return lowest<T>(dtype);
  if (kind == Kind::Min) return highest<T>(dtype);
  return kind == Kind::Prod ? T{1} : T{0};
}

// One more element. Integers wrap around: their arithmetic is done unsigned.
template <class T>
T step(Kind kind, T so_far, T x) {
  using U = std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;
  const auto a = static_cast<U>(so_far);
  const auto b = static_cast<U>(x);
  switch (kind) {
    case Kind::Max:
      return is_nan(so_far) || so_far > x ? so_far : x;
    case Kind::Min:
      return is_nan(so_far) || so_far < x ? so_far : x;
    case Kind::Prod:
      return static_cast<T>(a * b);
    case Kind::L1:
      return static_cast<T>(x < T{0} ? a - b : a + b);
    case Kind::L2:
    case Kind::SumSquare:
      return static_cast<T>(a + b * b);
    default:
      return static_cast<T>(a + b);
  }
}

// How many elements that lie side by side make each result; 0 if those of a result do not.
size_t row_length(const Shape& shape, const std::vector<bool>& reduced) {
  size_t axis = shape.rank();
  while (axis > 0 && reduced[axis - 1]) --axis;
  for (size_t i = 0; i < axis; ++i) {
    if (reduced[i] && shape[i] != 1) return 0;
  }
  return static_cast<size_t>(shape.elements(axis, shape.rank()));
}

template <class T>
std::vector<T> folded(Kind kind, DType dtype, std::span<const T> x, const Shape& shape, const std::vector<bool>& reduced) {
  const Shape kept = reduced_shape(shape, reduced, true);
  std::vector<T> result(static_cast<size_t>(kept.elements()), start<T>(kind, dtype));
  if (const size_t length = row_length(shape, reduced); length > 0 && !x.empty()) {
    side_by_side_ranges(result.size(), static_cast<double>(length), [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        T so_far = result[row];
        for (const T each : x.subspan(row * length, length)) so_far = step(kind, so_far, each);
        result[row] = so_far;
      }
    });
    return result;
  }
  walk<1>(shape, {broadcast_strides(kept, shape)}, [&](size_t i, const std::array<int64_t, 1>& at) {
    T& so_far = result[static_cast<size_t>(at[0])];
    so_far = step(kind, so_far, x[i]);
  });
  return result;
}

double elements_per_result(const Shape& shape, const std::vector<bool>& reduced) {
  double count = 1;
  for (size_t axis = 0; axis < shape.rank(); ++axis) count *= reduced[axis] ? static_cast<double>(shape[axis]) : 1;
  return count;
}

// log Σ e^x, with the greatest x taken out so that nothing overflows.
std::vector<double> log_sum_exp(std::vector<double> x, const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<double> top = folded<double>(Kind::Max, DType::F64, x, shape, reduced);
  for (double& value : top) value = std::isinf(value) ? 0 : value;
  const Shape kept = reduced_shape(shape, reduced, true);
  walk<1>(shape, {broadcast_strides(kept, shape)},
          [&](size_t i, const std::array<int64_t, 1>& at) { x[i] = std::exp(x[i] - top[static_cast<size_t>(at[0])]); });
  std::vector<double> sums = folded<double>(Kind::Sum, DType::F64, x, shape, reduced);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = top[i] + std::log(sums[i]);
  return sums;
}

std::vector<double> in_double(Kind kind, const Tensor& data, const std::vector<bool>& reduced) {
  if (kind == Kind::LogSumExp) return log_sum_exp(doubles(data), data.shape(), reduced);
  std::vector<double> result = folded<double>(kind, DType::F64, RealInput(data).numbers(), data.shape(), reduced);
  const double count = elements_per_result(data.shape(), reduced);
  for (double& value : result) {
    if (kind == Kind::Mean) value /= count;
    if (kind == Kind::L2) value = std::sqrt(value);
    if (kind == Kind::LogSum) value = std::log(value);
  }
  return result;
}

void reduce_reference(Kind kind, const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const std::vector<bool> reduced = reduced_axes(call, data.shape(), integers_at(in, 1));
  Tensor& result = out.allocate(0, {data.dtype(), reduced_shape(data.shape(), reduced, keeps_dims(call))});
  if (is_float(data.dtype()) || needs_double(kind)) {
    write_as<double>(result, in_double(kind, data, reduced));
    return;
  }
  with_lane(data.dtype(), [&](auto lane) {
    using T = decltype(lane);
    std::vector<T> values = folded<T>(kind, data.dtype(), read_as<T>(data), data.shape(), reduced);
    const auto count = static_cast<T>(elements_per_result(data.shape(), reduced));
    if (kind == Kind::Mean) {
      for (T& value : values) value = count == T{0} ? T{0} : value / count;
    }
    write_as<T>(result, values);
  });
}

void expand_reduce(Kind kind, GraphBuilder& builder) {
  Formula f = needs_double(kind) && !is_float(builder.call().input(0).dtype) ? Formula(builder, DType::F64) : Formula(builder);
  const auto reduced = [&f](std::string op, ValueId x, bool keep) {
    Attributes attributes{{"keepdims", int64_t{keep ? 1 : 0}},
                          {"noop_with_empty_axes", f.call().integer("noop_with_empty_axes", 0)}};
    return f.add(std::move(op), f.has(1) ? std::vector<ValueId>{x, f.raw(1)} : std::vector<ValueId>{x}, std::move(attributes));
  };
  const bool keep = keeps_dims(f.call());
  const ValueId x = f.input(0);
  if (kind == Kind::L1) {
    f.output(0, reduced("ReduceSum", f.add("Abs", {x}), keep));
  } else if (kind == Kind::L2) {
    f.output(0, f.add("Sqrt", {reduced("ReduceSum", f.square(x), keep)}));
  } else if (kind == Kind::SumSquare) {
    f.output(0, reduced("ReduceSum", f.square(x), keep));
  } else if (kind == Kind::LogSum) {
    f.output(0, f.add("Log", {reduced("ReduceSum", x, keep)}));
  } else {
    // An infinite greatest value must not be subtracted from itself.
    const double big = f.dtype() == DType::F64 ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
    const ValueId low = f.number(-big);
    const ValueId high = f.number(big);
    const ValueId top = f.add("Clip", {reduced("ReduceMax", x, true), low, high});
    const ValueId same = f.add("Clip", {reduced("ReduceMax", x, keep), low, high});
    const ValueId sum = reduced("ReduceSum", f.add("Exp", {f.difference(x, top)}), keep);
    f.output(0, f.sum(f.add("Log", {sum}), same));
  }
}

const std::vector<DType>& wide_types() {
  static const std::vector<DType> list{DType::F32, DType::F16, DType::BF16, DType::F64,
                                       DType::I32, DType::I64, DType::U32,  DType::U64};
  return list;
}

Op reduction(std::string name, std::string summary, Kind kind) {
  const bool picks = kind == Kind::Max || kind == Kind::Min;
  std::vector<DType> dtypes = wide_types();
  if (picks) dtypes.insert(dtypes.end(), {DType::I8, DType::U8, DType::Bool});
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("data", dtypes), optional("axes", {DType::I64})};
  op.outputs = {required("reduced", dtypes)};
  op.attributes = {{"keepdims", int64_t{1}}, {"noop_with_empty_axes", int64_t{0}}};
  op.infer = infer_reduce;
  op.reference = [kind](const OpCall& call, std::span<const Data> in, Outputs& out) { reduce_reference(kind, call, in, out); };
  if (needs_double(kind) || kind == Kind::L1 || kind == Kind::SumSquare) {
    op.expand = [kind](GraphBuilder& builder) { expand_reduce(kind, builder); };
  }
  op.cost = cost_per_input(kind == Kind::LogSumExp ? 10 : kind == Kind::SumSquare || kind == Kind::L2 ? 2 : 1);
  op.rounding = picks ? Rounding::MoveBits : kind == Kind::LogSumExp || kind == Kind::LogSum ? Rounding::Function : Rounding::Sum;
  op.category = Category::Reduction;
  const std::string data = kind == Kind::LogSum      ? "~positive"
                           : kind == Kind::Prod      ? "~unit"
                           : kind == Kind::LogSumExp ? "~small"
                                                     : "";
  const auto on = [&data](std::string_view shape, std::string_view rest) { return cat("T", shape, data, rest); };
  op.cases = {on("[2,3,4]", " i64[1]{1}! keepdims=0,1"),
              on("[2,3,4]", " i64[2]{-1,0}! keepdims=0,1"),
              on("[2,3,4]", " keepdims=0,1"),
              on("[5,257]", " i64[1]{1}! keepdims=0"),
              on("[3,4,5,6]", " i64[2]{2,3}!"),
              on("[3,4,5,6]", " i64[2]{0,2}!"),
              on("[2,3]", " i64[0] noop_with_empty_axes=0,1"),
              on("[2,3]", " noop_with_empty_axes=1"),
              on("[]", ""),
              on("[2,3,4]", " i64[1]{1}"),
              "f32[0,4] i64[1]{1}!",
              on("[1,1,7]", " i64[1]{0}!")};
  if (kind != Kind::Mean) op.cases.emplace_back("f32[3,0] i64[1]{1}!");
  if (kind == Kind::LogSumExp)
    op.cases.insert(op.cases.end(), {"f32[3]{3.4e38,-1,0}", "f64[3]{1e300,-1,0}", "f32[2,2]{-inf,-inf,inf,-inf} i64[1]{1}!"});
  if (picks)
    op.cases.insert(op.cases.end(), {"f32[4,33]~special i64[1]{1}!", "i8[2,0] i64[1]{1}!", "bool[3,4] i64[1]{-1}! keepdims=0"});
  return op;
}

}  // namespace

void add_reduce_ops(OpSet& ops) {
  ops.add(reduction("ReduceSum", "The sum over axes.", Kind::Sum));
  ops.add(reduction("ReduceMean", "The mean over axes.", Kind::Mean));
  ops.add(reduction("ReduceMax", "The greatest over axes; NaN wins.", Kind::Max));
  ops.add(reduction("ReduceMin", "The least over axes; NaN wins.", Kind::Min));
  ops.add(reduction("ReduceProd", "The product over axes.", Kind::Prod));
  ops.add(reduction("ReduceL1", "The sum of absolute values over axes.", Kind::L1));
  ops.add(reduction("ReduceL2", "The root of the sum of squares over axes.", Kind::L2));
  ops.add(reduction("ReduceLogSum", "The logarithm of the sum over axes.", Kind::LogSum));
  ops.add(reduction("ReduceLogSumExp", "The logarithm of the sum of exponentials over axes.", Kind::LogSumExp));
  ops.add(reduction("ReduceSumSquare", "The sum of squares over axes.", Kind::SumSquare));
  add_extreme_ops(ops);
  add_running_ops(ops);
}

}  // namespace unmoor
