#include "unmoor/base/error.h"
#include "unmoor/ops/compose.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/matrix.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/qlinear.h"

namespace unmoor {
namespace {

const std::vector<DType> byte_types{DType::U8, DType::I8};
const std::vector<DType> wide_types{DType::F32, DType::F64};

// `op` on two float64 tensors, or `a` itself where `b` is absent.
Tensor combined(const OpCall& call, const std::string& op, const Tensor& a, const Tensor* b) {
  return b == nullptr ? a : result_by(call, op, {a, as_float64(*b)});
}

void require_dtype(const OpCall& call, size_t i, DType dtype) {
  if (!call.has(i) || call.input(i).dtype == dtype) return;
  fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", dtype);
}

bool is_single(const OpCall& call, size_t i) {
  return !call.has(i) || (call.input(i).shape.is_known() && call.input(i).shape.elements() == 1);
}

Shape checked_product(const OpCall& call, const Shape& a, const Shape& b, size_t bias) {
  Shape shape = product_shape(call, a, b);
  if (call.has(bias)) require_broadcast_to(call, bias, shape);
  return shape;
}

// Inputs: A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias. Scales and zero points are one number or one a column.
std::vector<Type> infer_integer_to_float(const OpCall& call) {
  const DType dtype = call.input(2).dtype;
  for (const size_t i : {size_t{3}, size_t{6}}) require_dtype(call, i, dtype);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    require_dtype(call, 4 + i, call.input(i).dtype);
    if (!is_single(call, 2 + i)) require_broadcast_to(call, 2 + i, call.input(i).shape);
    if (!is_single(call, 4 + i)) require_broadcast_to(call, 4 + i, call.input(i).shape);
  }
  return {TensorType{dtype, checked_product(call, call.input(0).shape, call.input(1).shape, 6)}};
}

Tensor without_zero(const OpCall& call, const Tensor& matrix, const Tensor* zero, const Tensor* scale) {
  return combined(call, "Mul", combined(call, "Sub", as_float64(matrix), zero), scale);
}

void run_integer_to_float(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor a = without_zero(call, in[0].tensor(), tensor_at(in, 4), tensor_at(in, 2));
  const Tensor b = without_zero(call, in[1].tensor(), tensor_at(in, 5), tensor_at(in, 3));
  const Tensor y = combined(call, "Add", result_by(call, "MatMul", {a, b}), tensor_at(in, 6));
  put(call, out, 0, std::span<const double>(doubles(y)));
}

DType arithmetic_of(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

void expand_integer_to_float(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  Formula f(builder, arithmetic_of(call.output(0).dtype));
  ValueId y{};
  if (is_single(call, 2) && is_single(call, 4)) {
    const ValueId a_zero = f.has(4) ? f.reshaped(f.raw(4), {}) : no_value;
    const ValueId sum = f.add("MatMulInteger", {f.raw(0), f.raw(1), a_zero, f.has(5) ? f.raw(5) : no_value});
    y = f.product(f.wide(sum), f.product(f.reshaped(f.input(2), {}), f.input(3)));
  } else {
    const auto matrix = [&f](size_t i) {
      const ValueId centred = f.has(4 + i) ? f.difference(f.input(i), f.input(4 + i)) : f.input(i);
      return f.product(centred, f.input(2 + i));
    };
    y = f.add("MatMul", {matrix(0), matrix(1)});
  }
  f.output(0, f.has(6) ? f.sum(y, f.input(6)) : y);
}

Cost product_cost(const OpCall& call) {
  return {product_flop(call, call.input(0).shape, call.input(1).shape), bytes_moved(call)};
}

Op integer_to_float() {
  Op op;
  op.name = "com.microsoft:MatMulIntegerToFloat";
  op.summary = "The matrix product of dequantized bytes, plus a bias.";
  op.inputs = {required("A", byte_types),
               required("B", byte_types),
               required("a_scale", float_types()),
               required("b_scale", float_types()),
               optional("a_zero_point", byte_types),
               optional("b_zero_point", byte_types),
               optional("bias", float_types())};
  op.outputs = {required("Y", float_types())};
  op.infer = infer_integer_to_float;
  op.reference = run_integer_to_float;
  op.expand = expand_integer_to_float;
  op.cost = product_cost;
  op.rounding = Rounding::Sum;
  op.category = Category::Quantization;
  op.cases = {"u8[4,3] u8[3,2] T[]{0.05} T[]{0.02} u8[]{12} u8[]{0}",
              "u8[17,33] i8[33,9]! T[1]{0.01} T[9]~unit! u8[1]{128} i8[9]! T[9]~small!",
              "i8[2,3,4] i8[2,4,5] T[]{0.05} T[]{0.1} - - T[5]~small",
              "i8[4,3] u8[3,2] f32[3]~unit f32[2]~unit i8[3] u8[2]",
              "u8[4,3] i8[3,2] f32[]{0.05} f32[2]~unit! - i8[]{3}",
              "u8[0,3] u8[3,2] f32[]{1} f32[]{1}",
              "u8[1,300] i8[300,4]! f32[]{0.02} f32[4]~unit! u8[]{100}",
              "u8[2,1,4,3] i8[3,3,2] f32[]{0.05} f32[]{0.02} u8[]{12} i8[]{0} f32[2]~small"};
  return op;
}

Tensor bytes_and_back(const OpCall& call, const Tensor& x) {
  std::vector<double> values = doubles(x);
  const DType dtype = call.input(0).dtype;
  const ByteScale range = byte_scale_of(values, dtype);
  for (double& value : values) {
    const double byte = quantized(range.scale == 0 ? 0 : rounded(dtype, value / range.scale), range.zero, {0, 255});
    value = (byte - range.zero) * range.scale;
  }
  Tensor result(TensorType{DType::F64, x.shape()});
  store(result, std::span<const double>(values));
  return result;
}

// Inputs: A, B, b_scale, b_zero_point, bias.
Op dynamic_quantize_matmul() {
  Op op;
  op.name = "com.microsoft:DynamicQuantizeMatMul";
  op.summary = "The matrix product of A, quantized by its own range, and dequantized bytes, plus a bias.";
  op.inputs = {required("A", wide_types), required("B", byte_types), required("b_scale", wide_types),
               optional("b_zero_point", byte_types), optional("bias", wide_types)};
  op.outputs = {required("Y", wide_types)};
  op.infer = [](const OpCall& call) {
    const DType dtype = call.input(0).dtype;
    for (const size_t i : {size_t{2}, size_t{4}}) require_dtype(call, i, dtype);
    require_dtype(call, 3, call.input(1).dtype);
    for (const size_t i : {size_t{2}, size_t{3}}) {
      if (!is_single(call, i)) require_broadcast_to(call, i, call.input(1).shape);
    }
    return std::vector<Type>{TensorType{dtype, checked_product(call, call.input(0).shape, call.input(1).shape, 4)}};
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const Tensor a = bytes_and_back(call, in[0].tensor());
    const Tensor b = without_zero(call, in[1].tensor(), tensor_at(in, 3), tensor_at(in, 2));
    const Tensor y = combined(call, "Add", result_by(call, "MatMul", {a, b}), tensor_at(in, 4));
    put(call, out, 0, std::span<const double>(doubles(y)));
  };
  op.expand = [](GraphBuilder& builder) {
    const auto optional_input = [&builder](size_t i) { return builder.input(i); };
    const auto a = builder.add_many("DynamicQuantizeLinear", {builder.input(0)}, {}, 3);
    builder.output(0, builder.add("com.microsoft:MatMulIntegerToFloat",
                                  {a[0], builder.input(1), a[1], builder.input(2), a[2], optional_input(3), optional_input(4)}));
  };
  op.cost = product_cost;
  op.rounding = Rounding::Sum;
  op.category = Category::Quantization;
  op.cases = {"T[4,3]~small u8[3,2] T[]{0.02} u8[]{12}",
              "T[17,33]~small i8[33,9]! T[9]~unit! i8[9]! T[9]~small!",
              "T[2,3,4]~positive i8[2,4,5] T[]{0.1} - T[5]~small",
              "f32[2,3]{-1,-2,-3,-4,-5,-6} i8[3,2] f32[1]{0.05} i8[1]{0}",
              "f32[2,3]{0,0,0,0,0,0} i8[3,2] f32[1]{0.05} - f32[2]~small",
              "T[1,300]~small i8[300,4]! T[4]~unit!",
              "f32[0,3] u8[3,2] f32[]{1}",
              "f32[3]~small u8[3,2] f32[2]~unit u8[2]",
              "f32[1,1] i8[1,64]! f32[]{0.3}",
              "f32[64]~unit u8[64] f32[]{0.01} u8[]{128}"};
  return op;
}

Swapped gemm_swaps(const OpCall& call) { return {call.integer("transA", 0) != 0, call.integer("transB", 0) != 0}; }

// Inputs: A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale, y_zero_point.
std::vector<Type> infer_qgemm(const OpCall& call) {
  for (const size_t i : {size_t{0}, size_t{3}}) {
    require_rank(call, i, 2);
    require_dtype(call, i + 2, call.input(i).dtype);
  }
  for (const size_t i : {size_t{1}, size_t{2}, size_t{7}, size_t{8}}) require_single(call, i);
  if (call.has(7) != call.has(8)) {
    fail(ErrorKind::InvalidModel, title(call), ": y_scale and y_zero_point are both given or both absent, but one is");
  }
  const Swapped swapped = gemm_swaps(call);
  const Shape shape = product_shape(call, call.input(0).shape, call.input(3).shape, swapped);
  for (const size_t i : {size_t{4}, size_t{5}}) {
    if (is_single(call, i)) continue;
    require_rank(call, i, 1);
    require_broadcast_to(call, i, shape);
  }
  if (call.has(6)) require_broadcast_to(call, 6, shape);
  const DType real = call.input(1).dtype == DType::F64 ? DType::F64 : DType::F32;
  return {TensorType{call.has(8) ? call.input(8).dtype : real, shape}};
}

void run_qgemm(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Swapped swapped = gemm_swaps(call);
  const auto side = [&](size_t i, bool flip) {
    const Tensor matrix = flip ? result_by(call, "Transpose", {in[i].tensor()}) : in[i].tensor();
    return combined(call, "Sub", as_float64(matrix), tensor_at(in, i + 2));
  };
  const Tensor sum = combined(call, "Add", result_by(call, "MatMul", {side(0, swapped.a), side(3, swapped.b)}), tensor_at(in, 6));
  const double scale = call.real("alpha", 1) * single(in, 1, 1);
  std::vector<double> y = doubles(combined(call, "Mul", sum, tensor_at(in, 4)));
  for (double& value : y) value *= scale;
  if (tensor_at(in, 8) != nullptr) {
    const Limits limits = limits_of(call.output(0).dtype);
    for (double& value : y) value = quantized(value / single(in, 7, 1), single(in, 8, 0), limits);
  }
  put(call, out, 0, std::span<const double>(y));
}

void expand_qgemm(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  Formula f(builder, arithmetic_of(call.input(1).dtype));
  const Swapped swapped = gemm_swaps(call);
  const auto side = [&f](size_t i, bool flip) {
    return flip ? f.add("Transpose", {f.raw(i)}, {{"perm", std::vector<int64_t>{1, 0}}}) : f.raw(i);
  };
  ValueId y = f.add("MatMulInteger", {side(0, swapped.a), side(3, swapped.b), f.reshaped(f.raw(2), {}), f.raw(5)});
  if (f.has(6)) y = f.sum(y, f.raw(6));
  const ValueId scale = f.product(f.reshaped(f.input(1), {}), f.number(call.real("alpha", 1)));
  y = f.product(f.wide(y), f.product(f.input(4), scale));
  if (f.has(8)) y = f.add("QuantizeLinear", {y, f.reshaped(f.input(7), {}), f.reshaped(f.raw(8), {})});
  builder.output(0, y);
}

Op qgemm() {
  Op op;
  op.name = "com.microsoft:QGemm";
  op.summary = "alpha·A·B + C of quantized matrices; C is in units of the product. Quantized if a scale for the result is given.";
  op.inputs = {required("A", byte_types),   required("a_scale", wide_types), required("a_zero_point", byte_types),
               required("B", byte_types),   required("b_scale", wide_types), required("b_zero_point", byte_types),
               optional("C", {DType::I32}), optional("y_scale", wide_types), optional("y_zero_point", byte_types)};
  op.outputs = {required("Y", {DType::F32, DType::F64, DType::U8, DType::I8})};
  op.attributes = {{"alpha", 1.0F}, {"transA", int64_t{0}}, {"transB", int64_t{0}}};
  op.infer = infer_qgemm;
  op.reference = run_qgemm;
  op.expand = expand_qgemm;
  op.cost = [](const OpCall& call) {
    return Cost{product_flop(call, call.input(0).shape, call.input(3).shape, gemm_swaps(call)), bytes_moved(call)};
  };
  op.rounding = Rounding::Quantise;
  op.category = Category::Quantization;
  op.cases = {"u8[4,3] f32[]{0.05} u8[]{12} u8[3,2] f32[]{0.02} u8[]{7}",
              "u8[3,4] f32[]{0.05} u8[]{12} u8[2,3] f32[]{0.02} u8[]{7} transA=1 transB=1 alpha=0.5",
              "u8[17,33] f32[]{0.01} u8[]{128} i8[33,9]! f32[9]~unit! i8[9]! i32[9]! f32[]{2} u8[]{128}",
              "u8[17,33] f32[]{0.01} u8[]{128} i8[9,33]! f32[9]~unit! i8[9]! i32[17,9] f32[]{2} u8[]{128} transB=1",
              "i8[4,3] f32[1]{0.05} i8[1]{-3} i8[3,2] f32[1]{0.02} i8[1]{0} i32[4,1] f32[1]{0.1} i8[1]{4}",
              "u8[4,3] f32[]{0.05} u8[]{12} u8[3,2] f32[]{0.02} u8[]{7} i32[]",
              "u8[4,3] f32[]{0.05} u8[]{12} u8[3,2] f32[]{0.02} u8[]{7} - f32[]{0.5} u8[]{3} alpha=-1.5",
              "u8[0,3] f32[]{1} u8[]{0} u8[3,2] f32[]{1} u8[]{0}",
              "u8[1,300] f32[]{0.01} u8[]{0} i8[300,5]! f32[5]~unit! i8[]{0} i32[1,5]",
              "u8[2,2]{255,255,255,255} f32[]{1} u8[]{0} u8[2,2]{255,255,255,255} f32[]{1} u8[]{0} - f32[]{1} u8[]{0}"};
  return op;
}

}  // namespace

void add_contrib_product_ops(OpSet& ops) {
  ops.add(integer_to_float());
  ops.add(dynamic_quantize_matmul());
  ops.add(qgemm());
}

}  // namespace unmoor
