#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/window.h"

namespace unmoor {

namespace {

Window pool_window(const OpCall& call, const Shape& first) {
  const std::vector<int64_t> kernel = call.integers("kernel_shape");
  if (kernel.empty()) fail(ErrorKind::InvalidModel, title(call), ": kernel_shape is missing");
  for (const int64_t size : kernel) {
    if (size < 1) fail(ErrorKind::InvalidModel, title(call), ": kernel_shape has the value ", size);
  }
  std::vector<int64_t> input(kernel.size(), Shape::unknown);
  if (first.has_rank()) {
    if (first.rank() != kernel.size() + 2) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", first, " does not have ", kernel.size(),
           " spatial axes as kernel_shape has");
    }
    input.assign(first.dims().begin() + 2, first.dims().end());
  }
  return window_of(call, std::move(input), kernel);
}

Shape pooled_shape(const OpCall& call) {
  const Shape first = canonical(call, call.input(0).shape);
  const Window window = pool_window(call, first);
  Shape shape = unknown_shape(2);
  if (first.has_rank()) {
    shape = Shape();
    shape.push_back(first, 0);
    shape.push_back(first, 1);
  }
  for (const int64_t dim : window.output) shape.push_back(dim);
  return in_layout(call, shape);
}

// Calls visit(plane, position, taps, padded) for every output element; the planes are those of N and C.
template <class Visit>
void each_element(const Window& window, size_t planes, Visit visit) {
  each_window(window, [&](size_t position, std::span<const int64_t> taps, int64_t padded) {
    for (size_t plane = 0; plane < planes; ++plane) visit(plane, position, taps, padded);
  });
}

size_t planes_of(const Shape& first) { return static_cast<size_t>(first.elements(0, 2)); }

// A tap's place in the whole tensor as ONNX counts it: storage_order 1 counts the spatial axes column by column.
int64_t reported_index(const Window& window, size_t plane, int64_t tap, bool column_major) {
  const Shape input(window.input);
  const int64_t base = static_cast<int64_t>(plane) * input.elements();
  if (!column_major) return base + tap;
  int64_t index = 0;
  int64_t scale = 1;
  const std::vector<int64_t> strides = input.strides();
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    index += tap / strides[axis] % window.input[axis] * scale;
    scale *= window.input[axis];
  }
  return base + index;
}

void max_pool_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const Shape first = canonical(call, x.shape());
  const Window window = pool_window(call, first);
  const auto positions = static_cast<size_t>(Shape(window.output).elements());
  const auto plane_size = static_cast<size_t>(Shape(window.input).elements());
  const std::vector<double> values = read_canonical<double>(call, x);
  const bool column_major = call.integer("storage_order", 0) != 0;
  const bool wants_indices = call.wants_output(1);
  Tensor& result = out.allocate(0, call.output(0));
  const double least = is_float(x.dtype()) ? -std::numeric_limits<double>::infinity() : is_signed(x.dtype()) ? -128 : 0;
  std::vector<double> y(result.elements());
  std::vector<int64_t> indices(wants_indices ? y.size() : 0);
  each_element(window, planes_of(first), [&](size_t plane, size_t position, std::span<const int64_t> taps, int64_t) {
    double best = least;
    int64_t where = taps.empty() ? 0 : taps[0];
    for (const int64_t tap : taps) {
      const double value = values[plane * plane_size + static_cast<size_t>(tap)];
      if (value > best || (std::isnan(value) && !std::isnan(best))) {
        best = value;
        where = tap;
      }
    }
    y[plane * positions + position] = best;
    if (wants_indices) indices[plane * positions + position] = reported_index(window, plane, where, column_major);
  });
  write_canonical(call, result, y);
  if (wants_indices) write_canonical(call, out.allocate(1, {DType::I64, result.shape()}), indices);
}

