#include "unmoor/ops/window.h"

<<<<<<< HEAD
#include <cmath>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {
namespace {

DType output_dtype(const OpCall& call) {
  const auto dtype = dtype_numbered(call.integer("output_datatype", 1));
  if (!dtype)
    fail(ErrorKind::InvalidModel, title(call), ": output_datatype is ", call.integer("output_datatype", 1),
         ", which is no element type");
  return *dtype;
}

// Input `i` as one number, if it is known.
std::optional<double> number_at(const OpCall& call, size_t i) {
  if (call.constant(i) == nullptr) return std::nullopt;
  const auto values = doubles(*call.constant(i));
  if (values.size() != 1) fail(ErrorKind::InvalidModel, title(call), ": input ", i, " has ", values.size(), " elements, not one");
  return values[0];
}

std::optional<int64_t> size_at(const OpCall& call, size_t i, int64_t least) {
  const auto value = number_at(call, i);
  if (!value) return std::nullopt;
  if (!(*value >= static_cast<double>(least)) || !(*value < 0x1p40))
    fail(ErrorKind::InvalidModel, title(call), ": input ", i, " is ", *value);
  return static_cast<int64_t>(*value);
}

std::vector<Type> infer_window(const OpCall& call) {
  return {TensorType{output_dtype(call), Shape{size_at(call, 0, 0).value_or(Shape::unknown)}}};
}

// a - b cos(2 pi n / N) + c cos(4 pi n / N).
struct Cosines {
  double a, b, c;
};

void run_window(const OpCall& call, std::span<const Data> in, Outputs& out, const Cosines& cosines) {
  Tensor& result = allocate_inferred(call, in, out, infer_window);
  const auto size = static_cast<double>(result.elements());
  const double period = call.integer("periodic", 1) != 0 ? size : size - 1;
  std::vector<double> values(result.elements(), 1);  // A window of one sample lets it pass.
  for (size_t n = 0; n < values.size() && period > 0; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / period;
    values[n] = cosines.a - cosines.b * std::cos(angle) + cosines.c * std::cos(2 * angle);
  }
  store(result, std::span<const double>(values));
}

std::vector<Type> infer_mel(const OpCall& call) {
  const auto bins = size_at(call, 0, 0);
  const auto length = size_at(call, 1, 1);
  return {TensorType{output_dtype(call), Shape{length ? *length / 2 + 1 : Shape::unknown, bins.value_or(Shape::unknown)}}};
}

// The spectrogram bins of the corners of num_mel_bins overlapping triangles, equally far apart in mel.
std::vector<int64_t> mel_corners(const OpCall& call, int64_t bins) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double length = number_at(call, 1).value();
  const double rate = number_at(call, 2).value();
  const double low = mel(number_at(call, 3).value());
  const double high = mel(number_at(call, 4).value());
  const double step = (high - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> corners;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double bin = std::floor((length + 1) * hertz / rate);
    if (!(bin >= 0 && bin <= length / 2)) {
      fail(ErrorKind::InvalidArgument, title(call), ": ", hertz, " hertz are outside of a spectrum of ", length, " samples at ",
           rate, " hertz");
    }
    corners.push_back(static_cast<int64_t>(bin));
  }
  return corners;
}

void run_mel(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = allocate_inferred(call, in, out, infer_mel);
  const int64_t bins = result.shape()[1];
  const auto corners = mel_corners(with_data(call, in), bins);
  std::vector<double> values(result.elements());
  const auto at = [&](int64_t row, int64_t column) -> double& { return values[static_cast<size_t>(row * bins + column)]; };
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t lower = corners[static_cast<size_t>(i)];
    const int64_t center = corners[static_cast<size_t>(i) + 1];
    const int64_t upper = corners[static_cast<size_t>(i) + 2];
    if (lower == center) at(center, i) = 1;
    for (int64_t j = lower; j <= center && lower < center; ++j)
      at(j, i) = static_cast<double>(j - lower) / static_cast<double>(center - lower);
    for (int64_t j = center; j < upper; ++j) at(j, i) = static_cast<double>(upper - j) / static_cast<double>(upper - center);
  }
  store(result, std::span<const double>(values));
}

Op window(std::string name, const Cosines& cosines) {
  Op op;
  op.name = std::move(name);
  op.summary = "A window function: a sum of cosines over `size` samples.";
  op.inputs = {required("size", index_types())};
  op.outputs = {required("output", number_types())};
  op.attributes = {{"output_datatype", int64_t{1}}, {"periodic", int64_t{1}}};
  op.infer = infer_window;
  op.reference = [cosines](const OpCall& call, std::span<const Data> in, Outputs& out) { run_window(call, in, out, cosines); };
  op.rounding = Rounding::Function;
  op.category = Category::Signal;
  op.cases = {"i64[]{10} periodic=0,1 output_datatype=f32,f64,f16", "i32[]{1} periodic=0,1", "i64[]{0}"};
  return op;
}

