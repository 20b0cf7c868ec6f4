#include "unmoor/ops/inverted_residual.h"

#include <array>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/ops/activate.h"
#include "unmoor/ops/convolve.h"

namespace unmoor {

namespace {

using namespace inverted_residual;

std::string key_of(std::string_view prefix, std::string_view key) { return cat(prefix, key); }

std::function<double(double)> activation_of(const OpCall& call, std::string_view prefix) {
  try {
    return activation_named(call.text(key_of(prefix, "activation"), ""), call.reals(key_of(prefix, "activation_params")));
  } catch (Error& error) {
    error.note(cat("in ", title(call)));
    throw;
  }
}

int64_t dim(const OpCall& call, size_t i, size_t axis) {
  return call.has(i) && call.input(i).shape.has_rank() ? call.input(i).shape[axis] : Shape::unknown;
}

void require_shape(const OpCall& call, size_t i, const std::vector<int64_t>& wanted, std::string_view what) {
  if (!call.has(i) || !call.input(i).shape.has_rank()) return;
  require_rank(call, i, wanted.size());
  for (size_t axis = 0; axis < wanted.size(); ++axis) same_dim(call, dim(call, i, axis), wanted[axis], what);
}

std::vector<Type> infer(const OpCall& call) {
  require_same_dtype(call);
  for (const std::string_view prefix : {expand_prefix, depthwise_prefix, std::string_view()}) activation_of(call, prefix);
  const InvertedResidualCall read = read_inverted_residual(call);
  const Shape& x = call.input(X).shape;
  Shape shape;
  if (x.has_rank()) {
    shape.push_back(x, 0);
  } else {
    shape.push_back(Shape::unknown);
  }
  for (const int64_t output : read.window.output) shape.push_back(output);
  shape.push_back(read.outputs);
  require_shape(call, Residual, shape.dims(), "a dimension of residual and output");
  return {TensorType{call.input(X).dtype, shape}};
}

// Pixels [pixel][from] to [pixel][to] by weights [to][from], with what is added and the activation.
std::vector<double> pointwise(const std::vector<double>& x, size_t pixels, const std::vector<double>& weights, size_t from,
                              size_t to, const std::vector<double>& bias, const std::vector<double>& residual,
                              const std::function<double(double)>& activation) {
  std::vector<double> y(pixels * to);
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t o = 0; o < to; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (size_t c = 0; c < from; ++c) sum += x[i * from + c] * weights[o * from + c];
      if (!residual.empty()) sum += residual[i * to + o];
      y[i * to + o] = activation(sum);
    }
  }
  return y;
}

// One image.
std::vector<double> depthwise(const std::vector<double>& x, const Window& w, size_t channels, const std::vector<double>& weights,
                              const std::vector<double>& bias, const std::function<double(double)>& activation) {
  std::vector<double> y(static_cast<size_t>(Shape(w.output).elements()) * channels);
  const int64_t taps = Shape(w.kernel).elements();
  size_t at = 0;
  for (int64_t row = 0; row < w.output[0]; ++row) {
    for (int64_t column = 0; column < w.output[1]; ++column) {
      for (size_t c = 0; c < channels; ++c) {
        double sum = bias.empty() ? 0 : bias[c];
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t h = row * w.strides[0] - w.begin[0] + tap / w.kernel[1] * w.dilations[0];
          const int64_t v = column * w.strides[1] - w.begin[1] + tap % w.kernel[1] * w.dilations[1];
          if (h < 0 || h >= w.input[0] || v < 0 || v >= w.input[1]) continue;
          sum += x[static_cast<size_t>(h * w.input[1] + v) * channels + c] *
                 weights[c * static_cast<size_t>(taps) + static_cast<size_t>(tap)];
        }
        y[at++] = activation(sum);
      }
    }
  }
  return y;
}

void reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const InvertedResidualCall read = read_inverted_residual(call);
  Tensor& result = out.allocate(0, call.output(0));
  if (result.elements() == 0) return;
  const std::vector<double> x = doubles(in[X].tensor());
  std::array<std::vector<double>, Residual + 1> operands;
  for (size_t i = ExpandWeights; i <= Residual; ++i) operands.at(i) = doubles_at(in, i);
  const auto plain = [](double value) { return value; };
  const auto activation = activation_of(call, "");
  const auto expanded = static_cast<size_t>(read.expanded);
  const auto outputs = static_cast<size_t>(read.outputs);
  const auto pixels = static_cast<size_t>(Shape(read.window.input).elements());
  const auto out_pixels = static_cast<size_t>(Shape(read.window.output).elements());
  check_memory(static_cast<size_t>(Shape{read.window.input[0], read.window.input[1], read.expanded}.elements()) * sizeof(double));
  const size_t image = pixels * static_cast<size_t>(read.channels);
  std::vector<double> y;
  for (size_t n = 0; n < static_cast<size_t>(read.batch); ++n) {
    std::vector<double> wide(x.begin() + static_cast<std::ptrdiff_t>(n * image),
                             x.begin() + static_cast<std::ptrdiff_t>((n + 1) * image));
    if (call.has(ExpandWeights)) {
      wide = pointwise(wide, pixels, operands[ExpandWeights], static_cast<size_t>(read.channels), expanded, operands[ExpandBias],
                       {}, activation_of(call, expand_prefix));
    }
    wide = depthwise(wide, read.window, expanded, operands[DepthwiseWeights], operands[DepthwiseBias],
                     activation_of(call, depthwise_prefix));
    const std::vector<double> narrow =
        pointwise(wide, out_pixels, operands[ProjectWeights], expanded, outputs, operands[ProjectBias], {}, plain);
    y.insert(y.end(), narrow.begin(), narrow.end());
  }
  for (size_t i = 0; i < y.size(); ++i) y[i] = activation(y[i] + (call.has(Residual) ? operands[Residual][i] : 0));
  write_as<double>(result, y);
}

Attributes convolution(const OpCall& call, std::string_view prefix) {
  return {{"layout", std::string("NHWC")},
          {"activation", call.text(key_of(prefix, "activation"), "")},
          {"activation_params", call.reals(key_of(prefix, "activation_params"))}};
}

void expand(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = builder.call();
  const int64_t group = read_inverted_residual(call).expanded;
  if (group < 0) fail(ErrorKind::Unsupported, title(call), ": the number of expanded channels is not known");
  const auto input = [&](size_t i) { return f.has(i) ? f.input(i) : no_value; };
  ValueId x = input(X);
  if (f.has(ExpandWeights)) {
    x = f.add("unmoor:FusedConv", {x, input(ExpandWeights), input(ExpandBias)}, convolution(call, expand_prefix));
  }
  Attributes window = convolution(call, depthwise_prefix);
  window["group"] = group;
  for (const char* const key : {"auto_pad", "dilations", "pads", "strides"}) {
    const auto found = call.node.attributes.find(key);
    if (found != call.node.attributes.end()) window[key] = found->second;
  }
  x = f.add("unmoor:FusedConv", {x, input(DepthwiseWeights), input(DepthwiseBias)}, std::move(window));
  f.output(0, f.add("unmoor:FusedConv", {x, input(ProjectWeights), input(ProjectBias), input(Residual)}, convolution(call, "")));
}

Cost cost(const OpCall& call) {
  const InvertedResidualCall read = read_inverted_residual(call);
  if (!call.input(X).shape.is_known() || !call.output(0).shape.is_known() || !call.input(DepthwiseWeights).shape.is_known()) {
    return {0, bytes_moved(call)};
  }
  const double in_pixels = elements_or_zero(Shape(read.window.input));
  const double out_pixels = elements_or_zero(Shape(read.window.output));
  const double taps = elements_or_zero(Shape(read.window.kernel));
  const auto expanded = static_cast<double>(read.expanded);
  const double expansion = call.has(ExpandWeights) ? in_pixels * static_cast<double>(read.channels) : 0;
  const double rest = out_pixels * (taps + static_cast<double>(read.outputs));
  return {2 * static_cast<double>(read.batch) * expanded * (expansion + rest), bytes_moved(call)};
}

