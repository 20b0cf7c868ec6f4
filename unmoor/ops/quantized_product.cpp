#include "unmoor/base/error.h"
#include "unmoor/ops/convolve.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/matrix.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/quantize.h"

namespace unmoor {

namespace {

const std::vector<DType> byte_types{DType::U8, DType::I8};
const std::vector<DType> float8_and_byte_types{DType::U8,         DType::I8,     DType::F8E4M3FN,
                                               DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ};

// A scale or zero point of a matrix: one number, one a row (of A) or column (of B), or a shape that broadcasts. Elements of one
// row or column share it, so a vector of A becomes a column.
Shape side_shape(const Shape& shape, bool row) {
  if (shape.rank() != 1 || !row) return shape;
  return Shape{shape[0], 1};
}

// Adds or multiplies a side of the product, broadcast over the matrix.
template <class Step>
void with_side(std::vector<double>& matrix, const Shape& shape, const Tensor* side, bool row, Step step) {
  if (side == nullptr) return;
  const std::vector<double> values = doubles(*side);
  if (values.size() == 1) {
    for (double& x : matrix) x = step(x, values[0]);
    return;
  }
  walk<1>(shape, {broadcast_strides(side_shape(side->shape(), row), shape)},
          [&](size_t i, const std::array<int64_t, 1>& at) { matrix[i] = step(matrix[i], values[static_cast<size_t>(at[0])]); });
}

// Fails with InvalidModel unless the side fits a matrix of this shape.
void require_side(const OpCall& call, size_t i, const Shape& matrix, bool row) {
  if (!call.has(i) || !call.input(i).shape.is_known() || !matrix.has_rank()) return;
  const Shape& shape = call.input(i).shape;
  if (shape.elements() == 1) return;
  const Shape side = side_shape(shape, row);
  bool fits = side.rank() <= matrix.rank();
  for (size_t axis = 0; fits && axis < side.rank(); ++axis) {
    const int64_t wanted = matrix[axis + matrix.rank() - side.rank()];
    fits = side[axis] == 1 || wanted < 0 || side[axis] == wanted;
  }
  if (!fits)
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " of shape ", shape, " does not fit a matrix of shape ", matrix);
}

double minus(double x, double zero) { return x - zero; }
double times(double x, double scale) { return x * scale; }

// A matrix without its zero point. Sums of its products are exact in double.
std::vector<double> centred_matrix(const Tensor& matrix, const Tensor* zero, bool row) {
  std::vector<double> values = doubles(matrix);
  with_side(values, matrix.shape(), zero, row, minus);
  return values;
}

// Sums may overflow in 32 bits, where they wrap around: so store them as int64 first.
void store_wrapped(Tensor& result, const std::vector<double>& values) {
  const std::vector<int64_t> whole(values.begin(), values.end());
  store(result, std::span<const int64_t>(whole));
}

Op product_op(std::string name, std::string summary, Category category) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.category = category;
  return op;
}

