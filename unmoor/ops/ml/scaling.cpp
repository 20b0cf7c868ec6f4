#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/ml/ml.h"

namespace unmoor::ml {
namespace {

// Features are the last dimension. A list of one value serves all of them.
void require_one_or_each(const OpCall& call, std::string_view key, size_t found) {
  const Shape& shape = call.input(0).shape;
  if (found == 1 || !shape.has_rank()) return;
  const int64_t width = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (width >= 0 && found != static_cast<size_t>(width)) {
    fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' has ", found, " elements for ", width, " features");
  }
}

// The values that an Imputer puts in, of the input's dtype.
Tensor imputed_values(const OpCall& call) {
  const DType dtype = call.input(0).dtype;
  const std::string_view key = is_float(dtype) ? "imputed_value_floats" : "imputed_value_int64s";
  const std::vector<double> reals = real_list(call, "imputed_value_floats");
  const std::vector<int64_t> whole = call.integers("imputed_value_int64s");
  const size_t count = is_float(dtype) ? reals.size() : whole.size();
  if (count == 0 || reals.empty() == whole.empty()) {
    fail(ErrorKind::InvalidModel, title(call), ": for ", dtype, " the attribute '", key, "' and no other must have values");
  }
  require_one_or_each(call, key, count);
  Tensor values(TensorType{dtype, Shape{static_cast<int64_t>(count)}});
  if (is_float(dtype)) {
    store(values, std::span<const double>(reals));
    return values;
  }
  store(values, std::span<const int64_t>(whole));
  if (integers(values) != whole) fail(ErrorKind::InvalidModel, title(call), ": an imputed value does not fit ", dtype);
  return values;
}

std::vector<Type> infer_imputer(const OpCall& call) {
  imputed_values(call);
  return like_first(call);
}

template <class T>
void impute(Tensor& result, const Tensor& data, const Tensor& values, T replaced) {
  std::vector<T> elements = read_as<T>(data);
  const std::vector<T> put_in = read_as<T>(values);
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool both_nan = std::isnan(static_cast<double>(elements[i])) && std::isnan(static_cast<double>(replaced));
    if (both_nan || elements[i] == replaced) elements[i] = put_in[i % put_in.size()];
  }
  write_as<T>(result, elements);
}

void run_imputer(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const Tensor values = imputed_values(call);
  Tensor& result = out.allocate(0, data.type());
  if (is_float(data.dtype())) {
    impute<double>(result, data, values, call.real("replaced_value_float", 0));
  } else {
    impute<int64_t>(result, data, values, call.integer("replaced_value_int64", 0));
  }
}

void expand_imputer(GraphBuilder& b) {
  const OpCall& call = b.call();
  const DType dtype = call.input(0).dtype;
  const double replaced = call.real("replaced_value_float", 0);
  ValueId matches = no_value;
  if (is_float(dtype)) {
    matches = std::isnan(replaced) ? b.add("IsNaN", {b.input(0)}) : b.add("Equal", {b.input(0), b.scalar(replaced, dtype)});
  } else {
    Tensor wanted(TensorType{dtype, Shape()});
    const int64_t whole = call.integer("replaced_value_int64", 0);
    store(wanted, std::span<const int64_t>(&whole, 1));
    if (integers(wanted)[0] != whole) fail(ErrorKind::Unsupported, title(call), " replaces what no ", dtype, " is");
    matches = b.add("Equal", {b.input(0), b.constant(std::move(wanted))});
  }
  Tensor values = imputed_values(call);
  if (values.elements() == 1) values = values.reshaped(Shape());  // So that a scalar stays one.
  b.output(0, b.add("Where", {matches, b.constant(std::move(values)), b.input(0)}));
}

// By what a row is divided. NaN if one of its elements is.
double norm_of(const std::string& norm, std::span<const double> row) {
  double result = norm == "MAX" ? -std::numeric_limits<double>::infinity() : 0;
  for (const double x : row) {
    if (norm == "MAX") {
      result = std::isnan(result) || result > x ? result : x;
    } else {
      result += norm == "L1" ? std::fabs(x) : x * x;
    }
  }
  return norm == "L2" ? std::sqrt(result) : result;
}

std::vector<Type> infer_normalizer(const OpCall& call) {
  const std::string norm = call.text("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    fail(ErrorKind::InvalidModel, title(call), ": norm is '", norm, "', not MAX, L1 or L2");
  rows_of(call, call.input(0).shape);
  return {TensorType{float_output(call), call.input(0).shape}};
}

// The text's formulas say max(X), sum(X) and a root without a sign. L1 and L2 are norms, so magnitudes are summed and signs stay,
// as in both ONNX's evaluator and ONNX Runtime; for MAX the text and ONNX Runtime agree on no magnitudes.
void run_normalizer(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const std::string norm = call.text("norm", "MAX");
  std::vector<double> x = doubles(in[0].tensor());
  const Rows rows = rows_of(call, in[0].tensor().shape());
  const auto width = static_cast<size_t>(rows.width);
  for (size_t row = 0; row < static_cast<size_t>(rows.count) && width > 0; ++row) {
    const auto line = std::span(x).subspan(row * width, width);
    const double divisor = norm_of(norm, line);
    if (divisor == 0) continue;
    for (double& value : line) value /= divisor;
  }
  put(call, out, 0, std::span<const double>(x));
}

void expand_normalizer(GraphBuilder& b) {
  const std::string norm = b.call().text("norm", "MAX");
  Formula f(b, arithmetic_type(b.call()));
  const ValueId x = f.input(0);
  const ValueId found = f.reduce(norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2", x, {-1});
  const ValueId divisor = f.add("Where", {f.add("Equal", {found, f.number(0)}), f.number(1), found});
  f.output(0, f.quotient(x, divisor));
}

// Offsets and scales, each empty where it is left out.
struct Scaling {
  std::vector<double> offset;
  std::vector<double> scale;
};

Scaling scaling_of(const OpCall& call) {
  Scaling found{real_list(call, "offset"), real_list(call, "scale")};
  for (const std::string_view key : {"offset", "scale"}) {
    const size_t count = key == "offset" ? found.offset.size() : found.scale.size();
    if (count > 0) require_one_or_each(call, key, count);
  }
  if (!found.offset.empty() && !found.scale.empty()) require_length(call, "scale", found.scale.size(), found.offset.size());
  return found;
}

std::vector<Type> infer_scaler(const OpCall& call) {
  scaling_of(call);
  return {TensorType{float_output(call), call.input(0).shape}};
}

void run_scaler(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Scaling scaling = scaling_of(call);
  std::vector<double> x = doubles(in[0].tensor());
  for (size_t i = 0; i < x.size(); ++i) {
    if (!scaling.offset.empty()) x[i] -= scaling.offset[i % scaling.offset.size()];
    if (!scaling.scale.empty()) x[i] *= scaling.scale[i % scaling.scale.size()];
  }
  put(call, out, 0, std::span<const double>(x));
}

void expand_scaler(GraphBuilder& b) {
  const Scaling scaling = scaling_of(b.call());
  Formula f(b, arithmetic_type(b.call()));
  ValueId x = f.input(0);
  if (!scaling.offset.empty()) x = f.difference(x, list_constant(b, scaling.offset, f.dtype()));
  if (!scaling.scale.empty()) x = f.product(x, list_constant(b, scaling.scale, f.dtype()));
  if (scaling.offset.empty() && scaling.scale.empty()) x = f.add("Identity", {x});
  f.output(0, x);
}

Op imputer() {
  Op op = ml_op("Imputer", "One value replaced by another, which may differ by feature.");
  op.inputs = {required("X", feature_types())};
  op.outputs = {required("Y", feature_types())};
  op.attributes = {{"imputed_value_floats", std::vector<float>()},
                   {"imputed_value_int64s", std::vector<int64_t>()},
                   {"replaced_value_float", 0.0F},
                   {"replaced_value_int64", int64_t{0}}};
  op.infer = infer_imputer;
  op.reference = run_imputer;
  op.expand = expand_imputer;
  op.rounding = Rounding::MoveBits;
  op.cases = {"i32[]{1} imputed_value_int64s=[7] replaced_value_int64=1",
              "f32[2,3]{1,nan,3,nan,5,nan} imputed_value_floats=[7],[0.5,-1,2] replaced_value_float=nan",
              "f64[2,3]{1,nan,3,nan,5,nan} imputed_value_floats=[7],[0.5,-1,2] replaced_value_float=nan",
              "f32[2,3]{1,0,-0,4,5,0} imputed_value_floats=[7,8,9]",
              "f32[4]{-1,2,-1,inf} imputed_value_floats=[1,2,3,4],[nan] replaced_value_float=-1,inf",
              "i64[2,3]{1,-1,3,-1,9007199254740993,-1} imputed_value_int64s=[7],[9007199254740993,-1,2] replaced_value_int64=-1",
              "i32[3,2]{0,1,2,0,0,5} imputed_value_int64s=[-2147483648],[4,5]",
              "i32[2]{0,1} imputed_value_int64s=[7] replaced_value_int64=1,0",
              "f32[0,3] imputed_value_floats=[1,2,3]",
              "f32[5,1]~special imputed_value_floats=[9] replaced_value_float=nan",
              "f32[2,2,2]{1,nan,nan,4,5,6,nan,nan} imputed_value_floats=[10,20] replaced_value_float=nan",
              "f32[1]{nan} imputed_value_floats=[0] replaced_value_float=nan"};
  return op;
}

Op normalizer() {
  Op op = ml_op("Normalizer", "Each row divided by its greatest element, the sum of its magnitudes, or its length.");
  op.inputs = {required("X", feature_types())};
  op.outputs = {required("Y", {DType::F32})};
  op.attributes = {{"norm", std::string("MAX")}};
  op.infer = infer_normalizer;
  op.reference = run_normalizer;
  op.expand = expand_normalizer;
  op.cost = cost_per_output(3);
  op.category = Category::Normalization;
  op.cases = {"T[3,5]~small norm=MAX,L1,L2",
              "T[7]~small norm=MAX,L1,L2",
              "T[1,4]{0,0,0,0} norm=MAX,L1,L2",
              "T[2,3]{-1,-2,-4,1,-1,0} norm=MAX,L1,L2",
              "T[0,3] norm=MAX,L1,L2",
              "T[4,1]~positive norm=MAX,L1,L2",
              "f32[2,2]{nan,1,2,4} norm=L1,L2,MAX",
              "f32[1,3]{-1,0,-2}",
              "f32[2,400]~small norm=L2",
              "i64[1,2]{4000000000,3} norm=L2"};
  return op;
}

Op scaler() {
  Op op = ml_op("Scaler", "Features less an offset, times a scale.");
  op.inputs = {required("X", feature_types())};
  op.outputs = {required("Y", {DType::F32})};
  op.attributes = {{"offset", std::vector<float>()}, {"scale", std::vector<float>()}};
  op.infer = infer_scaler;
  op.reference = run_scaler;
  op.expand = expand_scaler;
  op.cost = cost_per_output(2);
  op.cases = {"T[3,2]~small offset=[1,-2] scale=[0.5,3]",
              "T[3,2]~small offset=[1] scale=[0.25]",
              "T[3,2]~small offset=[1,-2]",
              "T[3,2]~small scale=[2,0.1]",
              "T[3,2]~small",
              "T[4]~small offset=[1,2,3,4] scale=[1,2,3,4]",
              "T[0,2] offset=[1,2] scale=[1,2]",
              "T[2,2,3]~small offset=[1,2,3] scale=[-1,0,1]",
              "f32[2,2]~special offset=[1] scale=[0.5]",
              "f64[1,2]{1e10,-1e10} offset=[1e10,0] scale=[1,1]",
              "i64[1]{123456789012345} offset=[0] scale=[0.001]"};
  return op;
}

}  // namespace

void add_scaling_ops(OpSet& ops) {
  ops.add(imputer());
  ops.add(normalizer());
  ops.add(scaler());
}

}  // namespace unmoor::ml
