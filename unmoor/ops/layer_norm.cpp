#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/normalize.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/real.h"

namespace unmoor {

namespace {

// The dtype of Mean and InvStdDev.
DType stash_dtype(const OpCall& call) {
  if (call.input(0).dtype == DType::F64) return DType::F64;
  const auto dtype = dtype_numbered(call.integer("stash_type", 1));
  if (!dtype || !is_float(*dtype)) {
    fail(ErrorKind::InvalidModel, title(call), ": stash_type ", call.integer("stash_type", 1), " is no floating type");
  }
  return *dtype;
}

// [axis, rank). Fails with Unsupported for an axis counted from the front of an unknown rank.
std::vector<int64_t> trailing_axes(const OpCall& call) {
  int64_t axis = call.integer("axis", -1);
  const Shape& shape = call.input(0).shape;
  if (shape.has_rank()) {
    axis = static_cast<int64_t>(axis_of(call, shape, axis)) - static_cast<int64_t>(shape.rank());
  } else if (axis >= 0) {
    fail(ErrorKind::Unsupported, title(call), ": the rank of the input is not known, so axis ", axis,
         " cannot be counted from the end");
  }
  if (axis < -64) fail(ErrorKind::InvalidModel, title(call), ": axis is ", axis);
  std::vector<int64_t> axes;
  for (; axis < 0; ++axis) axes.push_back(axis);
  return axes;
}

// The shape with all from the axis on as 1.
Shape statistics_shape(const OpCall& call) {
  Shape shape = call.input(0).shape;
  if (!shape.has_rank()) return shape;
  for (size_t axis = axis_of(call, shape, call.integer("axis", -1)); axis < shape.rank(); ++axis) shape.set(axis, 1);
  return shape;
}

std::vector<Type> infer_layer_norm(const OpCall& call) {
  require_same_dtype(call);
  const TensorType& x = call.input(0);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (call.has(i)) require_broadcast_to(call, i, x.shape);
  }
  const TensorType statistics{stash_dtype(call), statistics_shape(call)};
  return {x, statistics, statistics};
}

// x scaled and shifted by tensors that broadcast to it.
void scale_and_shift(std::vector<double>& x, const Shape& shape, const Tensor* scale, const Tensor* shift) {
  for (const Tensor* tensor : {scale, shift}) {
    if (tensor == nullptr) continue;
    const std::vector<double> values = doubles(*tensor);
    const bool adds = tensor == shift;
    walk<1>(shape, {broadcast_strides(tensor->shape(), shape)}, [&](size_t i, const std::array<int64_t, 1>& at) {
      const double value = values[static_cast<size_t>(at[0])];
      x[i] = adds ? x[i] + value : x[i] * value;
    });
  }
}

// Normalizes each row of `length` elements in place; returns what was found.
struct Statistics {
  std::vector<double> means, inverses;
};
Statistics normalize_rows(std::vector<double>& x, size_t length, double epsilon) {
  const size_t rows = length == 0 ? 0 : x.size() / length;
  Statistics found{std::vector<double>(rows), std::vector<double>(rows)};
  side_by_side_ranges(rows, 4 * static_cast<double>(length), [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const auto line = std::span<double>(x).subspan(row * length, length);
      const Moments moments = moments_of(line);
      const double inverse = 1 / std::sqrt(moments.variance + epsilon);
      for (double& each : line) each = (each - moments.mean) * inverse;
      found.means[row] = moments.mean;
      found.inverses[row] = inverse;
    }
  });
  return found;
}

// Divides each row by the root of its mean square; the means found are 0.
Statistics scale_rows(std::vector<double>& x, size_t length, double epsilon) {
  Statistics found;
  for (size_t row = 0; length > 0 && row < x.size(); row += length) {
    double sum = 0;
    for (size_t i = row; i < row + length; ++i) sum += x[i] * x[i];
    found.means.push_back(0);
    found.inverses.push_back(1 / std::sqrt(sum / static_cast<double>(length) + epsilon));
    for (size_t i = row; i < row + length; ++i) x[i] *= found.inverses.back();
  }
  return found;
}

size_t row_length(const OpCall& call, const Shape& shape) {
  return static_cast<size_t>(shape.elements(axis_of(call, shape, call.integer("axis", -1)), shape.rank()));
}

void layer_norm_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& input = in[0].tensor();
  std::vector<double> x = doubles(input);
  Statistics found = normalize_rows(x, row_length(call, input.shape()), epsilon_of(call));
  scale_and_shift(x, input.shape(), tensor_at(in, 1), tensor_at(in, 2));
  put(call, out, 0, std::span<const double>(x));
  const auto rows = static_cast<size_t>(statistics_shape(call).elements());
  found.means.resize(rows);  // Rows without elements have mean 0.
  found.inverses.resize(rows);
  if (call.wants_output(1)) put(call, out, 1, std::span<const double>(found.means));
  if (call.wants_output(2)) put(call, out, 2, std::span<const double>(found.inverses));
}

