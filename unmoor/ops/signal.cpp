#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/window_functions.h"

namespace unmoor {
namespace {

using Complex = std::complex<double>;

// e^(2πi·turns/length), or its conjugate.
Complex turned(size_t turns, size_t length, bool conjugate) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(length);
  return {std::cos(angle), conjugate ? -std::sin(angle) : std::sin(angle)};
}

// By the definition: Σ x[n]·e^(∓2πi·nk/length) at frequencies 0 to `count` - 1.
std::vector<Complex> slow_transform(std::span<const Complex> x, size_t length, size_t count, bool inverse) {
  std::vector<Complex> turns(length);
  for (size_t i = 0; i < length; ++i) turns[i] = turned(i, length, !inverse);
  std::vector<Complex> result(count);
  for (size_t k = 0; k < count; ++k) {
    size_t turn = 0;
    for (const Complex& value : x) {
      result[k] += value * turns[turn];
      turn += k;
      if (turn >= length) turn -= length;
    }
  }
  return result;
}

// In place, for a power of two (Cooley and Tukey 1965).
void radix_two(std::vector<Complex>& x, bool inverse) {
  const size_t size = x.size();
  for (size_t i = 1, j = 0; i < size; ++i) {
    size_t bit = size >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j |= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t half = 1; half < size; half *= 2) {
    for (size_t k = 0; k < half; ++k) {
      const Complex turn = turned(k, 2 * half, !inverse);
      for (size_t i = k; i < size; i += 2 * half) {
        const Complex odd = turn * x[i + half];
        x[i + half] = x[i] - odd;
        x[i] += odd;
      }
    }
  }
}

// The same as slow_transform for any length, as a convolution with a chirp (Bluestein 1970): nk = (n² + k² - (k-n)²) / 2.
std::vector<Complex> fast_transform(std::span<const Complex> x, size_t length, size_t count, bool inverse) {
  const auto chirp = [&](size_t n) { return turned(n * n % (2 * length), 2 * length, !inverse); };
  const size_t size = std::bit_ceil(x.size() + count);
  std::vector<Complex> a(size);
  std::vector<Complex> b(size);
  for (size_t n = 0; n < x.size(); ++n) {
    a[n] = x[n] * chirp(n);
    b[(size - n) % size] = std::conj(chirp(n));
  }
  for (size_t k = 0; k < count; ++k) b[k] = std::conj(chirp(k));
  radix_two(a, false);
  radix_two(b, false);
  for (size_t i = 0; i < size; ++i) a[i] *= b[i];
  radix_two(a, true);
  std::vector<Complex> result(count);
  for (size_t k = 0; k < count; ++k) result[k] = a[k] / static_cast<double>(size) * chirp(k);
  return result;
}

// The transform of `signal` padded or cut to `length`, at frequencies 0 to `count` - 1.
std::vector<Complex> transformed(const std::vector<Complex>& signal, size_t length, size_t count, bool inverse) {
  constexpr size_t most_products = size_t{1} << 20;
  const auto used = std::span(signal).first(std::min(signal.size(), length));
  const bool is_short = used.empty() || count <= most_products / used.size();
  auto result = is_short ? slow_transform(used, length, count, inverse) : fast_transform(used, length, count, inverse);
  for (Complex& value : result) value = inverse ? value / static_cast<double>(length) : value;
  return result;
}

// The other half of a spectrum whose signal is real.
std::vector<Complex> mirrored(std::vector<Complex> half, size_t length) {
  half.resize(length / 2 + 1);
  std::vector<Complex> whole(length);
  for (size_t k = 0; k < length; ++k) whole[k] = k < half.size() ? half[k] : std::conj(half[length - k]);
  if (length > 0) whole[0] = whole[0].real();
  if (length % 2 == 0 && length > 0) whole[length / 2] = whole[length / 2].real();
  return whole;
}

constexpr int64_t longest_transform = int64_t{1} << 30;  // Keeps the squares of places within 64 bits.

// What a DFT call asks for; unknown where an input is.
struct Transform {
  bool inverse = false;
  bool onesided = false;
  std::optional<size_t> axis;
  int64_t length = Shape::unknown;
};

std::optional<int64_t> scalar_constant(const OpCall& call, size_t i, std::string_view what) {
  const auto values = constant_integers(call, i);
  if (!values) return std::nullopt;
  if (values->size() != 1) fail(ErrorKind::InvalidModel, title(call), ": ", what, " has ", values->size(), " elements, not one");
  return (*values)[0];
}

Transform transform_of(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  Transform transform{call.integer("inverse", 0) != 0, call.integer("onesided", 0) != 0, std::nullopt, Shape::unknown};
  if (!shape.has_rank()) return transform;
  const auto axis = call.has(2) ? scalar_constant(call, 2, "axis") : -2;
  if (!axis) return transform;
  transform.axis = axis_of(call, *axis, shape.rank());
  if (shape.rank() < 2 || *transform.axis + 1 == shape.rank()) {
    fail(ErrorKind::InvalidModel, title(call), ": axis ", *axis, " of shape ", shape, " is the one of real and imaginary parts");
  }
  const int64_t dim = shape[*transform.axis];
  if (call.has(1)) {
    transform.length = scalar_constant(call, 1, "dft_length").value_or(Shape::unknown);
    if (call.constant(1) != nullptr && (transform.length < 1 || transform.length > longest_transform)) {
      fail(ErrorKind::InvalidModel, title(call), ": dft_length is ", transform.length, ", not from 1 to ", longest_transform);
    }
  } else if (dim >= 0) {
    transform.length = transform.inverse && transform.onesided ? std::max<int64_t>(2 * (dim - 1), 0) : dim;
    if (transform.length > longest_transform)
      fail(ErrorKind::InvalidModel, title(call), ": a transform over ", dim, " elements is longer than ", longest_transform);
  }
  return transform;
}

std::vector<Type> infer_dft(const OpCall& call) {
  TensorType type = call.input(0);
  if (!type.shape.has_rank()) return {type};
  const Transform transform = transform_of(call);
  const size_t last = type.shape.rank() - 1;
  const int64_t parts = type.shape[last];
  if (parts > 2 || parts == 0)
    fail(ErrorKind::InvalidModel, title(call), ": the last dimension of ", type.shape, " is not 1 or 2");
  if (transform.onesided && !transform.inverse && parts == 2)
    fail(ErrorKind::InvalidModel, title(call), ": a one-sided transform needs a real input, not ", type.shape);
  if (!transform.axis) {
    type.shape = unknown_shape(last + 1);
  } else {
    const bool half = transform.onesided && !transform.inverse && transform.length >= 0;
    type.shape.set(*transform.axis, half ? transform.length / 2 + 1 : transform.length);
  }
  type.shape.set(last, transform.onesided && transform.inverse ? 1 : 2);
  return {std::move(type)};
}

void run_dft(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Shape& shape = in[0].tensor().shape();
  const auto values = doubles(in[0].tensor());
  const Transform transform = transform_of(with_data(call, in));
  Tensor& result = allocate_inferred(call, in, out, infer_dft);
  const auto parts = static_cast<size_t>(shape[shape.rank() - 1]);
  const auto parts_out = static_cast<size_t>(result.shape()[shape.rank() - 1]);
  const auto from = split_at(shape, *transform.axis);
  const auto to = split_at(result.shape(), *transform.axis);
  const auto length = static_cast<size_t>(transform.length);
  std::vector<double> results(result.elements());
  for (size_t row = 0; row < from.outer * (from.inner / parts); ++row) {
    const size_t outer = row / (from.inner / parts);
    const size_t inner = row % (from.inner / parts);
    std::vector<Complex> signal(from.length);
    for (size_t n = 0; n < from.length; ++n) {
      const double* const at = values.data() + (outer * from.length + n) * from.inner + inner * parts;
      signal[n] = {at[0], parts == 2 ? at[1] : 0};
    }
    if (transform.inverse && transform.onesided) signal = mirrored(std::move(signal), length);
    const auto spectrum = transformed(signal, length, to.length, transform.inverse);
    for (size_t k = 0; k < to.length; ++k) {
      double* const at = results.data() + (outer * to.length + k) * to.inner + inner * parts_out;
      at[0] = spectrum[k].real();
      if (parts_out == 2) at[1] = spectrum[k].imag();
    }
  }
  store(result, std::span<const double>(results));
}

// The length of a frame: given, the window's, or the signal's; unknown where that is.
int64_t frame_length(const OpCall& call) {
  int64_t length = Shape::unknown;
  const Shape& signal = call.input(0).shape;
  if (call.has(3)) length = scalar_constant(call, 3, "frame_length").value_or(Shape::unknown);
  if (call.has(2)) {
    require_rank(call, 2, 1);
    if (call.input(2).shape.has_rank()) length = same_dim(call, length, call.input(2).shape[0], "the length of a frame");
  }
  if (!call.has(2) && !call.has(3) && signal.has_rank()) length = signal[1];
  return length;
}

// Batch, samples and parts. Real signals come without the last one, too: exporters write them so, and ONNX Runtime takes them.
Shape signal_shape(const OpCall& call) {
  Shape signal = call.input(0).shape;
  if (signal.has_rank() && signal.rank() == 2) signal.push_back(1);
  if (signal.has_rank() && signal.rank() != 3)
    fail(ErrorKind::InvalidModel, title(call), ": input 0 has shape ", signal, "; rank 3, or 2 of a real signal, was expected");
  return signal;
}

std::vector<Type> infer_stft(const OpCall& call) {
  const Shape signal = signal_shape(call);
  const int64_t length = frame_length(call);
  const auto step = scalar_constant(call, 1, "frame_step");
  if (step && *step < 1) fail(ErrorKind::InvalidModel, title(call), ": frame_step is ", *step);
  if ((length < 1 && length != Shape::unknown) || length > longest_transform || (call.constant(3) != nullptr && length < 1))
    fail(ErrorKind::InvalidModel, title(call), ": a frame has ", length, " samples, not from 1 to ", longest_transform);
  Shape shape = unknown_shape(1);
  if (signal.has_rank()) {
    shape = Shape();
    shape.push_back(signal, 0);
  }
  int64_t frames = Shape::unknown;
  if (signal.has_rank() && signal[1] >= 0 && length >= 0 && step) {
    if (length > signal[1])
      fail(ErrorKind::InvalidModel, title(call), ": frames of ", length, " samples in a signal of ", signal[1]);
    frames = (signal[1] - length) / *step + 1;
  }
  const bool onesided = call.integer("onesided", 1) != 0;
  if (signal.has_rank() && (signal[2] > 2 || signal[2] == 0 || (signal[2] == 2 && onesided))) {
    fail(ErrorKind::InvalidModel, title(call), ": a signal ", signal, onesided ? " is not real" : " is neither real nor complex");
  }
  shape.push_back(frames);
  shape.push_back(length < 0 ? Shape::unknown : onesided ? length / 2 + 1 : length);
  shape.push_back(2);
  return {TensorType{call.input(0).dtype, std::move(shape)}};
}

void run_stft(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto values = doubles(in[0].tensor());
  const OpCall known = with_data(call, in);
  const Shape shape = signal_shape(known);
  Tensor& result = allocate_inferred(call, in, out, infer_stft);
  const auto length = static_cast<size_t>(frame_length(known));
  const auto step = static_cast<size_t>(*scalar_constant(known, 1, "frame_step"));
  const auto parts = static_cast<size_t>(shape[2]);
  const auto frames = static_cast<size_t>(result.shape()[1]);
  const auto bins = static_cast<size_t>(result.shape()[2]);
  auto window = doubles_at(in, 2);
  if (tensor_at(in, 2) == nullptr) window.assign(length, 1);
  std::vector<double> results;
  results.reserve(result.elements());
  for (size_t batch = 0; batch < static_cast<size_t>(shape[0]); ++batch) {
    for (size_t frame = 0; frame < frames; ++frame) {
      std::vector<Complex> signal(length);
      for (size_t n = 0; n < length; ++n) {
        const double* const at = values.data() + (batch * static_cast<size_t>(shape[1]) + frame * step + n) * parts;
        signal[n] = Complex(at[0], parts == 2 ? at[1] : 0) * window[n];
      }
      for (const Complex& value : transformed(signal, length, bins, false)) {
        results.push_back(value.real());
        results.push_back(value.imag());
      }
    }
  }
  store(result, std::span<const double>(results));
}

Op dft() {
  Op op;
  op.name = "DFT";
  op.summary = "The discrete Fourier transform along an axis, or its inverse; the last axis holds real and imaginary parts.";
  op.inputs = {required("input", float_types()), optional("dft_length", index_types()), optional("axis", {DType::I64})};
  op.outputs = {required("output", float_types())};
  op.attributes = {{"inverse", int64_t{0}}, {"onesided", int64_t{0}}};
  op.infer = infer_dft;
  op.reference = run_dft;
  op.rounding = Rounding::Sum;
  op.category = Category::Signal;
  op.cases = {"T[2,5,1]~small onesided=0,1",
              "T[2,5,2]~small inverse=0,1",
              "T[2,8,3,1]~small i64[]{6} i64[]{1} onesided=0,1",
              "T[4,3,2]~small - i64[]{0} inverse=0,1",
              "T[1,5,2]~small i64[]{9} inverse=0,1",
              "T[2,5,2]~small inverse=1 onesided=1",
              "T[2,5,2]~small i64[]{7} i64[]{-2} inverse=1 onesided=1",
              "T[0,5,1]",
              "T[1,1,1]",
              "f32[1,1500,1]~small onesided=0,1",
              "f64[1,1201,2]~small inverse=0,1"};
  return op;
}

Op stft() {
  Op op;
  op.name = "STFT";
  op.summary = "Fourier transforms of windowed frames that slide over a signal.";
  op.inputs = {required("signal", float_types()), required("frame_step", index_types()), optional("window", float_types()),
               optional("frame_length", index_types())};
  op.outputs = {required("output", float_types())};
  op.attributes = {{"onesided", int64_t{1}}};
  op.infer = infer_stft;
  op.reference = run_stft;
  op.rounding = Rounding::Sum;
  op.category = Category::Signal;
  op.cases = {"T[2,20,1]~small i64[]{4} T[8]~unit onesided=0,1", "T[1,20,1]~small i64[]{3} - i64[]{7}",
              "T[1,20,2]~small i64[]{5} T[6]~unit i64[]{6} onesided=0", "T[1,9,1]~small i64[]{2}",
              "T[2,20]~small i64[]{4} T[8]~unit onesided=0,1"};
  return op;
}

}  // namespace

void add_signal_ops(OpSet& ops) {
  ops.add(dft());
  ops.add(stft());
  add_window_ops(ops);
}

}  // namespace unmoor
