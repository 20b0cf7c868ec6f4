#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/fourier.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/product.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

int64_t number_at(const OpCall& call, size_t i) { return constant_integers(call, i)->at(0); }

// A call of DFT, read.
struct Transform {
  bool inverse, onesided;
  size_t parts, parts_out;  // 1: real numbers; 2: real and imaginary parts.
  Split from, to;           // At the axis; their inner sizes hold the parts.
  size_t length;
};

Transform transform_of(const OpCall& call) {
  const Shape& in = call.input(0).shape;
  const Shape& out = call.output(0).shape;
  const size_t axis = in.axis(call.has(2) ? number_at(call, 2) : -2);
  Transform t{call.integer("inverse", 0) != 0,
              call.integer("onesided", 0) != 0,
              static_cast<size_t>(in[in.rank() - 1]),
              static_cast<size_t>(out[out.rank() - 1]),
              split_at(in, axis),
              split_at(out, axis),
              static_cast<size_t>(in[axis])};
  if (t.inverse && t.onesided) t.length = static_cast<size_t>(out[axis]);
  if (call.has(1)) t.length = static_cast<size_t>(number_at(call, 1));
  return t;
}

Support supports_dft(const OpCall& call) {
  if (Support types = input_is(call, 0, {DType::F32}); !types) return types;
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (call.has(i) && call.constant(i) == nullptr) return no(Reason::Dynamic, "input ", i, " is not constant");
  }
  if (call.input(0).shape.elements() == 0 || call.output(0).shape.elements() == 0) return no(Reason::Size, "an empty input");
  const size_t length = transform_of(call).length;
  return length >= 1 && length <= Fourier::longest ? yes() : no(Reason::Size, "a transform over ", length, " elements");
}

// One line along the axis. Of a one-sided spectrum the other half is its mirror.
void transform_line(const Transform& t, const Fourier& fourier, const float* x, float* y, std::vector<Complex>& line,
                    Fourier::Scratch& scratch) {
  line.assign(t.length, {});
  const bool mirrors = t.inverse && t.onesided;
  const size_t used = std::min(t.from.length, mirrors ? t.length / 2 + 1 : t.length);
  for (size_t n = 0; n < used; ++n) {
    const float* const at = x + n * t.from.inner;
    line[n] = {static_cast<double>(at[0]), t.parts == 2 ? static_cast<double>(at[1]) : 0};
  }
  if (mirrors) {
    line[0].im = 0;
    if (t.length % 2 == 0) line[t.length / 2].im = 0;
    for (size_t k = t.length / 2 + 1; k < t.length; ++k) line[k] = line[t.length - k].conjugate();
  }
  fourier.run(line, scratch);
  for (size_t k = 0; k < t.to.length; ++k) {
    float* const at = y + k * t.to.inner;
    at[0] = static_cast<float>(line[k].re);
    if (t.parts_out == 2) at[1] = static_cast<float>(line[k].im);
  }
}

Prepared prepare_dft(const OpCall& call, Device& device) {
  const Transform transform = transform_of(call);
  // Shared by the copies of the function below.
  const auto fourier = std::make_shared<const Fourier>(transform.length, transform.inverse);
  return {.run = [&machine = machine_of(device), t = transform, fourier](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    const size_t columns = t.from.inner / t.parts;
    machine.pool().ranges(t.from.outer * columns, 2048 / (t.length + 1) + 1, [&](size_t begin, size_t end) {
      std::vector<Complex> line;
      Fourier::Scratch scratch;
      for (size_t i = begin; i < end; ++i) {
        const size_t outer = i / columns;
        const size_t column = i % columns;
        transform_line(t, *fourier, x + outer * t.from.length * t.from.inner + column * t.parts,
                       y + outer * t.to.length * t.to.inner + column * t.parts_out, line, scratch);
      }
    });
  }};
}

// A call of STFT, read.
struct Frames {
  size_t batch, samples, parts, step, length, frames, bins;
  size_t count() const { return batch * frames; }
};

Frames frames_of(const OpCall& call) {
  const Shape& signal = call.input(0).shape;
  const Shape& out = call.output(0).shape;
  Frames f{static_cast<size_t>(signal[0]),
           static_cast<size_t>(signal[1]),
           signal.rank() == 3 ? static_cast<size_t>(signal[2]) : 1,
           static_cast<size_t>(number_at(call, 1)),
           static_cast<size_t>(signal[1]),
           static_cast<size_t>(out[1]),
           static_cast<size_t>(out[2])};
  if (call.has(3)) f.length = static_cast<size_t>(number_at(call, 3));
  if (call.has(2)) f.length = static_cast<size_t>(call.input(2).shape[0]);
  return f;
}

constexpr size_t longest_product = 1024;  // Of a frame that is multiplied by the matrix of its transform.

