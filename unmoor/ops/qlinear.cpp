#include "unmoor/ops/qlinear.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/compose.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {

void require_single(const OpCall& call, size_t i) {
  if (!call.has(i) || !call.input(i).shape.is_known() || call.input(i).shape.elements() == 1) return;
  fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has shape ", call.input(i).shape, "; one element was expected");
}

double single(std::span<const Data> in, size_t i, double otherwise) {
  const std::vector<double> values = doubles_at(in, i);
  return values.empty() ? otherwise : values[0];
}

namespace {

const std::vector<DType> byte_types{DType::U8, DType::I8};
const std::vector<DType> scale_types{DType::F32, DType::F64};

// The operator between dequantizing and quantizing.
struct Inner {
  std::string op;
  Attributes attributes = {};
  std::vector<Tensor> constants = {};       // Its last inputs.
  std::optional<int64_t> matrix_axis = {};  // The input is cut into a matrix at this axis; the result gets its shape back.
};

// Where things lie among the inputs. A tensor's scale and zero point follow it.
struct Layout {
  std::vector<size_t> plain = {};  // Passed on as they are, before the dequantized ones.
  std::vector<size_t> quantized = {};
  size_t result_scale = 0;  // Then comes the result's zero point.
};

// A quantised operator: what it stands for.
struct Meaning {
  std::function<Inner(const OpCall&)> inner;
  std::function<Layout(const OpCall&)> layout;
  bool one_dtype = true;  // Of all tensors.
};

void check_parameters(const OpCall& call, const Meaning& meaning, const Layout& layout) {
  for (const size_t x : layout.quantized) {
    for (const size_t i : {x, x + 1}) static_cast<void>(call.input(i));  // Neither may be absent, variadic inputs included.
    require_single(call, x + 1);
    require_single(call, x + 2);
    if (call.has(x + 2) && call.input(x + 2).dtype != call.input(x).dtype) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", x, " is ", call.input(x).dtype, " and its zero point ",
           call.input(x + 2).dtype);
    }
  }
  require_single(call, layout.result_scale);
  require_single(call, layout.result_scale + 1);
  if (!meaning.one_dtype) return;
  std::vector<size_t> all = layout.quantized;
  all.push_back(layout.result_scale + 1);
  for (const size_t i : all) {
    const DType wanted = call.input(layout.quantized[0]).dtype;
    if (call.has(i) && call.input(i).dtype != wanted) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", call.input(i).dtype, ", not ", wanted);
    }
  }
}

Shape matrix_shape(const OpCall& call, const Shape& shape, int64_t axis) {
  if (!shape.is_known()) return unknown_shape(2);
  const size_t at = shape.rank() == 0 ? 0 : axis_of(call, shape, axis);
  return Shape{shape.elements(0, at), shape.elements(at, shape.rank())};
}

std::vector<Type> infer_qlinear(const OpCall& call, const Meaning& meaning) {
  const Layout layout = meaning.layout(call);
  check_parameters(call, meaning, layout);
  const Inner inner = meaning.inner(call);
  const DType dtype =
      call.has(layout.result_scale + 1) ? call.input(layout.result_scale + 1).dtype : call.input(layout.quantized[0]).dtype;
  if (inner.matrix_axis) {
    const Shape& shape = call.input(layout.quantized[0]).shape;
    matrix_shape(call, shape, *inner.matrix_axis);
    return {TensorType{dtype, shape}};
  }
  std::vector<std::optional<Type>> types;
  for (const size_t i : layout.plain) types.emplace_back(call.input(i));
  for (const size_t i : layout.quantized) types.emplace_back(TensorType{DType::F32, call.input(i).shape});
  return {TensorType{dtype, type_by(call, inner.op, std::move(types), inner.attributes, inner.constants).shape}};
}

Tensor dequantized(std::span<const Data> in, size_t x) {
  const Tensor& tensor = in[x].tensor();
  std::vector<double> values = doubles(tensor);
  const double scale = single(in, x + 1, 1);
  const double zero = single(in, x + 2, 0);
  for (double& value : values) value = (value - zero) * scale;
  Tensor result(TensorType{DType::F64, tensor.shape()});
  store(result, std::span<const double>(values));
  return result;
}