Op matmul_integer() {
  Op op = product_op("MatMulInteger", "The matrix product of bytes without their zero points, in int32.", Category::Quantization);
  op.inputs = {required("A", byte_types), required("B", byte_types), optional("a_zero_point", byte_types),
               optional("b_zero_point", byte_types)};
  op.outputs = {required("Y", {DType::I32})};
  op.infer = [](const OpCall& call) {
    require_side(call, 2, call.input(0).shape, true);
    require_side(call, 3, call.input(1).shape, false);
    return std::vector<Type>{TensorType{DType::I32, product_shape(call, call.input(0).shape, call.input(1).shape)}};
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const Tensor& a = in[0].tensor();
    const Tensor& b = in[1].tensor();
    Tensor& result = out.allocate(0, call.output(0));
    store_wrapped(result, multiply(centred_matrix(a, tensor_at(in, 2), true), a.shape(),
                                   centred_matrix(b, tensor_at(in, 3), false), b.shape()));
  };
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const auto side = [&](size_t i, size_t zero, bool row) {
      const auto whole = [&](size_t k) { return f.add("Cast", {f.raw(k)}, {{"to", onnx_number(DType::I32)}}); };
      if (!f.has(zero)) return whole(i);
      const Shape& shape = f.call().input(zero).shape;
      if (!shape.has_rank())
        fail(ErrorKind::Unsupported, title(f.call()), " cannot be expanded: the rank of a zero point is not known");
      ValueId offset = whole(zero);
      if (shape.is_known() && shape.elements() == 1) {
        offset = f.reshaped(offset, {});
      } else if (shape.rank() == 1 && row) {
        offset = f.reshaped(offset, {-1, 1});
      }
      return f.difference(whole(i), offset);
    };
    builder.output(0, f.add("MatMul", {side(0, 2, true), side(1, 3, false)}));
  };
  op.cost = [](const OpCall& call) {
    return Cost{product_flop(call, call.input(0).shape, call.input(1).shape), bytes_moved(call)};
  };
  op.rounding = Rounding::MoveBits;
  op.cases = {"u8[4,3] u8[3,2] u8[]{12} u8[]{0}",
              "u8[17,33] i8[33,9]! u8[]{128}",
              "i8[2,3,4] i8[2,4,5]",
              "u8[4,3] u8[3,2] u8[4] u8[2]",
              "u8[0,3] u8[3,2]",
              "i8[3,4] u8[4,5] i8[1]{-3} u8[5]!",
              "i8[3,4] u8[4,5] i8[1,1,1]{-3} u8[1,5]!",
              "i8[2,3,4] u8[2,4,5] i8[2,3,1] u8[2,1,5]!",
              "u8[1,300] u8[300,4]!"};
  return op;
}

Op convolution_op(std::string name, std::string summary) {
  Op op = product_op(std::move(name), std::move(summary), Category::Quantization);
  op.attributes = {
      {"auto_pad", std::string("NOTSET")},      {"dilations", std::vector<int64_t>()}, {"group", int64_t{1}},
      {"kernel_shape", std::vector<int64_t>()}, {"pads", std::vector<int64_t>()},      {"strides", std::vector<int64_t>()},
      {"layout", std::string("NCHW")}};
  return op;
}

void require_one_or_per_output(const OpCall& call, size_t i, const Shape& w) {
  if (!call.has(i) || !call.input(i).shape.is_known() || call.input(i).shape.elements() == 1) return;
  require_bias(call, i, w.has_rank() && w.rank() > 0 ? w[0] : Shape::unknown);
}

void require_one(const OpCall& call, size_t i) {
  if (!call.has(i) || !call.input(i).shape.is_known() || call.input(i).shape.elements() == 1) return;
  fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", call.input(i).shape, "; one element was expected");
}

// The sums of products of x and w without their zero points.
std::vector<double> integer_sums(const OpCall& call, const Convolution& convolution, const Tensor& x, const Tensor& w,
                                 const Tensor* x_zero, const Tensor* w_zero) {
  std::vector<double> input = read_canonical<double>(call, x);
  const double offset = x_zero == nullptr ? 0 : doubles(*x_zero).at(0);
  for (double& value : input) value -= offset;
  std::vector<double> weights = doubles(w);
  const std::vector<double> zero = w_zero == nullptr ? std::vector<double>{0} : doubles(*w_zero);
  const size_t each = convolution.outputs == 0 ? 1 : weights.size() / static_cast<size_t>(convolution.outputs);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] -= zero[zero.size() == 1 ? 0 : i / each];
  return convolve(convolution, input.data(), weights.data());
}