const std::vector<std::string>& inverted_residual_cases() {
  static const std::vector<std::string> cases{
      "T[1,8,9,6]~small T[20,6,1,1]~small! T[20]~small! T[20,1,3,3]~small! T[20]~small! T[10,20,1,1]~small! T[10]~small! "
      "pads=[1,1,1,1] strides=[1,1],[2,2],[2,1] expand_activation=Clip expand_activation_params=[0,6] depthwise_activation=Clip "
      "depthwise_activation_params=[0,6]",
      "T[2,7,7,8]~small T[48,8,1,1]~small! T[48]~small! T[48,1,3,3]~small! T[48]~small! T[8,48,1,1]~small! T[8]~small! "
      "T[2,7,7,8]~small "
      "pads=[1,1,1,1] expand_activation=Relu,HardSwish depthwise_activation=Relu,HardSwish activation=\"\",Relu",
      // No biases; no activations; no expansion.
      "T[1,6,5,4]~small T[24,4,1,1]~small! - T[24,1,3,3]~small! - T[5,24,1,1]~small! pads=[1,1,1,1]",
      "T[2,9,10,20]~small - - T[20,1,3,3]~small! T[20]~small! T[12,20,1,1]~small! T[12]~small! pads=[1,1,1,1] "
      "strides=[1,1],[2,2] "
      "depthwise_activation=Relu,Swish",
      "T[1,5,6,8]~small - - T[8,1,3,3]~small! - T[8,8,1,1]~small! - T[1,5,6,8]~small pads=[1,1,1,1] activation=Relu",
      // Windows of other sizes and places.
      "T[1,11,13,5]~small T[17,5,1,1]~small! T[17]~small! T[17,1,5,5]~small! T[17]~small! T[9,17,1,1]~small! - pads=[2,2,2,2] "
      "strides=[1,1],[2,2] "
      "expand_activation=Relu",
      "T[1,10,9,5]~small T[8,5,1,1]~small! T[8]~small! T[8,1,3,2]~small! - T[4,8,1,1]~small! - pads=[0,2,1,0],[2,0,0,3] "
      "dilations=[1,1],[2,3]",
      "T[1,10,10,4]~small T[16,4,1,1]~small! - T[16,1,3,3]~small! - T[4,16,1,1]~small! auto_pad=SAME_UPPER,SAME_LOWER,VALID "
      "strides=[1,1],[2,2],[4,3]",
      "T[1,9,9,4]~small T[16,4,1,1]~small! T[16]~small! T[16,1,1,1]~small! - T[4,16,1,1]~small! strides=[1,1],[3,3]",
      "T[1,3,3,4]~small T[16,4,1,1]~small! T[16]~small! T[16,1,3,3]~small! - T[4,16,1,1]~small! pads=[4,4,4,4]",
      // Weights that are no constants.
      "T[1,4,4,3]~small T[6,3,1,1]~small T[6]~small T[6,1,3,3]~small T[6]~small T[2,6,1,1]~small T[2]~small pads=[1,1,1,1]",
      // Sizes of real models.
      "f32[1,56,56,24]~small f32[144,24,1,1]~small! f32[144]~small! f32[144,1,3,3]~small! f32[144]~small! f32[24,144,1,1]~small! "
      "f32[24]~small! "
      "f32[1,56,56,24]~small pads=[1,1,1,1] expand_activation=Clip expand_activation_params=[0,6] depthwise_activation=Clip "
      "depthwise_activation_params=[0,6]",
      "f32[1,57,57,16]~small f32[72,16,1,1]~small! f32[72]~small! f32[72,1,5,5]~small! f32[72]~small! f32[40,72,1,1]~small! "
      "f32[40]~small! "
      "pads=[2,2,2,2] strides=[2,2] expand_activation=HardSwish depthwise_activation=HardSwish activation=HardSwish",
      "f32[1,112,112,20]~small - - f32[20,1,3,3]~small! f32[20]~small! f32[16,20,1,1]~small! f32[16]~small! pads=[1,1,1,1] "
      "depthwise_activation=Relu",
      "f32[1,28,28,40]~small f32[120,40,1,1]~small! f32[120]~small! f32[120,1,5,5]~small! f32[120]~small! f32[48,120,1,1]~small! "
      "f32[48]~small! "
      "pads=[2,2,2,2] strides=[2,2] expand_activation=HardSwish depthwise_activation=HardSwish",
      // Nothing to do.
      "T[0,4,4,3] T[6,3,1,1]! - T[6,1,3,3]! - T[2,6,1,1]! pads=[1,1,1,1]"};
  return cases;
}

}  // namespace