void qlinear_reference(const OpCall& call, const Meaning& meaning, std::span<const Data> in, Outputs& out) {
  const Layout layout = meaning.layout(call);
  const Inner inner = meaning.inner(call);
  std::vector<Tensor> inputs;
  for (const size_t i : layout.plain) inputs.push_back(in[i].tensor());
  for (const size_t i : layout.quantized) inputs.push_back(dequantized(in, i));
  if (inner.matrix_axis) inputs[0] = inputs[0].reshaped(matrix_shape(call, inputs[0].shape(), *inner.matrix_axis));
  inputs.insert(inputs.end(), inner.constants.begin(), inner.constants.end());
  std::vector<double> y = doubles(result_by(call, inner.op, inputs, inner.attributes));
  const double scale = single(in, layout.result_scale, 1);
  const double zero = single(in, layout.result_scale + 1, 0);
  const Limits limits = limits_of(call.output(0).dtype);
  for (double& value : y) value = quantized(value / scale, zero, limits);
  put(call, out, 0, std::span<const double>(y));
}

void expand_qlinear(GraphBuilder& builder, const Meaning& meaning) {
  Formula f(builder);
  const OpCall& call = f.call();
  const Layout layout = meaning.layout(call);
  Inner inner = meaning.inner(call);
  std::vector<ValueId> inputs;
  for (const size_t i : layout.plain) inputs.push_back(f.raw(i));
  for (const size_t i : layout.quantized) {
    std::vector<ValueId> parts{f.raw(i), f.reshaped(f.raw(i + 1), {})};
    if (f.has(i + 2)) parts.push_back(f.reshaped(f.raw(i + 2), {}));
    inputs.push_back(f.add("DequantizeLinear", std::move(parts)));
  }
  const ValueId x = inputs[0];
  if (inner.matrix_axis) inputs[0] = f.add("Flatten", {x}, {{"axis", *inner.matrix_axis}});
  for (const Tensor& constant : inner.constants) inputs.push_back(builder.constant(constant));
  ValueId y = f.add(inner.op, std::move(inputs), std::move(inner.attributes));
  if (inner.matrix_axis) y = f.add("Reshape", {y, f.add("Shape", {x})});
  std::vector<ValueId> parts{y, f.reshaped(f.raw(layout.result_scale), {})};
  if (f.has(layout.result_scale + 1)) parts.push_back(f.reshaped(f.raw(layout.result_scale + 1), {}));
  builder.output(0, f.add("QuantizeLinear", std::move(parts), {{"output_dtype", onnx_number(call.output(0).dtype)}}));
}

Op qlinear_op(std::string name, std::string summary, Meaning meaning) {
  Op op;
  op.name = cat("com.microsoft:", name);
  op.summary = std::move(summary);
  op.infer = [meaning](const OpCall& call) { return infer_qlinear(call, meaning); };
  op.reference = [meaning](const OpCall& call, std::span<const Data> in, Outputs& out) {
    qlinear_reference(call, meaning, in, out);
  };
  op.expand = [meaning](GraphBuilder& builder) { expand_qlinear(builder, meaning); };
  op.cost = cost_per_output(6);
  op.rounding = Rounding::Quantise;
  op.category = Category::Quantization;
  return op;
}

void add_tensor_ports(Op& op, const std::string& x) {
  op.inputs.push_back(required(x, byte_types));
  op.inputs.push_back(required(cat(x, "_scale"), scale_types));
  op.inputs.push_back(optional(cat(x, "_zero_point"), byte_types));
}

void add_result_ports(Op& op, const std::string& y) {
  op.inputs.push_back(required(cat(y, "_scale"), scale_types));
  op.inputs.push_back(optional(cat(y, "_zero_point"), byte_types));
  op.outputs = {required(y, byte_types)};
}