Support supports_frames(const OpCall& call, bool by_product) {
  if (Support types =
          all_of(input_is(call, 0, {DType::F32}), call.has(2) ? input_is(call, 2, {DType::F32}) : yes(), is_constant(call, 1));
      !types)
    return types;
  if (call.has(3) && call.constant(3) == nullptr) return no(Reason::Dynamic, "frame_length is not constant");
  if (call.input(0).shape.elements() == 0 || call.output(0).shape.elements() == 0) return no(Reason::Size, "an empty input");
  const Frames f = frames_of(call);
  if (by_product && f.parts != 1) return no(Reason::Size, "a complex signal");
  return f.length <= (by_product ? longest_product : Fourier::longest) ? yes()
                                                                       : no(Reason::Size, "frames of ", f.length, " samples");
}

// [length, bins, 2] of cosines and negative sines: what a frame is multiplied by.
Tensor transform_matrix(const Frames& f) {
  Tensor matrix(TensorType{DType::F32, Shape{static_cast<int64_t>(f.length), static_cast<int64_t>(2 * f.bins)}});
  const std::span<float> values = matrix.writable_span<float>();
  for (size_t n = 0; n < f.length; ++n) {
    for (size_t k = 0; k < f.bins; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(n * k % f.length) / static_cast<double>(f.length);
      values[(n * f.bins + k) * 2] = static_cast<float>(std::cos(angle));
      values[(n * f.bins + k) * 2 + 1] = static_cast<float>(-std::sin(angle));
    }
  }
  return matrix;
}

// All frames times the matrix.
Prepared prepare_product(const OpCall& call, Device& device) {
  const Frames frames = frames_of(call);
  const Tensor matrix = transform_matrix(frames);
  Products products;
  products.m = frames.count();
  products.n = 2 * frames.bins;
  products.k = frames.length;
  // Shared by the copies of the function below.
  const auto product = std::make_shared<const PreparedProducts>(machine_of(device), products, &matrix, Bias::None);
  const size_t own = (frames.count() * frames.length + 15) / 16 * 16;
  return {.run =
              [&machine = machine_of(device), f = frames, product, own](Stream&, const KernelArgs& args) {
                const float* const x = input_as(args, 0);
                const float* const window = input_as(args, 2);
                auto* const rows = reinterpret_cast<float*>(args.workspace.host());
                machine.pool().ranges(f.count(), 16384 / f.length + 1, [&](size_t begin, size_t end) {
                  for (size_t i = begin; i < end; ++i) {
                    const float* const from = x + i / f.frames * f.samples + i % f.frames * f.step;
                    float* const to = rows + i * f.length;
                    for (size_t n = 0; n < f.length; ++n) to[n] = window == nullptr ? from[n] : from[n] * window[n];
                  }
                });
                product->run({rows, nullptr, nullptr, nullptr, output_as(args, 0), rows + own});
              },
          .workspace_bytes = own * sizeof(float) + product->workspace_bytes()};
}

Prepared prepare_frames(const OpCall& call, Device& device) {
  const Frames frames = frames_of(call);
  // Shared by the copies of the function below.
  const auto fourier = std::make_shared<const Fourier>(frames.length, false);
  return {.run = [&machine = machine_of(device), f = frames, fourier](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    const float* const window = input_as(args, 2);
    float* const y = output_as(args, 0);
    machine.pool().ranges(f.count(), 2048 / f.length + 1, [&](size_t begin, size_t end) {
      std::vector<Complex> line(f.length);
      Fourier::Scratch scratch;
      for (size_t i = begin; i < end; ++i) {
        const float* const from = x + (i / f.frames * f.samples + i % f.frames * f.step) * f.parts;
        for (size_t n = 0; n < f.length; ++n) {
          const double factor = window == nullptr ? 1 : static_cast<double>(window[n]);
          line[n] = {factor * static_cast<double>(from[n * f.parts]),
                     f.parts == 2 ? factor * static_cast<double>(from[n * f.parts + 1]) : 0};
        }
        fourier->run(line, scratch);
        for (size_t k = 0; k < f.bins; ++k) {
          y[(i * f.bins + k) * 2] = static_cast<float>(line[k].re);
          y[(i * f.bins + k) * 2 + 1] = static_cast<float>(line[k].im);
        }
      }
    });
  }};
}

}  // namespace

void add_signal_kernels(KernelTable& table) {
  table.add("DFT", {.name = "cpu.dft.fast", .supports = supports_dft, .prepare = prepare_dft});
  table.add("STFT", {.name = "cpu.stft.product",
                     .supports = [](const OpCall& call) { return supports_frames(call, true); },
                     .prepare = prepare_product});
  table.add("STFT", {.name = "cpu.stft.fast",
                     .supports = [](const OpCall& call) { return supports_frames(call, false); },
                     .prepare = prepare_frames});
}

}  // namespace unmoor::cpu