void average_pool_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape first = canonical(call, in[0].tensor().shape());
  const Window window = pool_window(call, first);
  const auto positions = static_cast<size_t>(Shape(window.output).elements());
  const auto plane_size = static_cast<size_t>(Shape(window.input).elements());
  const std::vector<double> values = read_canonical<double>(call, in[0].tensor());
  const bool counts_padding = call.integer("count_include_pad", 0) != 0;
  Tensor& result = out.allocate(0, call.output(0));
  std::vector<double> y(result.elements());
  each_element(window, planes_of(first), [&](size_t plane, size_t position, std::span<const int64_t> taps, int64_t padded) {
    double sum = 0;
    for (const int64_t tap : taps) sum += values[plane * plane_size + static_cast<size_t>(tap)];
    const double count = counts_padding ? static_cast<double>(padded) : static_cast<double>(taps.size());
    y[plane * positions + position] = count == 0 ? 0 : sum / count;
  });
  write_canonical(call, result, y);
}

int64_t norm_order(const OpCall& call) {
  const int64_t p = call.integer("p", 2);
  if (p < 1) fail(ErrorKind::InvalidModel, title(call), ": p is ", p, ", not 1 or more");
  return p;
}

void lp_pool_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape first = canonical(call, in[0].tensor().shape());
  const Window window = pool_window(call, first);
  const auto positions = static_cast<size_t>(Shape(window.output).elements());
  const auto plane_size = static_cast<size_t>(Shape(window.input).elements());
  const std::vector<double> values = read_canonical<double>(call, in[0].tensor());
  const auto p = static_cast<double>(norm_order(call));
  Tensor& result = out.allocate(0, call.output(0));
  std::vector<double> y(result.elements());
  each_element(window, planes_of(first), [&](size_t plane, size_t position, std::span<const int64_t> taps, int64_t) {
    double sum = 0;
    for (const int64_t tap : taps) sum += std::pow(std::fabs(values[plane * plane_size + static_cast<size_t>(tap)]), p);
    y[plane * positions + position] = std::pow(sum, 1 / p);
  });
  write_canonical(call, result, y);
}

Op pool(std::string name, std::string summary, double flop_per_tap, Rounding rounding) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"auto_pad", std::string("NOTSET")},   {"ceil_mode", int64_t{0}},
                   {"dilations", std::vector<int64_t>()}, {"kernel_shape", std::vector<int64_t>()},
                   {"pads", std::vector<int64_t>()},      {"strides", std::vector<int64_t>()},
                   {"layout", std::string("NCHW")}};
  op.infer = [](const OpCall& call) { return std::vector<Type>{TensorType{call.input(0).dtype, pooled_shape(call)}}; };
  op.cost = [flop_per_tap](const OpCall& call) {
    double taps = flop_per_tap;
    for (const int64_t size : call.integers("kernel_shape")) taps *= static_cast<double>(size);
    return Cost{taps * elements_or_zero(call.output(0).shape), bytes_moved(call)};
  };
  op.rounding = rounding;
  op.category = Category::Pooling;
  op.cases = {"T[1,3,8,8] kernel_shape=[2,2],[3,3] strides=[2,2]",
              "T[2,3,9,7] kernel_shape=[3,3] pads=[1,1,1,1],[0,1,1,0] strides=[1,1],[2,2]",
              "T[1,2,7,7] kernel_shape=[3,2] ceil_mode=0,1 strides=[2,2],[3,3]",
              "T[1,2,6,6] kernel_shape=[2,2] strides=[3,3] pads=[1,1,1,1] ceil_mode=1",
              "T[1,3,10,10] kernel_shape=[3,3] auto_pad=SAME_UPPER,SAME_LOWER,VALID strides=[1,1],[2,2]",
              "T[1,2,9,9] kernel_shape=[3,3] dilations=[2,2]",
              "T[2,3,17] kernel_shape=[5] strides=[3] pads=[2,1]",
              "T[1,2,5,6,7] kernel_shape=[2,3,2] strides=[2,2,2]",
              "T[0,3,8,8] kernel_shape=[2,2]",
              "T[1,2,4,4] kernel_shape=[2,2] strides=[] pads=[] dilations=[]",
              "T[1,2,5,5] kernel_shape=[2,3] strides=[1000000000,1000000000]",
              "T[1,64,14,14] kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]",
              "T[2,9,7,3] kernel_shape=[3,3] pads=[1,1,1,1] strides=[2,2] layout=NHWC",
              "T[1,7,9,37] kernel_shape=[3,2] ceil_mode=0,1 strides=[2,2],[3,3] dilations=[1,2] layout=NHWC"};
  return op;
}

