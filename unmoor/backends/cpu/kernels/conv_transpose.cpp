#include <algorithm>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/product.h"
#include "unmoor/backends/cpu/kernels/window.h"

namespace unmoor::cpu {

namespace {

// A transposed convolution: weights' transpose times input pixels gives each pixel's contribution to every tap; these are then
// added where they belong.
class ConvTranspose {
 public:
  // `window` is that of the convolution which this turns around: its input is our output.
  ConvTranspose(const Machine& machine, const Window& window, size_t in_channels, size_t groups, const Tensor& weights);
  size_t workspace_bytes() const { return (packed_b() + rows() * band()) * sizeof(float); }
  void run(const float* x, const float* bias, float* y, float* workspace) const;

 private:
  size_t pixels() const { return w_.out_h * w_.out_w; }          // Of x.
  size_t in_group() const { return in_channels_ / groups_; }
  size_t out_group() const { return w_.channels / groups_; }
  size_t rows() const { return out_group() * w_.taps(); }
  // Pixels at a time: contributions to all taps are many times the input, and stay below 16 MB so.
  size_t band() const { return std::clamp<size_t>((size_t{1} << 22) / std::max<size_t>(rows(), 1), std::min<size_t>(pixels(), 64), pixels()); }
  size_t packed_b() const { return (loops_.packed_b(band(), in_group()) + 15) / 16 * 16; }
  void multiply(size_t group, const float* x, size_t count, float* packed, float* columns) const;
  void scatter(const float* columns, size_t begin, size_t end, float* plane) const;