InvertedResidualCall read_inverted_residual(const OpCall& call) {
  InvertedResidualCall read;
  require_rank(call, X, 4);
  read.batch = dim(call, X, 0);
  read.channels = dim(call, X, 3);
  for (const size_t i : {ExpandWeights, DepthwiseWeights, ProjectWeights}) {
    if (call.has(i)) require_rank(call, i, 4);
  }
  if (!call.has(ExpandWeights) && call.has(ExpandBias))
    fail(ErrorKind::InvalidModel, title(call), ": a bias of the expansion without its weights");
  read.expanded = call.has(ExpandWeights) ? dim(call, ExpandWeights, 0) : read.channels;
  read.expanded = same_dim(call, read.expanded, dim(call, DepthwiseWeights, 0), "the number of depthwise kernels");
  read.expanded = same_dim(call, read.expanded, dim(call, ProjectWeights, 1), "the number of expanded channels");
  read.outputs = dim(call, ProjectWeights, 0);
  if (!call.has(ExpandWeights)) read.channels = read.expanded;
  require_shape(call, ExpandWeights, {read.expanded, read.channels, 1, 1}, "a dimension of the expansion's weights");
  const std::vector<int64_t> kernel{dim(call, DepthwiseWeights, 2), dim(call, DepthwiseWeights, 3)};
  require_shape(call, DepthwiseWeights, {read.expanded, 1, kernel[0], kernel[1]}, "a dimension of the depthwise weights");
  require_shape(call, ProjectWeights, {read.outputs, read.expanded, 1, 1}, "a dimension of the projection's weights");
  require_bias(call, ExpandBias, read.expanded);
  require_bias(call, DepthwiseBias, read.expanded);
  require_bias(call, ProjectBias, read.outputs);
  read.window = window_of(call, {dim(call, X, 1), dim(call, X, 2)}, kernel);
  return read;
}

void add_inverted_residual(OpSet& ops) {
  Op op;
  op.name = "unmoor:InvertedResidual";
  op.summary =
      "A 1×1 convolution, a depthwise one and a 1×1 one, each with its activation, then the residual. Channels lie last.";
  op.inputs = {required("X", float_types()),           optional("expand_W", float_types()),
               optional("expand_B", float_types()),    required("depthwise_W", float_types()),
               optional("depthwise_B", float_types()), required("project_W", float_types()),
               optional("project_B", float_types()),   optional("residual", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"auto_pad", std::string("NOTSET")},     {"dilations", std::vector<int64_t>()},
                   {"pads", std::vector<int64_t>()},        {"strides", std::vector<int64_t>()},
                   {"expand_activation", std::string()},    {"expand_activation_params", std::vector<float>()},
                   {"depthwise_activation", std::string()}, {"depthwise_activation_params", std::vector<float>()},
                   {"activation", std::string()},           {"activation_params", std::vector<float>()}};
  op.infer = infer;
  op.reference = reference;
  op.expand = expand;
  op.cost = cost;
  op.rounding = Rounding::Sum;
  op.category = Category::Convolution;
  op.cases = inverted_residual_cases();
  ops.add(std::move(op));
}

}  // namespace unmoor