Op binary(std::string name, std::string summary, std::string inner) {
  Op op = qlinear_op(std::move(name), std::move(summary),
                     {[inner](const OpCall&) { return Inner{inner}; },
                      [](const OpCall&) {
                        return Layout{{}, {0, 3}, 6};
                      }});
  add_tensor_ports(op, "A");
  add_tensor_ports(op, "B");
  add_result_ports(op, "C");
  op.cases = {"T[2,3,4] f32[]{0.05} T[]{12} T[2,3,4] f32[]{0.1} T[]{3} f32[]{0.2113} T[]{7}",
              "T[2,3,4] f32[1]{0.05} - T[4] f32[1]{0.1} - f32[1]{0.125}",
              "T[257] f32[]{0.02} T[]{100} T[1] f32[]{0.5} T[]{9} f32[]{0.3} T[]{0}",
              "T[3,1,5] f32[]{0.05} T[]{1} T[7,1] f32[]{0.03} T[]{2} f32[]{0.4137} T[]{64}",
              "T[33] f32[]{1} T[]{0} T[33] f32[]{1} T[]{0} f32[]{0.01} T[]{0}",
              "T[0,4] f32[]{1} T[]{0} T[4] f32[]{1} T[]{0} f32[]{1} T[]{0}",
              "T[] f32[]{0.1} T[]{4} T[2,2] f32[]{0.2} T[]{5} f32[]{0.3} T[]{6}",
              "T[1,64] f32[]{0.004} T[]{0} T[16,64]! f32[]{0.01} T[]{10} f32[]{0.0213} T[]{50}"};
  return op;
}

Op unary(std::string name, std::string summary, std::function<Inner(const OpCall&)> inner) {
  Op op = qlinear_op(std::move(name), std::move(summary), {std::move(inner), [](const OpCall&) { return Layout{{}, {0}, 3}; }});
  add_tensor_ports(op, "X");
  add_result_ports(op, "Y");
  op.cases = {"T[2,3,4] f32[]{0.05} T[]{12} f32[]{0.00413} T[]{0}", "T[256] f32[1]{0.1} - f32[1]{0.0078125} T[1]{3}",
              "T[257] f32[]{0.02} T[]{100} f32[]{0.02}", "T[3,5] f32[]{0.5} T[]{1} f32[]{0.00390625} T[]{0}",
              "T[0,4] f32[]{1} T[]{0} f32[]{1} T[]{0}"};
  return op;
}

Op softmax() {
  Op op = unary("QLinearSoftmax", "Softmax of a quantized tensor, quantized. Before opset 13 over all axes from `axis` on.",
                [](const OpCall& call) {
                  const bool old = call.integer("opset", 13) < 13;
                  const int64_t axis = call.integer("axis", -1);
                  Inner inner{"Softmax", {{"axis", old ? int64_t{-1} : axis}}};
                  if (old) inner.matrix_axis = axis;
                  return inner;
                });
  for (auto& text : op.cases) text += " opset=13";
  for (const char* more : {" axis=0,1,-1 opset=13", " axis=0,1,2,-1 opset=12", " opset=11 axis=1"}) {
    op.cases.push_back(cat("T[2,3,4] f32[]{0.05} T[]{12} f32[]{0.00390625} T[]{0}", more));
  }
  op.cases.emplace_back("T[4,1000] f32[]{0.1} T[]{50} f32[]{0.00390625} T[]{0} opset=13");
  return op;
}