  const Machine& machine_;
  const GemmLoops& loops_;
  Window w_;
  size_t in_channels_;
  size_t groups_;
  Packed weights_;
};

ConvTranspose::ConvTranspose(const Machine& machine, const Window& window, size_t in_channels, size_t groups, const Tensor& weights)
    : machine_(machine), loops_(gemm_loops()), w_(window), in_channels_(in_channels), groups_(groups) {
  const std::string kind = cat("rows of ", loops_.tile_rows, " transposed [", groups, ",", in_group(), ",", rows(), "]");
  weights_ = machine.weights().get(weights, kind, in_channels * rows(), [&](float* to) {
    machine.pool().each(groups, [&](size_t g) {
      const size_t at = g * in_group() * rows();
      loops_.pack_a({unaligned_floats(weights) + at, 1, rows()}, rows(), in_group(), to + at);
    });
  });
}

// The contributions of `count` pixels from `x` on.
void ConvTranspose::multiply(size_t group, const float* x, size_t count, float* packed, float* columns) const {
  const size_t panels = loops_.panels(count);
  machine_.pool().each(panels, [&](size_t i) { loops_.pack_b({x, pixels(), 1}, count, in_group(), i, i + 1, packed); });
  const Product product{rows(), count, in_group(), floats_of(weights_) + group * in_group() * rows(), packed, columns, count};
  const size_t tile = loops_.tile_rows;
  const size_t tiles = (rows() + tile - 1) / tile;
  const size_t parts = std::clamp<size_t>(8 * machine_.threads() / panels, 1, tiles);
  machine_.pool().each(panels * parts, [&](size_t i) {
    const size_t part = i % parts;
    loops_.multiply(product, {tiles * part / parts * tile, std::min(tiles * (part + 1) / parts * tile, rows()), i / parts, i / parts + 1});
  });
}

// Adds the contributions of pixels [begin, end) to one output channel.
void ConvTranspose::scatter(const float* columns, size_t begin, size_t end, float* plane) const {
  for (size_t tap = 0; tap < w_.taps(); ++tap) {
    const float* const from = columns + tap * (end - begin);
    const int64_t first = static_cast<int64_t>(tap % w_.kernel_w * w_.dilation_w) - w_.pad_left;
    for (size_t at = begin; at < end;) {
      const size_t iy = at / w_.out_w;
      const size_t ix = at % w_.out_w;
      const size_t count = std::min(w_.out_w - ix, end - at);
      const float* const line = from + (at - begin);
      at += count;
      const int64_t oy = static_cast<int64_t>(iy * w_.stride_h + tap / w_.kernel_w * w_.dilation_h) - w_.pad_top;
      if (oy < 0 || oy >= static_cast<int64_t>(w_.h)) continue;
      float* const row = plane + static_cast<size_t>(oy) * w_.w;
      for (size_t j = 0; j < count; ++j) {
        const int64_t ox = first + static_cast<int64_t>((ix + j) * w_.stride_w);
        if (ox >= 0 && ox < static_cast<int64_t>(w_.w)) row[ox] += line[j];
      }
    }
  }
}

void ConvTranspose::run(const float* x, const float* bias, float* y, float* workspace) const {
  const size_t plane = w_.h * w_.w;
  float* const columns = workspace + packed_b();
  for (size_t i = 0; i < w_.batch * groups_; ++i) {
    float* const planes = y + i * out_group() * plane;
    for (size_t begin = 0; begin < pixels(); begin += band()) {
      const size_t end = std::min(begin + band(), pixels());
      multiply(i % groups_, x + i * in_group() * pixels() + begin, end - begin, workspace, columns);
      machine_.pool().each(out_group(), [&](size_t o) {
        float* const out = planes + o * plane;
        if (begin == 0) std::fill(out, out + plane, bias == nullptr ? 0.0F : bias[i % groups_ * out_group() + o]);
        scatter(columns + o * w_.taps() * (end - begin), begin, end, out);
      });
    }
  }
}

Support supports_transposed(const OpCall& call) {
  if (Support types = all_of(inputs_are(call, {DType::F32}), takes_window(call), is_constant(call, 1)); !types) {
    return types;
  }
  const std::string pads = call.text("auto_pad", "NOTSET");
  if (pads.starts_with("SAME") || !call.integers("output_shape").empty()) {
    return no(Reason::Attribute, "padding that follows from the output's shape");
  }
  const int64_t groups = call.integer("group", 1);
  const Shape& weights = call.input(1).shape;
  if (groups < 1 || weights[0] % groups != 0 || call.output(0).shape[1] != groups * weights[1]) {
    return no(Reason::Attribute, "group ", groups, " for weights of ", weights);
  }
  return call.input(0).shape.elements() == 0 ? no(Reason::Size, "an empty input") : yes();
}

// The convolution that takes our output to our input.
Window turned_around(const OpCall& call) {
  const std::vector<int64_t>& dims = call.input(1).shape.dims();
  Window w = window_of(call, {dims.begin() + 2, dims.end()});
  std::swap(w.h, w.out_h);
  std::swap(w.w, w.out_w);
  w.channels = static_cast<size_t>(call.output(0).shape[1]);
  return w;
}

Prepared prepare_transposed(const OpCall& call, Device& device) {
  // Shared by the copies of the function below.
  const auto prepared = std::make_shared<const ConvTranspose>(machine_of(device), turned_around(call), static_cast<size_t>(call.input(0).shape[1]),
                                                              static_cast<size_t>(call.integer("group", 1)), *call.constant(1));
  std::vector<bool> unused(call.input_count(), false);
  unused[1] = true;
  return {.run =
              [prepared](Stream&, const KernelArgs& args) {
                const float* const bias = args.inputs.size() > 2 ? reinterpret_cast<const float*>(args.inputs[2].host()) : nullptr;
                prepared->run(reinterpret_cast<const float*>(args.inputs[0].host()), bias, reinterpret_cast<float*>(args.outputs[0].host()),
                              reinterpret_cast<float*>(args.workspace.host()));
              },
          .workspace_bytes = prepared->workspace_bytes(),
          .unused_inputs = unused};
}

}  // namespace

void add_conv_transpose_kernels(KernelTable& table) {
  table.add("ConvTranspose", {.name = "cpu.convtranspose.product", .supports = supports_transposed, .prepare = prepare_transposed});
}

}  // namespace unmoor::cpu
