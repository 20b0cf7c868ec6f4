#include "unmoor/base/error.h"
#include "unmoor/ops/activate.h"
#include "unmoor/ops/compose.h"
#include "unmoor/ops/convolve.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/inverted_residual.h"
#include "unmoor/ops/matrix.h"
#include "unmoor/ops/real.h"

namespace unmoor {

namespace {

// Activation after the residual, which comes after the bias.
void activate(const OpCall& call, std::vector<double>& y) {
  const auto function = activation_named(call.text("activation", ""), call.reals("activation_params"));
  for (double& value : y) value = function(value);
}

void check_activation(const OpCall& call) {
  try {
    activation_named(call.text("activation", ""), call.reals("activation_params"));
  } catch (Error& error) {
    error.note(cat("in ", title(call)));
    throw;
  }
}

// Makes activation(y) the expansion's output.
void finish(GraphBuilder& builder, ValueId y) {
  const std::string activation = builder.call().text("activation", "");
  if (activation.empty()) return builder.output(0, y);
  Formula formula(builder);
  formula.output(0, add_activation(formula, formula.wide(y), activation, builder.call().reals("activation_params")));
}

// The residual's shape must be the output's, as far as both are known.
void require_residual(const OpCall& call, size_t i, const Shape& shape) {
  if (!call.has(i) || !shape.has_rank() || !call.input(i).shape.has_rank()) return;
  const Shape& residual = call.input(i).shape;
  if (residual.rank() != shape.rank()) {
    fail(ErrorKind::InvalidModel, title(call), ": the residual has shape ", residual, " and the output ", shape);
  }
  for (size_t axis = 0; axis < shape.rank(); ++axis)
    same_dim(call, residual[axis], shape[axis], "a dimension of residual and output");
}

std::vector<Type> infer_fused_conv(const OpCall& call) {
  check_activation(call);
  const Shape& w = call.input(1).shape;
  require_bias(call, 2, w.has_rank() && w.rank() > 0 ? w[0] : Shape::unknown);
  std::vector<Type> types = infer_convolution(call, call.input(0).shape, w, call.input(0).dtype);
  require_residual(call, 3, std::get<TensorType>(types[0]).shape);
  return types;
}

void fused_conv_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = out.allocate(0, call.output(0));
  std::vector<double> y = convolved(call, in);
  if (const Tensor* residual = tensor_at(in, 3)) {
    const std::vector<double> more = read_canonical<double>(call, *residual);
    for (size_t i = 0; i < y.size(); ++i) y[i] += more[i];
  }
  activate(call, y);
  write_canonical(call, result, y);
}

void expand_fused_conv(GraphBuilder& builder) {
  Attributes attributes = builder.call().node.attributes;
  attributes.erase("activation");
  attributes.erase("activation_params");
  std::vector<ValueId> inputs{builder.input(0), builder.input(1)};
  if (builder.input(2) != no_value) inputs.push_back(builder.input(2));
  ValueId y = builder.add("Conv", std::move(inputs), std::move(attributes));
  if (builder.input(3) != no_value) y = builder.add("Add", {y, builder.input(3)});
  finish(builder, y);
}

Op fused_conv() {
  Op op;
  op.name = "unmoor:FusedConv";
  op.summary = "Conv, then the residual added, then the activation.";
  op.inputs = {required("X", float_types()), required("W", float_types()), optional("B", float_types()),
               optional("residual", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"auto_pad", std::string("NOTSET")},
                   {"dilations", std::vector<int64_t>()},
                   {"group", int64_t{1}},
                   {"kernel_shape", std::vector<int64_t>()},
                   {"pads", std::vector<int64_t>()},
                   {"strides", std::vector<int64_t>()},
                   {"layout", std::string("NCHW")},
                   {"activation", std::string()},
                   {"activation_params", std::vector<float>()}};
  op.infer = infer_fused_conv;
  op.reference = fused_conv_reference;
  op.expand = expand_fused_conv;
  op.cost = [](const OpCall& call) { return convolution_cost(call); };
  op.rounding = Rounding::Sum;
  op.category = Category::Convolution;
  op.cases = {
      "T[1,3,8,8]~small T[4,3,3,3]~small! T[4]~small! pads=[1,1,1,1] "
      "activation=Relu,Sigmoid,HardSwish,Swish,Gelu,GeluTanh,Tanh,LeakyRelu,HardSigmoid",
      "T[1,3,8,8]~small T[4,3,3,3]~small! T[4]~small! pads=[1,1,1,1] activation=Clip activation_params=[0,6]",
      "T[1,3,8,8]~small T[4,3,3,3]~small! T[4]~small! T[1,4,8,8]~small pads=[1,1,1,1] activation=\"\",Relu",
      "T[1,3,8,8]~small T[4,3,3,3]~small! - T[1,4,8,8]~small pads=[1,1,1,1]",
      "T[2,8,9,9]~small T[8,1,3,3]~small! T[8]~small! group=8 strides=[2,2] pads=[1,1,1,1] activation=Clip "
      "activation_params=[0,6]",
      "T[1,16,7,7]~small T[32,16,1,1]~small! T[32]~small! activation=LeakyRelu activation_params=[0.1]",
      "T[1,16,7,7]~small T[8,16,1,1]~small! activation=Clip",
      "T[1,8,9,9]~small T[8,1,3,3]~small! group=8 activation=Clip activation_params=[0]",
      "T[1,8,8,3]~small T[4,3,3,3]~small! T[4]~small! T[1,8,8,4]~small pads=[1,1,1,1] activation=Relu layout=NHWC",
      "T[1,15,17,16]~small T[20,16,3,3]~small! T[20]~small! T[1,15,17,20]~small pads=[1,1,1,1] activation=Relu,Swish layout=NHWC",
      "T[1,9,16,20]~small T[20,1,3,3]~small! T[20]~small! T[1,9,16,20]~small group=20 pads=[1,1,1,1] activation=Relu layout=NHWC",
      "T[1,9,16,20]~small T[20,1,3,3]~small! T[20]~small! group=20 pads=[1,1,1,1] activation=Clip activation_params=[0,6] layout=NHWC",
      "T[2,9,16,20]~small T[3,20,3,3]~small! T[3]~small! T[2,9,16,3]~small pads=[1,1,1,1] activation=Relu,Swish layout=NHWC",
      "T[0,3,8,8] T[4,3,3,3]! T[4]! activation=Relu"};
  return op;
}


std::vector<Type> infer_fused_matmul(const OpCall& call) {
  check_activation(call);
  require_same_dtype(call);
  const Shape shape = product_shape(call, call.input(0).shape, call.input(1).shape, transposes(call));
  if (call.has(2)) require_broadcast_to(call, 2, shape);
  require_residual(call, 3, shape);
  return {TensorType{call.input(0).dtype, shape}};
}

void fused_matmul_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& a = in[0].tensor();
  const Tensor& b = in[1].tensor();
  Tensor& result = out.allocate(0, call.output(0));
  const RealInput left(a), right(b);
  std::vector<double> y(result.elements());
  add_matrices(left.data(), a.shape(), right.data(), b.shape(), transposes(call), std::span<double>(y));
  const double alpha = call.real("alpha", 1);
  for (double& value : y) value *= alpha;
  for (const size_t i : {size_t{2}, size_t{3}}) {
    const Tensor* addend = tensor_at(in, i);
    if (addend == nullptr) continue;
    const RealInput more(*addend);
    walk<1>(result.shape(), {broadcast_strides(addend->shape(), result.shape())},
            [&](size_t at, const std::array<int64_t, 1>& from) { y[at] += more.numbers()[static_cast<size_t>(from[0])]; });
  }
  activate(call, y);
  write_as<double>(result, y);
}