Op where() {
  Op op = qlinear_op("QLinearWhere", "Elements of X where the condition holds, else of Y, quantized anew.",
                     {[](const OpCall&) { return Inner{"Where"}; },
                      [](const OpCall&) {
                        return Layout{{0}, {1, 4}, 7};
                      }});
  op.inputs = {required("condition", {DType::Bool})};
  add_tensor_ports(op, "X");
  add_tensor_ports(op, "Y");
  add_result_ports(op, "Z");
  op.cases = {"bool[2,3,4] T[2,3,4] f32[]{0.05} T[]{12} T[2,3,4] f32[]{0.1} T[]{3} f32[]{0.2} T[]{7}",
              "bool[4] T[2,3,4] f32[]{0.05} T[]{12} T[] f32[]{0.1} T[]{3} f32[]{0.05} T[]{7}",
              "bool[3,1] T[1,5] f32[1]{0.05} T[1]{0} T[5] f32[1]{0.1} T[1]{0} f32[1]{0.1} T[1]{0}",
              "bool[] T[33] f32[]{1} T[]{0} T[33] f32[]{1} T[]{0} f32[]{0.01} T[]{0}",
              "bool[0,4] T[4] f32[]{1} T[]{0} T[4] f32[]{1} T[]{0} f32[]{1} T[]{0}"};
  return op;
}

Op concat() {
  Meaning meaning{[](const OpCall& call) {
                    if (!call.has_attribute("axis")) fail(ErrorKind::InvalidModel, title(call), ": attribute 'axis' is missing");
                    return Inner{"Concat", {{"axis", call.integer("axis", 0)}}};
                  },
                  [](const OpCall& call) {
                    if (call.input_count() < 5 || (call.input_count() - 2) % 3 != 0) {
                      fail(ErrorKind::InvalidModel, title(call), ": it has ", call.input_count(),
                           " inputs; a scale and a zero point, then three for each tensor were expected");
                    }
                    Layout layout;
                    for (size_t i = 2; i < call.input_count(); i += 3) layout.quantized.push_back(i);
                    return layout;
                  },
                  false};
  Op op = qlinear_op("QLinearConcat", "Quantized tensors joined along an axis, each quantized anew.", std::move(meaning));
  std::vector<DType> any = byte_types;
  any.insert(any.end(), scale_types.begin(), scale_types.end());
  op.inputs = {required("Y_scale", scale_types), required("Y_zero_point", byte_types), variadic("inputs", any)};
  op.outputs = {required("Y", byte_types)};
  op.cases = {"f32[]{0.1} T[]{3} T[2,3] f32[]{0.05} T[]{5} T[2,4] f32[]{0.2} T[]{0} axis=1,-1",
              "f32[]{0.1} T[]{3} T[2,3] f32[]{0.1} T[]{3} axis=0",
              "f32[1]{0.25} u8[1]{3} u8[2,3] f32[1]{0.05} u8[1]{5} i8[5,3] f32[1]{0.2} i8[1]{-4} axis=0",
              "f32[]{0.1013} T[]{3} T[1,2,5] f32[]{0.05} T[]{5} T[1,4,5]! f32[]{0.2} T[]{0} T[1,1,5] f32[]{1} T[]{9} axis=1",
              "f32[]{0.1} T[]{3} T[0,3] f32[]{0.05} T[]{5} T[2,3] f32[]{0.2} T[]{0} axis=0"};
  return op;
}

Attributes pool_attributes(const OpCall& call) {
  Attributes attributes = call.node.attributes;
  attributes.erase("channels_last");
  attributes["layout"] = std::string(call.integer("channels_last", 0) != 0 ? "NHWC" : "NCHW");
  return attributes;
}

