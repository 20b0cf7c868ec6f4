#include "unmoor/ops/window_functions.h"

#include <cmath>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {
namespace {

DType output_dtype(const OpCall& call) { return dtype_attribute(call, "output_datatype").value_or(DType::F32); }

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
}

}  // namespace

void add_window_ops(OpSet& ops) {
  ops.add(window("HannWindow", {0.5, 0.5, 0}));
  ops.add(window("HammingWindow", {25.0 / 46, 21.0 / 46, 0}));
  ops.add(window("BlackmanWindow", {0.42, 0.5, 0.08}));
  ops.add(mel_weight_matrix());
}

}  // namespace unmoor