void add_window_pools(OpSet& ops) {
  Op max = pool("MaxPool", "The greatest of each window; NaN wins. Its place, if asked for.", 1, Rounding::MoveBits);
  max.inputs[0].dtypes = max.outputs[0].dtypes = {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::U8};
  max.outputs.push_back(optional("Indices", {DType::I64}));
  max.attributes["storage_order"] = int64_t{0};
  max.infer = [](const OpCall& call) {
    const Shape shape = pooled_shape(call);
    return std::vector<Type>{TensorType{call.input(0).dtype, shape}, TensorType{DType::I64, shape}};
  };
  max.reference = max_pool_reference;
  max.cases.emplace_back("T[1,2,6,6] kernel_shape=[2,2] strides=[2,2] storage_order=0,1 outputs=2");
  max.cases.emplace_back("f32[1,1,4,4]{1,1,1,1,1,2,2,1,1,2,2,1,1,1,1,1} kernel_shape=[3,3] outputs=2");
  max.cases.emplace_back("T[2,3,5,5] kernel_shape=[3,3] pads=[1,1,1,1] outputs=2");
  ops.add(std::move(max));
  Op average = pool("AveragePool", "The mean of each window, padding counted if asked.", 1, Rounding::Sum);
  average.attributes["count_include_pad"] = int64_t{0};
  average.reference = average_pool_reference;
  average.cases.emplace_back("T[2,3,9,7] kernel_shape=[3,3] pads=[1,1,1,1],[0,1,1,0] strides=[2,2] count_include_pad=1");
  average.cases.emplace_back("T[1,2,6,6] kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] ceil_mode=1 count_include_pad=0,1");
  average.cases.emplace_back("T[1,2,5,5] kernel_shape=[2,2] strides=[] pads=[] dilations=[] count_include_pad=1");
  ops.add(std::move(average));
  Op lp = pool("LpPool", "The p-norm of each window.", 2, Rounding::Sum);
  lp.attributes["p"] = int64_t{2};
  lp.infer = [](const OpCall& call) {
    norm_order(call);
    return std::vector<Type>{TensorType{call.input(0).dtype, pooled_shape(call)}};
  };
  lp.reference = lp_pool_reference;
  for (auto& text : lp.cases) text.insert(text.find(']') + 1, "~small");
  lp.cases.emplace_back("T[1,3,8,8]~small kernel_shape=[2,2] p=1,3");
  ops.add(std::move(lp));
}

// Over all spatial axes: `fold` turns a plane into a number.
Op global_pool(std::string name, std::string summary, Rounding rounding,
               std::function<double(const OpCall&, std::span<const double>)> fold) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {{"layout", std::string("NCHW")}};
  op.infer = [](const OpCall& call) {
    Shape shape = canonical(call, call.input(0).shape);
    if (shape.has_rank() && shape.rank() < 2) fail(ErrorKind::InvalidModel, title(call), ": input ", shape, " has no channels");
    for (size_t axis = 2; axis < shape.rank(); ++axis) shape.set(axis, 1);
    return std::vector<Type>{TensorType{call.input(0).dtype, in_layout(call, shape)}};
  };
  op.reference = [fold = std::move(fold)](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const Shape first = canonical(call, in[0].tensor().shape());
    const std::vector<double> x = read_canonical<double>(call, in[0].tensor());
    const auto plane = static_cast<size_t>(first.elements(2, first.rank()));
    std::vector<double> y(planes_of(first));
    for (size_t i = 0; i < y.size(); ++i) y[i] = fold(call, std::span<const double>(x).subspan(i * plane, plane));
    put(call, out, 0, std::span<const double>(y));  // One element a channel: the same in both layouts.
  };
  op.cost = cost_per_input(1);
  op.rounding = rounding;
  op.category = Category::Pooling;
  op.cases = {"T[2,3,7,5]~small", "T[1,64,7,7]~small",           "T[2,3,17]~small", "T[1,2,3,4,5]~small", "T[1,5,1,1]~small",
              "T[0,3,4,4]",       "T[2,7,5,3]~small layout=NHWC"};
  return op;
}