Op conv_integer() {
  Op op = convolution_op("ConvInteger", "The convolution of bytes without their zero points, in int32.");
  op.inputs = {required("x", byte_types), required("w", byte_types), optional("x_zero_point", byte_types),
               optional("w_zero_point", byte_types)};
  op.outputs = {required("y", {DType::I32})};
  op.infer = [](const OpCall& call) {
    require_one(call, 2);
    require_one_or_per_output(call, 3, call.input(1).shape);
    return infer_convolution(call, call.input(0).shape, call.input(1).shape, DType::I32);
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const Tensor& x = in[0].tensor();
    const Tensor& w = in[1].tensor();
    const Convolution convolution = convolution_of(call, canonical(call, x.shape()), w.shape());
    Tensor& result = out.allocate(0, call.output(0));
    const std::vector<double> sums = integer_sums(call, convolution, x, w, tensor_at(in, 2), tensor_at(in, 3));
    store_wrapped(result, channels_last(call) ? moved_last(sums, convolution.output_shape()) : sums);
  };
  op.cost = [](const OpCall& call) { return convolution_cost(call); };
  op.rounding = Rounding::MoveBits;
  op.cases = {"u8[1,3,7,7] u8[4,3,3,3]! u8[]{128} pads=[0,0,0,0],[1,1,1,1]",
              "u8[1,4,7,7] i8[6,2,3,3]! u8[]{3} i8[6]~small! group=2 strides=[2,2]", "u8[2,3,9] i8[4,3,3]!",
              "u8[2,5,12,13] u8[9,5,3,3]! u8[]{100} u8[9]! pads=[1,2,1,0]",
              "i8[1,6,10,40] i8[10,3,3,2]! i8[]{-5} i8[]{3} group=2 strides=[2,1] dilations=[1,2]",
              "u8[1,3,70] i8[5,3,1]! u8[]{7}",
              "u8[0,3,7,7] u8[4,3,3,3]!", "u8[1,7,7,3] i8[4,3,3,3]! u8[]{128} pads=[1,1,1,1] layout=NHWC"};
  return op;
}

// Scales the sums to the output's scale and quantizes. `factor` gives what element i's sum is worth.
template <class Factor>
std::vector<double> requantized(std::vector<double> sums, const Tensor& scale, const Tensor& zero, DType dtype, Factor factor) {
  const double y_scale = doubles(scale).at(0);
  const double y_zero = doubles(zero).at(0);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double quotient = sums[i] * factor(i) / y_scale;
    sums[i] = is_integer(dtype) ? quantized(quotient, y_zero, limits_of(dtype)) : quotient + y_zero;
  }
  return sums;
}

void qlinear_matmul_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& a = in[0].tensor();
  const Tensor& b = in[3].tensor();
  std::vector<double> left = centred_matrix(a, tensor_at(in, 2), true);
  std::vector<double> right = centred_matrix(b, tensor_at(in, 5), false);
  with_side(left, a.shape(), tensor_at(in, 1), true, times);
  with_side(right, b.shape(), tensor_at(in, 4), false, times);
  Tensor& result = out.allocate(0, call.output(0));
  const std::vector<double> product = multiply(left, a.shape(), right, b.shape());
  write_as<double>(result, requantized(product, in[6].tensor(), in[7].tensor(), result.dtype(), [](size_t) { return 1.0; }));
}

// (x - zero)·scale in float32, as operators.
ValueId dequantized(Formula& f, size_t x, size_t scale, size_t zero, std::vector<int64_t> shape, DType dtype) {
  const auto side = [&](size_t i) {
    ValueId value = f.raw(i);
    if (f.type(value).dtype != dtype) value = f.add("Cast", {value}, {{"to", onnx_number(dtype)}});
    const Shape& from = f.type(value).shape;
    if (from.is_known() && from.elements() == 1) return f.reshaped(value, {});
    return shape.empty() || from.rank() != 1 ? value : f.reshaped(value, shape);
  };
  const ValueId whole = f.add("Cast", {f.raw(x)}, {{"to", onnx_number(dtype)}});
  return f.product(f.difference(whole, side(zero)), side(scale));
}

DType wide_dtype(const OpCall& call, size_t scale) { return call.input(scale).dtype == DType::F64 ? DType::F64 : DType::F32; }

ValueId quantized_again(Formula& f, ValueId y, size_t scale, size_t zero, DType dtype) {
  ValueId by = f.raw(scale);
  if (f.type(by).dtype != dtype) by = f.add("Cast", {by}, {{"to", onnx_number(dtype)}});
  return f.add("QuantizeLinear", {y, f.reshaped(by, {}), f.reshaped(f.raw(zero), {})});
}