void add_pools(OpSet& ops) {
  Op average = unary("QLinearAveragePool", "The mean of each window of a quantized tensor, quantized.", [](const OpCall& call) {
    return Inner{"AveragePool", pool_attributes(call)};
  });
  average.attributes = {{"auto_pad", std::string("NOTSET")},
                        {"ceil_mode", int64_t{0}},
                        {"channels_last", int64_t{0}},
                        {"count_include_pad", int64_t{0}},
                        {"kernel_shape", std::vector<int64_t>()},
                        {"pads", std::vector<int64_t>()},
                        {"strides", std::vector<int64_t>()}};
  const std::string parameters = " f32[]{0.05} T[]{12} f32[]{0.037} T[]{7} ";
  average.cases = {cat("T[1,3,8,8]", parameters, "kernel_shape=[2,2],[3,3] strides=[2,2]"),
                   cat("T[2,3,9,7]", parameters, "kernel_shape=[3,3] pads=[1,1,1,1] strides=[1,1],[2,2] count_include_pad=0,1"),
                   cat("T[1,2,7,7]", parameters, "kernel_shape=[3,2] ceil_mode=0,1 strides=[2,2]"),
                   cat("T[1,3,10,10]", parameters, "kernel_shape=[3,3] auto_pad=SAME_UPPER,SAME_LOWER,VALID strides=[2,2]"),
                   cat("T[2,3,17]", parameters, "kernel_shape=[5] strides=[3] pads=[2,1]"),
                   cat("T[2,9,7,3]", parameters, "kernel_shape=[3,3] pads=[1,1,1,1] strides=[2,2] channels_last=1"),
                   "T[1,3,8,8] f32[]{0.05} - f32[]{0.0517} kernel_shape=[2,2]",
                   "T[0,3,8,8] f32[]{1} T[]{0} f32[]{1} T[]{0} kernel_shape=[2,2]"};
  ops.add(std::move(average));
  Op global =
      unary("QLinearGlobalAveragePool", "The mean of each channel of a quantized tensor, quantized.", [](const OpCall& call) {
        return Inner{"GlobalAveragePool", pool_attributes(call)};
      });
  global.attributes = {{"channels_last", int64_t{0}}};
  global.cases = {cat("T[2,3,7,5]", parameters),   cat("T[2,7,5,3]", parameters, "channels_last=1"),
                  cat("T[1,5,17]", parameters),    cat("T[1,64,1,1]", parameters),
                  cat("T[1,2,3,4,5]", parameters), "T[0,3,4,4] f32[]{1} T[]{0} f32[]{1} T[]{0}"};
  ops.add(std::move(global));
  Op mean = unary("QLinearReduceMean", "The mean of a quantized tensor over axes, quantized.", [](const OpCall& call) {
    const std::vector<int64_t> axes = call.integers("axes");
    Inner inner{"ReduceMean", {{"keepdims", call.integer("keepdims", 1)}}};
    if (!axes.empty())
      inner.constants = {Tensor::from<int64_t>({static_cast<int64_t>(axes.size())}, std::span<const int64_t>(axes))};
    return inner;
  });
  mean.attributes = {{"axes", std::vector<int64_t>()}, {"keepdims", int64_t{1}}};
  mean.cases = {cat("T[2,3,4]", parameters, "axes=[1],[0,2],[-1],[] keepdims=0,1"),
                cat("T[5]", parameters, "axes=[0] keepdims=1")};
  ops.add(std::move(mean));
}

}  // namespace

void add_qlinear_ops(OpSet& ops) {
  ops.add(binary("QLinearAdd", "The sum of quantized tensors, quantized.", "Add"));
  ops.add(binary("QLinearMul", "The product of quantized tensors, element by element, quantized.", "Mul"));
  Op sigmoid =
      unary("QLinearSigmoid", "Sigmoid of a quantized tensor, quantized.", [](const OpCall&) { return Inner{"Sigmoid"}; });
  ops.add(std::move(sigmoid));
  Op leaky = unary("QLinearLeakyRelu", "LeakyRelu of a quantized tensor, quantized.", [](const OpCall& call) {
    return Inner{"LeakyRelu", {{"alpha", static_cast<float>(call.real("alpha", static_cast<double>(0.01F)))}}};
  });
  leaky.attributes = {{"alpha", 0.01F}};
  leaky.cases.emplace_back("T[256] f32[]{0.02} T[]{100} f32[]{0.0213} T[]{90} alpha=0.1,0.5,-0.25,0");
  ops.add(std::move(leaky));
  ops.add(softmax());
  ops.add(where());
  ops.add(concat());
  add_pools(ops);
}

void add_contrib_quantized_ops(OpSet& ops) {
  add_qlinear_ops(ops);
  add_contrib_product_ops(ops);
  add_packed_matmul_op(ops);
  add_packed_gather_op(ops);
  add_quantized_lstm_op(ops);
  add_quantized_attention_op(ops);
}

}  // namespace unmoor