void expand_layer_norm(GraphBuilder& builder) {
  Formula f(builder);
  const Centred part = centred(f, f.input(0), trailing_axes(f.call()), epsilon_of(f.call()));
  ValueId y = f.product(f.product(part.difference, part.inverse), f.input(1));
  if (f.has(2)) y = f.sum(y, f.input(2));
  f.output(0, y);
  if (f.call().wants_output(1)) f.output(1, part.mean);
  if (f.call().wants_output(2)) f.output(2, part.inverse);
}

Op layer_norm() {
  Op op = normalization("LayerNormalization", "(x - mean) / √(variance + epsilon) over the last axes, scaled and shifted.",
                        {required("X", float_types()), required("Scale", float_types()), optional("B", float_types())}, 8);
  op.outputs = {required("Y", float_types()), optional("Mean", float_types()), optional("InvStdDev", float_types())};
  op.attributes = {{"axis", int64_t{-1}}, {"epsilon", usual_epsilon}, {"stash_type", int64_t{1}}};
  op.infer = infer_layer_norm;
  op.reference = layer_norm_reference;
  op.expand = expand_layer_norm;
  op.cases = {"T[2,3,16]~small T[16]~small! T[16]~small!",
              "T[4,257]~small T[257]~small!",
              "T[1,7,768]~small T[768]~small! T[768]~small! epsilon=1e-12",
              "T[2,3,4,5]~small T[4,5]~small! T[4,5]~small! axis=2,-2",
              "T[2,3,4]~small T[2,3,4]~small! axis=0",
              "T[2,3,4]~small T[4]~small! T[1]~small! axis=1",
              "T[0,4] T[4]! T[4]!",
              "T[2,3,16]~small T[16]~small! T[16]~small! outputs=3",
              "T[3,1]~small T[1]~small! T[1]~small!",
              "T[2,4,4]~small T[4,1]~small! T[4,1]~small!",
              "T[2,1,4]~small T[1,1,4]~small! T[4]~small!",
              "f32[3,0] f32[0] f32[0]",
              "f32[2,8]{100,101,102,103,104,105,106,107,1,1,1,1,1,1,1,1} f32[8]~small! f32[8]~small!"};
  return op;
}

void rms_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& input = in[0].tensor();
  std::vector<double> x = doubles(input);
  scale_rows(x, row_length(call, input.shape()), epsilon_of(call));
  scale_and_shift(x, input.shape(), tensor_at(in, 1), nullptr);
  put(call, out, 0, std::span<const double>(x));
}

Op rms_norm() {
  Op op = normalization("RMSNormalization", "x / √(mean of squares + epsilon) over the last axes, scaled.",
                        {required("X", float_types()), required("scale", float_types())}, 5);
  op.attributes = {{"axis", int64_t{-1}}, {"epsilon", usual_epsilon}, {"stash_type", int64_t{1}}};
  op.infer = [](const OpCall& call) {
    const Shape& shape = call.input(0).shape;
    if (shape.has_rank()) axis_of(call, shape, call.integer("axis", -1));
    require_broadcast_to(call, 1, shape);
    return std::vector<Type>{TensorType{call.input(1).dtype, shape}};
  };
  op.reference = rms_reference;
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const ValueId x = f.input(0);
    const ValueId mean = f.reduce("ReduceMean", f.square(x), trailing_axes(f.call()));
    const ValueId root = f.add("Sqrt", {f.sum(mean, f.number(epsilon_of(f.call())))});
    f.output(0, f.product(f.quotient(x, root), f.input(1)));
  };
  op.cases = {"T[2,3,16]~small T[16]~small!",
              "T[4,257]~small T[257]~small! epsilon=1e-6",
              "T[2,3,4,5]~small T[4,5]~small! axis=2,-2",
              "T[2,3,4]~small T[2,3,4]~small! axis=0",
              "T[0,4] T[4]!",
              "T[3,1]~small T[1]~small!",
              "T[2,4,4]~small T[4,1]~small!",
              "T[3,0] T[0]",
              "T[1,7,2048]~small T[2048]~small!"};
  return op;
}

// com.microsoft's LayerNormalization of input + skip + bias. `simplified`: RMSNormalization of it, without beta.
struct SkipPorts {
  size_t gamma = 2, beta = 3, bias = 4;
};
SkipPorts skip_ports(bool simplified) { return simplified ? SkipPorts{2, 99, 3} : SkipPorts{}; }