Op mel_weight_matrix() {
  Op op;
  op.name = "MelWeightMatrix";
  op.summary = "The matrix that turns a spectrum into mel bins.";
  op.inputs = {required("num_mel_bins", index_types()), required("dft_length", index_types()),
               required("sample_rate", index_types()), required("lower_edge_hertz", float_types()),
               required("upper_edge_hertz", float_types())};
  op.outputs = {required("output", number_types())};
  op.attributes = {{"output_datatype", int64_t{1}}};
  op.infer = infer_mel;
  op.reference = run_mel;
  op.rounding = Rounding::Function;
  op.category = Category::Signal;
  op.cases = {"i64[]{8} i64[]{16} i64[]{8192} f32[]{0} f32[]{4096} output_datatype=f32,f64",
              "i32[]{20} i32[]{400} i32[]{16000} f32[]{20} f32[]{7600}"};
  return op;
=======
#include "unmoor/base/error.h"

namespace unmoor {

namespace {

constexpr int64_t most = (int64_t{1} << 31) - 1;  // Keeps every product of two below 2^62.

void check_range(const OpCall& call, std::string_view key, const std::vector<int64_t>& values, int64_t least) {
  for (const int64_t value : values) {
    if (value < least || value > most) {
      fail(ErrorKind::InvalidModel, title(call), ": ", key, " has the value ", value, ", not one from ", least, " to ", most);
    }
  }
}

std::string padding_kind(const OpCall& call) {
  std::string kind = call.text("auto_pad", "NOTSET");
  for (const char* allowed : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}) {
    if (kind == allowed) return kind;
  }
  fail(ErrorKind::InvalidModel, title(call), ": auto_pad is '", kind, "', not NOTSET, VALID, SAME_UPPER or SAME_LOWER");
}

void read_pads(const OpCall& call, Window& window) {
  const std::vector<int64_t> pads = per_axis(call, "pads", 2 * window.rank(), 0, 0);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(window.rank());
  window.begin.assign(pads.begin(), middle);
  window.end.assign(middle, pads.end());
}

// As many outputs as strides fit in; what is padded on the side named gets the odd element.
int64_t same_output(Window& window, size_t axis, bool upper) {
  const int64_t output = (window.input[axis] + window.strides[axis] - 1) / window.strides[axis];
  const int64_t total = std::max<int64_t>(0, (output - 1) * window.strides[axis] + window.reach(axis) - window.input[axis]);
  window.begin[axis] = upper ? total / 2 : total - total / 2;
  window.end[axis] = total - window.begin[axis];
  return output;
}

int64_t fitting_output(const OpCall& call, const Window& window, size_t axis) {
  const int64_t room = window.input[axis] + window.begin[axis] + window.end[axis] - window.reach(axis);
  const int64_t stride = window.strides[axis];
  const bool ceil = call.integer("ceil_mode", 0) != 0;
  if (room < 0 && !(ceil && room > -stride)) {
    fail(ErrorKind::InvalidModel, title(call), ": a window that reaches over ", window.reach(axis), " elements does not fit in spatial axis ", axis,
         " of ", window.input[axis], " elements with padding ", window.begin[axis], " and ", window.end[axis]);
  }
  if (!ceil) return room / stride + 1;
  const int64_t output = (room + stride - 1) / stride + 1;
  // A window may not start in the padding at the end.
  return (output - 1) * stride >= window.input[axis] + window.begin[axis] ? output - 1 : output;
>>>>>>> main
}

}  // namespace

<<<<<<< HEAD
void add_window_ops(OpSet& ops) {
  ops.add(window("HannWindow", {0.5, 0.5, 0}));
  ops.add(window("HammingWindow", {25.0 / 46, 21.0 / 46, 0}));
  ops.add(window("BlackmanWindow", {0.42, 0.5, 0.08}));
  ops.add(mel_weight_matrix());
=======
std::vector<int64_t> per_axis(const OpCall& call, std::string_view key, size_t count, int64_t otherwise, int64_t least) {
  std::vector<int64_t> values = call.integers(key);
  if (values.empty()) values.assign(count, otherwise);
  if (values.size() != count) {
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " has ", values.size(), " values, not ", count);
  }
  check_range(call, key, values, least);
  return values;
}

Window window_of(const OpCall& call, std::vector<int64_t> input, std::vector<int64_t> kernel) {
  Window window;
  window.input = std::move(input);
  window.kernel = std::move(kernel);
  const size_t rank = window.rank();
  if (window.input.size() != rank) {
    fail(ErrorKind::InvalidModel, title(call), ": the input has ", window.input.size(), " spatial axes and the kernel ", rank);
  }
  window.strides = per_axis(call, "strides", rank, 1, 1);
  window.dilations = per_axis(call, "dilations", rank, 1, 1);
  window.begin.assign(rank, 0);
  window.end.assign(rank, 0);
  window.output.assign(rank, Shape::unknown);
  const std::string kind = padding_kind(call);
  if (kind == "NOTSET") read_pads(call, window);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (window.kernel[axis] < 0 || window.input[axis] < 0) continue;
    check_range(call, "the kernel", {window.kernel[axis]}, 1);
    check_range(call, "the input", {window.input[axis]}, 0);
    window.output[axis] = kind == "SAME_UPPER" || kind == "SAME_LOWER" ? same_output(window, axis, kind == "SAME_UPPER")
                                                                       : fitting_output(call, window, axis);
  }
  return window;
}

bool channels_last(const OpCall& call) {
  const std::string layout = call.text("layout", "NCHW");
  if (layout != "NCHW" && layout != "NHWC") fail(ErrorKind::InvalidModel, title(call), ": layout is '", layout, "', not NCHW or NHWC");
  return layout == "NHWC";
}

Shape channels_first_shape(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() < 2) return shape;
  Shape result;
  result.push_back(shape, 0);
  result.push_back(shape, shape.rank() - 1);
  for (size_t axis = 1; axis + 1 < shape.rank(); ++axis) result.push_back(shape, axis);
  return result;
}

Shape channels_last_shape(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() < 2) return shape;
  Shape result;
  result.push_back(shape, 0);
  for (size_t axis = 2; axis < shape.rank(); ++axis) result.push_back(shape, axis);
  result.push_back(shape, 1);
  return result;
>>>>>>> main
}

}  // namespace unmoor
