#include "unmoor/ops/conv_transpose.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/convolve.h"

namespace unmoor {

namespace {

// Sizes of a transposed convolution. Its window is that of the convolution it undoes: input and output are swapped, so
// `window.input` are the dimensions of Y and `window.output` those of X.
struct Transposed {
  Window window;
  int64_t batch = 1;
  int64_t channels = 1;  // Of X.
  int64_t outputs = 1;   // Channels of Y.
  int64_t group = 1;
};

// Sets padding and Y's size of one axis from X's size.
void resolve(const OpCall& call, Window& window, size_t axis, int64_t extra, int64_t wanted) {
  const int64_t x = window.output[axis];
  if (x < 0 || window.kernel[axis] < 0) {
    window.input[axis] = wanted;
    return;
  }
  const int64_t natural = window.strides[axis] * (x - 1) + extra + window.reach(axis);
  const std::string kind = padding_kind(call);
  const bool same = kind == "SAME_UPPER" || kind == "SAME_LOWER";
  if (wanted < 0 && same) wanted = x * window.strides[axis];
  if (wanted < 0) {
    window.input[axis] = natural - window.begin[axis] - window.end[axis];
    if (window.input[axis] < 0) {
      fail(ErrorKind::InvalidModel, title(call), ": padding takes more than the ", natural, " elements of spatial axis ", axis);
    }
    return;
  }
  const int64_t total = std::max<int64_t>(0, natural - wanted);
  window.begin[axis] = kind == "SAME_UPPER" ? total / 2 : total - total / 2;
  window.end[axis] = total - window.begin[axis];
  window.input[axis] = wanted;
}

Transposed transposed_of(const OpCall& call, const Shape& x, const Shape& w) {
  const size_t full = x.has_rank() ? x.rank() : w.rank();
  if (full < 3 || (w.has_rank() && w.rank() != full)) {
    fail(ErrorKind::InvalidModel, title(call), ": input ", x, " and weight ", w, " do not have the same rank of 3 or more");
  }
  const size_t rank = full - 2;
  Transposed result;
  result.group = call.integer("group", 1);
  result.batch = x.has_rank() ? x[0] : Shape::unknown;
  result.channels =
      same_dim(call, x.has_rank() ? x[1] : Shape::unknown, w.has_rank() ? w[0] : Shape::unknown, "the number of channels");
  require_size(call, "group", result.group, 1);
  if (result.channels >= 0 && result.channels % result.group != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": ", result.channels, " channels do not divide into ", result.group, " groups");
  }
  const int64_t per_group = w.has_rank() ? w[1] : Shape::unknown;
  if (per_group >= 0) require_size(call, "the number of output channels a group", per_group, 0);
  result.outputs = per_group < 0 ? Shape::unknown : per_group * result.group;
  Window& window = result.window;
  window.kernel.assign(rank, Shape::unknown);
  window.output.assign(rank, Shape::unknown);
  const std::vector<int64_t> declared = per_axis(call, "kernel_shape", rank, Shape::unknown, Shape::unknown);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (x.has_rank()) window.output[axis] = x[axis + 2];
    window.kernel[axis] = same_dim(call, w.has_rank() ? w[axis + 2] : Shape::unknown, declared[axis], "kernel_shape");
    if (window.output[axis] >= 0) require_size(call, "the input", window.output[axis], 0);
    if (window.kernel[axis] >= 0) require_size(call, "the kernel", window.kernel[axis], 1);
  }
  window.strides = per_axis(call, "strides", rank, 1, 1);
  window.dilations = per_axis(call, "dilations", rank, 1, 1);
  const std::vector<int64_t> pads = per_axis(call, "pads", 2 * rank, 0, 0);
  window.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  if (padding_kind(call) == "VALID") window.begin = window.end = std::vector<int64_t>(rank, 0);
  window.input.assign(rank, Shape::unknown);
  const std::vector<int64_t> extra = per_axis(call, "output_padding", rank, 0, 0);
  const std::vector<int64_t> wanted = per_axis(call, "output_shape", rank, Shape::unknown, Shape::unknown);
  for (size_t axis = 0; axis < rank; ++axis) resolve(call, window, axis, extra[axis], wanted[axis]);
  return result;
}

std::vector<Type> infer_transposed(const OpCall& call) {
  const Shape x = canonical(call, call.input(0).shape);
  const Shape& w = call.input(1).shape;
  if (!x.has_rank() && !w.has_rank()) return {TensorType{call.input(0).dtype, Shape::of_unknown_rank()}};
  const Transposed sizes = transposed_of(call, x, w);
  require_bias(call, 2, sizes.outputs);
  Shape shape{sizes.batch, sizes.outputs};
  for (const int64_t dim : sizes.window.input) shape.push_back(dim);
  if (x.has_rank() && !x.symbol(0).empty()) shape.set_symbol(0, x.symbol(0));
  return {TensorType{call.input(0).dtype, in_layout(call, shape)}};
}