void skip_reference(bool simplified, const OpCall& call, std::span<const Data> in, Outputs& out) {
  const SkipPorts ports = skip_ports(simplified);
  const Shape& shape = in[0].tensor().shape();
  std::vector<double> x = doubles(in[0].tensor());
  scale_and_shift(x, shape, nullptr, tensor_at(in, 1));
  scale_and_shift(x, shape, nullptr, tensor_at(in, ports.bias));
  if (call.wants_output(3)) put(call, out, 3, std::span<const double>(x));
  const size_t length = shape.rank() == 0 ? 1 : static_cast<size_t>(shape[shape.rank() - 1]);
  const double epsilon = epsilon_of(call, 1e-12F);
  Statistics found = simplified ? scale_rows(x, length, epsilon) : normalize_rows(x, length, epsilon);
  scale_and_shift(x, shape, tensor_at(in, ports.gamma), tensor_at(in, ports.beta));
  put(call, out, 0, std::span<const double>(x));
  const auto rows = static_cast<size_t>(shape.rank() == 0 ? 1 : shape.elements(0, shape.rank() - 1));
  found.means.resize(rows);
  found.inverses.resize(rows);
  if (call.wants_output(1)) put(call, out, 1, std::span<const double>(found.means));
  if (call.wants_output(2)) put(call, out, 2, std::span<const double>(found.inverses));
}

void expand_skip(bool simplified, GraphBuilder& builder) {
  const SkipPorts ports = skip_ports(simplified);
  Formula f(builder);
  ValueId x = f.sum(f.input(0), f.input(1));
  if (f.has(ports.bias)) x = f.sum(x, f.input(ports.bias));
  ValueId mean{};
  ValueId inverse{};
  ValueId middle = x;
  const double epsilon = epsilon_of(f.call(), 1e-12F);
  if (simplified) {
    inverse = f.add("Reciprocal", {f.add("Sqrt", {f.sum(f.reduce("ReduceMean", f.square(x), {-1}), f.number(epsilon))})});
    mean = f.product(inverse, f.number(0));
  } else {
    const Centred part = centred(f, x, {-1}, epsilon);
    mean = part.mean;
    inverse = part.inverse;
    middle = part.difference;
  }
  ValueId y = f.product(f.product(middle, inverse), f.input(ports.gamma));
  if (!simplified && f.has(ports.beta)) y = f.sum(y, f.input(ports.beta));
  f.output(0, y);
  if (f.call().wants_output(1)) f.output(1, mean);
  if (f.call().wants_output(2)) f.output(2, inverse);
  if (f.call().wants_output(3)) f.output(3, x);
}

Op skip_norm(bool simplified) {
  std::vector<Port> inputs{required("input", float_types()), required("skip", float_types()), required("gamma", float_types())};
  if (!simplified) inputs.push_back(optional("beta", float_types()));
  inputs.push_back(optional("bias", float_types()));
  Op op = normalization(simplified ? "com.microsoft:SkipSimplifiedLayerNormalization" : "com.microsoft:SkipLayerNormalization",
                        simplified ? "RMSNormalization of input + skip + bias." : "LayerNormalization of input + skip + bias.",
                        std::move(inputs), 10);
  op.outputs = {required("output", float_types()), optional("mean", float_types()), optional("inv_std_var", float_types()),
                optional("input_skip_bias_sum", float_types())};
  op.attributes = {{"epsilon", 1e-12F}};
  op.infer = [](const OpCall& call) {
    require_same_dtype(call);
    const TensorType& x = call.input(0);
    for (size_t i = 1; i < call.input_count(); ++i) {
      if (call.has(i)) require_broadcast_to(call, i, x.shape);
    }
    TensorType statistics{x.dtype == DType::F64 ? DType::F64 : DType::F32, x.shape};
    if (x.shape.has_rank() && x.shape.rank() > 0) statistics.shape.set(x.shape.rank() - 1, 1);
    return std::vector<Type>{x, statistics, statistics, x};
  };
  op.reference = [simplified](const OpCall& call, std::span<const Data> in, Outputs& out) {
    skip_reference(simplified, call, in, out);
  };
  op.expand = [simplified](GraphBuilder& builder) { expand_skip(simplified, builder); };
  op.cases = {"T[2,3,16]~small T[2,3,16]~small T[16]~small!",
              "T[2,3,16]~small T[1,3,16]~small T[16]~small! T[16]~small! epsilon=1e-5",
              "T[2,3,16]~small T[3,16]~small T[16]~small! T[16]~small! outputs=4", "T[0,3,4] T[0,3,4] T[4]!"};
  if (!simplified)
    op.cases.emplace_back("T[2,3,64]~small T[2,3,64]~small T[64]~small! T[64]~small! T[64]~small! epsilon=1e-5 outputs=4");
  return op;
}

}  // namespace

void add_layer_norms(OpSet& ops) {
  ops.add(layer_norm());
  ops.add(rms_norm());
  ops.add(skip_norm(false));
  ops.add(skip_norm(true));
}

}  // namespace unmoor