std::vector<int64_t> spatial_axes(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  if (!shape.has_rank()) fail(ErrorKind::Unsupported, title(call), ": the rank of the input is not known");
  std::vector<int64_t> axes;
  const int64_t shift = channels_last(call) ? 1 : 2;
  for (size_t axis = 2; axis < shape.rank(); ++axis) axes.push_back(static_cast<int64_t>(axis) - 2 + shift);
  return axes;
}

// Reducing over no axis must not mean over all.
ValueId over_plane(GraphBuilder& builder, std::string op, ValueId x) {
  return builder.add(std::move(op), {x, builder.ints(spatial_axes(builder.call()))},
                     {{"keepdims", int64_t{1}}, {"noop_with_empty_axes", int64_t{1}}});
}

void expand_global_lp(GraphBuilder& builder) {
  Formula f(builder);
  const auto p = norm_order(f.call());
  if (p <= 2) {
    builder.output(0, over_plane(builder, p == 1 ? "ReduceL1" : "ReduceL2", builder.input(0)));
    return;
  }
  const auto order = static_cast<double>(p);
  const ValueId sum = over_plane(builder, "ReduceSum", f.add("Pow", {f.add("Abs", {f.input(0)}), f.number(order)}));
  f.output(0, f.add("Pow", {sum, f.number(1 / order)}));
}

void add_global_pools(OpSet& ops) {
  Op average = global_pool("GlobalAveragePool", "The mean of each channel.", Rounding::Sum,
                           [](const OpCall&, std::span<const double> plane) {
                             double sum = 0;
                             for (const double x : plane) sum += x;
                             return sum / static_cast<double>(plane.size());
                           });
  average.expand = [](GraphBuilder& builder) { builder.output(0, over_plane(builder, "ReduceMean", builder.input(0))); };
  ops.add(std::move(average));
  Op max = global_pool("GlobalMaxPool", "The greatest of each channel; NaN wins.", Rounding::MoveBits,
                       [](const OpCall&, std::span<const double> plane) {
                         double best = -std::numeric_limits<double>::infinity();
                         for (const double x : plane) best = std::isnan(best) || best > x ? best : x;
                         return best;
                       });
  max.expand = [](GraphBuilder& builder) { builder.output(0, over_plane(builder, "ReduceMax", builder.input(0))); };
  ops.add(std::move(max));
  Op lp = global_pool("GlobalLpPool", "The p-norm of each channel.", Rounding::Sum,
                      [](const OpCall& call, std::span<const double> plane) {
                        const auto p = static_cast<double>(norm_order(call));
                        double sum = 0;
                        for (const double x : plane) sum += std::pow(std::fabs(x), p);
                        return std::pow(sum, 1 / p);
                      });
  lp.attributes["p"] = int64_t{2};
  lp.expand = expand_global_lp;
  lp.cases.emplace_back("T[2,3,7,5]~small p=1,3");
  ops.add(std::move(lp));
}

}  // namespace

void add_pool_ops(OpSet& ops) {
  add_window_pools(ops);
  add_global_pools(ops);
}

}  // namespace unmoor