// Adds what each position of X spreads over the taps around its place in Y.
std::vector<double> spread(const Transposed& sizes, const std::vector<double>& x, const std::vector<double>& w) {
  const auto size = [](int64_t value) { return static_cast<size_t>(value); };
  const Window& window = sizes.window;
  const size_t plane = size(Shape(window.input).elements());
  const size_t positions = size(Shape(window.output).elements());
  const size_t taps = size(Shape(window.kernel).elements());
  const size_t group = size(sizes.group);
  const size_t inputs = size(sizes.channels) / group;
  const size_t outputs = size(sizes.outputs) / group;
  std::vector<double> y(size(sizes.batch) * group * outputs * plane);
  if (y.empty() || positions == 0 || inputs == 0) return y;
  std::vector<std::vector<double>> weights;  // By group: [outputs · taps, inputs].
  for (size_t g = 0; g < group; ++g)
    weights.push_back(transposed(w.data() + g * inputs * outputs * taps, inputs, outputs * taps));
  const size_t chunk = std::max<size_t>(64, std::min<size_t>(positions, (size_t{1} << 23) / (outputs * taps)));
  for (size_t first = 0; first < positions; first += chunk) {
    const size_t count = std::min(chunk, positions - first);
    TapOffsets offsets(window, static_cast<int64_t>(first), static_cast<int64_t>(count));
    for (size_t slice = 0; slice < size(sizes.batch) * group; ++slice) {
      std::vector<double> from(inputs * count);
      for (size_t c = 0; c < inputs; ++c) std::copy_n(&x[(slice * inputs + c) * positions + first], count, &from[c * count]);
      std::vector<double> columns(outputs * taps * count);
      add_product(weights[slice % group].data(), from.data(), columns.data(), outputs * taps, count, inputs);
      std::vector<int64_t> kernel_index(window.rank());
      for (size_t tap = 0; tap < taps; ++tap, advance(kernel_index, window.kernel)) {
        const std::vector<int64_t>& to = offsets.at(kernel_index);
        for (size_t m = 0; m < outputs; ++m) {
          for (size_t i = 0; i < count; ++i) {
            if (to[i] >= 0) y[(slice * outputs + m) * plane + size(to[i])] += columns[(m * taps + tap) * count + i];
          }
        }
      }
    }
  }
  return y;
}

void transposed_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Transposed sizes = transposed_of(call, canonical(call, in[0].tensor().shape()), in[1].tensor().shape());
  Tensor& result = out.allocate(0, call.output(0));
  std::vector<double> y = spread(sizes, read_canonical<double>(call, in[0].tensor()), doubles(in[1].tensor()));
  add_bias(y, doubles_at(in, 2), static_cast<size_t>(Shape(sizes.window.input).elements()));
  write_canonical(call, result, y);
}

Cost transposed_cost(const OpCall& call) {
  const double x = elements_or_zero(call.input(0).shape);
  const Shape& w = call.input(1).shape;
  const double each = w.is_known() ? static_cast<double>(w.elements(1, w.rank())) : 0;
  return {2 * x * each, bytes_moved(call)};
}

}  // namespace

void add_conv_transpose(OpSet& ops) {
  Op op;
  op.name = "ConvTranspose";
  op.summary = "Transposed convolution: spreads each element of X over the weights W.";
  op.inputs = {required("X", float_types()), required("W", float_types()), optional("B", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {
      {"auto_pad", std::string("NOTSET")},        {"dilations", std::vector<int64_t>()},    {"group", int64_t{1}},
      {"kernel_shape", std::vector<int64_t>()},   {"pads", std::vector<int64_t>()},         {"strides", std::vector<int64_t>()},
      {"output_padding", std::vector<int64_t>()}, {"output_shape", std::vector<int64_t>()}, {"layout", std::string("NCHW")}};
  op.infer = infer_transposed;
  op.reference = transposed_reference;
  op.cost = transposed_cost;
  op.rounding = Rounding::Sum;
  op.category = Category::Convolution;
  op.cases = {"T[1,3,5,5]~small T[3,4,3,3]~small! T[4]! pads=[0,0,0,0],[1,1,1,1],[0,1,1,0]",
              "T[2,4,5,6]~small T[4,3,3,3]~small! T[6]! group=2 strides=[2,2] pads=[1,1,1,1] output_padding=[0,0],[1,1]",
              "T[1,4,5,5]~small T[4,1,4,4]~small! - group=4 strides=[2,2] pads=[1,1,1,1]",
              "T[1,1,3,3]~small T[1,2,3,3]~small! strides=[3,2] output_shape=[10,8],[9,7]",
              "T[1,1,3,3]~small T[1,2,3,3]~small! strides=[2,2] auto_pad=SAME_UPPER,SAME_LOWER,VALID",
              "T[1,2,3,3]~small T[2,1,2,2]~small! dilations=[2,2]",
              "T[1,3,7]~small T[3,2,3]~small! T[2]! strides=[2] pads=[1,0]",
              "T[1,2,3,4,5]~small T[2,3,2,2,2]~small! strides=[2,2,2]",
              "T[0,3,5,5] T[3,4,3,3]!",
              "T[1,5,5,3]~small T[3,4,3,3]~small! T[4]! strides=[2,2] layout=NHWC"};
  ops.add(std::move(op));
}

}  // namespace unmoor