// The last two dimensions swapped by a Transpose.
ValueId flipped(GraphBuilder& builder, size_t i) {
  const Shape& shape = builder.call().input(i).shape;
  if (!shape.has_rank())
    fail(ErrorKind::Unsupported, title(builder.call()), ": the rank of input ", i, " is not known, so it cannot be transposed");
  if (shape.rank() < 2) return builder.input(i);
  std::vector<int64_t> order(shape.rank());
  for (size_t axis = 0; axis < order.size(); ++axis) order[axis] = static_cast<int64_t>(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return builder.add("Transpose", {builder.input(i)}, {{"perm", std::move(order)}});
}

void expand_fused_matmul(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  const Swapped swapped = transposes(call);
  const ValueId a = swapped.a ? flipped(builder, 0) : builder.input(0);
  const ValueId b = swapped.b ? flipped(builder, 1) : builder.input(1);
  ValueId y = builder.add("MatMul", {a, b});
  const double alpha = call.real("alpha", 1);
  if (alpha != 1) y = builder.add("Mul", {y, builder.scalar(alpha, call.input(0).dtype)});
  for (const size_t i : {size_t{2}, size_t{3}}) {
    if (builder.input(i) != no_value) y = builder.add("Add", {y, builder.input(i)});
  }
  finish(builder, y);
}

Op fused_matmul() {
  Op op;
  op.name = "unmoor:FusedMatMul";
  op.summary = "alpha·A·B plus bias and residual, then the activation. A and B may have their last two dimensions swapped.";
  op.inputs = {required("A", float_types()), required("B", float_types()), optional("bias", float_types()),
               optional("residual", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"transA", int64_t{0}},
                   {"transB", int64_t{0}},
                   {"alpha", 1.0F},
                   {"activation", std::string()},
                   {"activation_params", std::vector<float>()}};
  op.infer = infer_fused_matmul;
  op.reference = fused_matmul_reference;
  op.expand = expand_fused_matmul;
  op.cost = [](const OpCall& call) {
    return Cost{product_flop(call, call.input(0).shape, call.input(1).shape, transposes(call)), bytes_moved(call)};
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Matrix;
  op.cases = {
      "T[3,4]~small T[4,5]~small! T[5]~small! "
      "activation=\"\",Relu,Sigmoid,HardSwish,Swish,Gelu,GeluTanh,Tanh,LeakyRelu,HardSigmoid",
      "T[17,64]~small T[64,33]~small! T[33]~small! activation=Clip activation_params=[0,6]",
      "T[2,9,16]~small T[16,24]~small! T[24]~small! T[2,9,24]~small activation=\"\",Gelu",
      "T[2,3,4]~small T[2,5,4]~small transB=1 alpha=0.5",
      "T[2,4,3]~small T[2,4,5]~small transA=1",
      "T[1,4,16,8]~small T[1,4,16,8]~small transB=1 alpha=0.125",
      "T[3,4]~small T[4,5]~small - T[3,5]~small",
      "T[3,4]~small T[5,4]~small! T[1]~small transB=1",
      "T[4]~small T[4,5]~small T[5]~small",
      "T[0,4] T[4,5]! T[5]!",
      "T[1,128]~small T[1000,128]~small! T[1000]! transB=1"};
  return op;
}

// Where transBatchA or transBatchB is set, the matrix's first dimension goes behind its batch: [M,b,K] becomes [b,M,K]. Empty: it stays.
std::vector<int64_t> batch_order(const OpCall& call, size_t i) {
  if (call.integer(i == 0 ? "transBatchA" : "transBatchB", 0) == 0) return {};
  const Shape& shape = call.input(i).shape;
  if (!shape.has_rank()) {
    fail(ErrorKind::Unsupported, title(call), ": the rank of input ", i, " is not known, so its batch cannot be moved");
  }
  std::vector<int64_t> order;
  for (size_t axis = 1; axis + 1 < shape.rank(); ++axis) order.push_back(static_cast<int64_t>(axis));
  if (order.empty()) return {};
  order.push_back(0);
  order.push_back(static_cast<int64_t>(shape.rank()) - 1);
  return order;
}

// Whether a batch is to be moved whose place nobody knows yet.
bool hides_batch(const OpCall& call) {
  const auto hides = [&](size_t i, std::string_view key) { return call.integer(key, 0) != 0 && !call.input(i).shape.has_rank(); };
  return hides(0, "transBatchA") || hides(1, "transBatchB");
}

// The call with its batches first.
OpCall batched(const OpCall& call) {
  OpCall result{call.node, call.inputs, call.outputs, {}};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const auto order = batch_order(call, i);
    if (order.empty()) continue;
    TensorType type = call.input(i);
    Shape shape;
    for (const int64_t axis : order) shape.push_back(type.shape[static_cast<size_t>(axis)]);
    type.shape = shape;
    result.inputs[i] = type;
  }
  return result;
}

void contrib_matmul_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  std::vector<Data> moved(in.begin(), in.end());
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const auto order = batch_order(call, i);
    if (!order.empty()) moved[i] = result_by(call, "Transpose", {in[i].tensor()}, {{"perm", order}});
  }
  fused_matmul_reference(batched(call), moved, out);
}