Op qlinear_matmul() {
  Op op = product_op("QLinearMatMul", "The matrix product of quantized matrices, quantized.", Category::Quantization);
  op.inputs = {required("a", float8_and_byte_types),
               required("a_scale", float_types()),
               required("a_zero_point", float8_and_byte_types),
               required("b", float8_and_byte_types),
               required("b_scale", float_types()),
               required("b_zero_point", float8_and_byte_types),
               required("y_scale", float_types()),
               required("y_zero_point", float8_and_byte_types)};
  op.outputs = {required("y", float8_and_byte_types)};
  op.infer = [](const OpCall& call) {
    for (const size_t i : {size_t{1}, size_t{2}}) require_side(call, i, call.input(0).shape, true);
    for (const size_t i : {size_t{4}, size_t{5}}) require_side(call, i, call.input(3).shape, false);
    for (const size_t i : {size_t{6}, size_t{7}}) require_one(call, i);
    return std::vector<Type>{TensorType{call.input(7).dtype, product_shape(call, call.input(0).shape, call.input(3).shape)}};
  };
  op.reference = qlinear_matmul_reference;
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const DType dtype = wide_dtype(f.call(), 1);
    const ValueId product = f.add("MatMul", {dequantized(f, 0, 1, 2, {-1, 1}, dtype), dequantized(f, 3, 4, 5, {}, dtype)});
    builder.output(0, quantized_again(f, product, 6, 7, dtype));
  };
  op.cost = [](const OpCall& call) {
    return Cost{product_flop(call, call.input(0).shape, call.input(3).shape), bytes_moved(call)};
  };
  op.rounding = Rounding::Quantise;
  op.cases = {"u8[2,4] f32[]{0.0066} u8[]{113} u8[4,3] f32[]{0.00705} u8[]{114} f32[]{0.0107} u8[]{118}",
              "u8[17,33] f32[]{0.02} u8[]{128} i8[33,9]! f32[9]~positive! i8[9]~small! f32[]{2} u8[]{128}",
              "i8[2,3,4] f32[]{0.05} i8[]{0} i8[2,4,5] f32[]{0.05} i8[]{0} f32[]{0.5} i8[]{3}",
              "u8[3,4] f32[3]~positive u8[3] u8[4,5] f32[1,1,1]{0.05} u8[1]{100} f32[1]{0.5} u8[1,1]{118}",
              "u8[0,4] f32[]{1} u8[]{0} u8[4,3] f32[]{1} u8[]{0} f32[]{1} u8[]{0}"};
  return op;
}

void qlinear_conv_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const Tensor& w = in[3].tensor();
  const Convolution convolution = convolution_of(call, canonical(call, x.shape()), w.shape());
  std::vector<double> sums = integer_sums(call, convolution, x, w, tensor_at(in, 2), tensor_at(in, 5));
  const std::vector<double> bias = doubles_at(in, 8);
  const double x_scale = doubles(in[1].tensor()).at(0);
  const std::vector<double> w_scale = doubles(in[4].tensor());
  const auto positions = static_cast<size_t>(Shape(convolution.window.output).elements());
  const auto channel = [&](size_t i) { return i / positions % static_cast<size_t>(convolution.outputs); };
  for (size_t i = 0; !bias.empty() && i < sums.size(); ++i) sums[i] += bias[channel(i)];
  Tensor& result = out.allocate(0, call.output(0));
  write_canonical(call, result, requantized(std::move(sums), in[6].tensor(), in[7].tensor(), result.dtype(), [&](size_t i) {
                    return x_scale * w_scale[w_scale.size() == 1 ? 0 : channel(i)];
                  }));
}