void expand_contrib_matmul(GraphBuilder& builder) {
  const OpCall& call = builder.call();
  const auto moved = [&](size_t i) {
    const auto order = batch_order(call, i);
    return order.empty() ? builder.input(i) : builder.add("Transpose", {builder.input(i)}, {{"perm", order}});
  };
  builder.output(0, builder.add("unmoor:FusedMatMul", {moved(0), moved(1)},
                                {{"transA", call.integer("transA", 0)},
                                 {"transB", call.integer("transB", 0)},
                                 {"alpha", static_cast<float>(call.real("alpha", 1))}}));
}

// The contrib operator: no bias, residual or activation.
Op contrib_matmul() {
  Op op = fused_matmul();
  op.name = "com.microsoft:FusedMatMul";
  op.summary = "alpha·A·B. A and B may have their last two dimensions swapped, and before that their first one moved behind the batch.";
  op.inputs.resize(2);
  op.attributes = {
      {"transA", int64_t{0}}, {"transB", int64_t{0}}, {"transBatchA", int64_t{0}}, {"transBatchB", int64_t{0}}, {"alpha", 1.0F}};
  op.infer = [](const OpCall& call) {
    if (hides_batch(call)) return std::vector<Type>{TensorType{call.input(0).dtype, Shape::of_unknown_rank()}};
    return infer_fused_matmul(batched(call));
  };
  op.reference = contrib_matmul_reference;
  op.expand = expand_contrib_matmul;
  op.cost = [](const OpCall& call) {
    if (hides_batch(call)) return Cost{0, bytes_moved(call)};
    const OpCall moved = batched(call);
    return Cost{product_flop(moved, moved.input(0).shape, moved.input(1).shape, transposes(moved)), bytes_moved(call)};
  };
  op.cases = {"T[2,3,4]~small T[2,5,4]~small transB=1 alpha=0.5", "T[2,4,3]~small T[2,4,5]~small transA=1",
              "T[3,4]~small T[4,5]~small",
              "T[3,2,4]~small T[2,4,5]~small transBatchA=1",
              "T[4,2,3]~small T[5,2,4]~small transA=1 transB=1 transBatchA=1 transBatchB=1 alpha=0.5",
              "T[3,2,5,4]~small T[6,2,5,4]~small transBatchA=1 transB=1 transBatchB=1",
              "T[3,4]~small T[4,5]~small transBatchA=1 transBatchB=1"};
  return op;
}

}  // namespace

void add_fused_ops(OpSet& ops) {
  ops.add(fused_conv());
  ops.add(fused_matmul());
  ops.add(contrib_matmul());
  add_inverted_residual(ops);
}

}  // namespace unmoor