void expand_qlinear_conv(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const DType dtype = wide_dtype(call, 1);
  const Shape& w = call.input(3).shape;
  if (!w.has_rank()) fail(ErrorKind::Unsupported, title(call), " cannot be expanded: the rank of w is not known");
  std::vector<int64_t> per_output(w.rank(), 1);
  per_output[0] = -1;
  std::vector<ValueId> inputs{dequantized(f, 0, 1, 2, {}, dtype), dequantized(f, 3, 4, 5, per_output, dtype)};
  if (f.has(8)) {
    const ValueId bias = f.add("Cast", {f.raw(8)}, {{"to", onnx_number(dtype)}});
    const auto scale = [&](size_t i) { return f.type(f.raw(i)).dtype == dtype ? f.raw(i) : f.add("Cast", {f.raw(i)}, {{"to", onnx_number(dtype)}}); };
    inputs.push_back(f.product(bias, f.product(f.reshaped(scale(1), {1}), f.reshaped(scale(4), {-1}))));
  }
  builder.output(0, quantized_again(f, f.add("Conv", std::move(inputs), call.node.attributes), 6, 7, dtype));
}

Op qlinear_conv() {
  Op op = convolution_op("QLinearConv", "The convolution of a quantized tensor by quantized weights, quantized.");
  const std::vector<DType> scale{DType::F32, DType::F64};
  op.inputs = {required("x", byte_types),  required("x_scale", scale),           required("x_zero_point", byte_types),
               required("w", byte_types),  required("w_scale", scale),           required("w_zero_point", byte_types),
               required("y_scale", scale), required("y_zero_point", byte_types), optional("B", {DType::I32})};
  op.outputs = {required("y", byte_types)};
  op.infer = [](const OpCall& call) {
    for (const size_t i : {size_t{1}, size_t{2}, size_t{6}, size_t{7}}) require_one(call, i);
    for (const size_t i : {size_t{4}, size_t{5}}) require_one_or_per_output(call, i, call.input(3).shape);
    const Shape& w = call.input(3).shape;
    require_bias(call, 8, w.has_rank() && w.rank() > 0 ? w[0] : Shape::unknown);
    return infer_convolution(call, call.input(0).shape, w, call.input(7).dtype);
  };
  op.reference = qlinear_conv_reference;
  op.expand = expand_qlinear_conv;
  op.cost = [](const OpCall& call) { return convolution_cost(call, 0, 3); };
  op.rounding = Rounding::Quantise;
  op.cases = {
      "u8[1,3,7,7] f32[]{0.02} u8[]{128} u8[4,3,3,3]! f32[]{0.02} u8[]{128} f32[]{0.5} u8[]{128} pads=[0,0,0,0],[1,1,1,1]",
      "u8[1,4,7,7] f32[]{0.02} u8[]{3} i8[6,2,3,3]! f32[6]~positive! i8[6]~small! f32[]{4} u8[]{128} i32[6]! group=2 "
      "strides=[2,2] pads=[1,1,1,1]",
      "u8[1,8,9,9] f32[]{0.02} u8[]{128} i8[8,1,3,3]! f32[8]~unit! i8[8]~small! f32[]{1} u8[]{128} i32[8]! group=8 "
      "pads=[1,1,1,1]",
      "i8[2,5,12,13] f32[]{0.02} i8[]{-9} i8[9,5,3,3]! f32[9]~unit! i8[9]~small! f32[]{1} i8[]{3} i32[9]! pads=[1,2,1,0]",
      "u8[0,3,7,7] f32[]{1} u8[]{0} u8[4,3,3,3]! f32[]{1} u8[]{0} f32[]{1} u8[]{0}",
      "u8[1,2,5,5] f32[1]{0.02} u8[1]{128} u8[3,2,3,3]! f32[1,1]{0.02} u8[1]{100} f32[1]{0.5} u8[1]{128} i32[3]!",
      "u8[1,7,7,3] f32[]{0.02} u8[]{128} i8[4,3,3,3]! f32[4]~unit! i8[4]~small! f32[]{1} u8[]{128} i32[4]! pads=[1,1,1,1] "
      "layout=NHWC"};
  return op;
}

}  // namespace

void add_quantized_products(OpSet& ops) {
  ops.add(matmul_integer());
  ops.add(conv_integer());
  ops.add(qlinear_matmul());
  ops.add(qlinear_conv());
}

}  // namespace unmoor
