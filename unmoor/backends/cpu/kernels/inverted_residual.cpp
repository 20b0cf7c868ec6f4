#include "unmoor/ops/inverted_residual.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/channels.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/channels.h"
#include "unmoor/backends/cpu/simd/gemm.h"

// Inverted residuals whose wide image is never stored. For a band of output rows, and for one panel of wide channels after the
// other: the rows that are new are expanded into a ring, which stays in L1, and convolved from there; then the band is projected.
namespace unmoor::cpu {

namespace {

using namespace inverted_residual;

constexpr size_t ring_bytes = size_t{20} << 10;        // Of one panel: with weights and pixels, what L1 holds.
constexpr size_t most_band_bytes = size_t{384} << 10;  // All panels' rings and one convolved row: more would leave L2.
constexpr size_t least_image_bytes =
    size_t{768} << 10;  // Of the wide image: a smaller one stays in the caches between three kernels: measured.

struct Memory {
  const float* x;
  const float* expand_bias;
  const float* depthwise_bias;
  const float* project_bias;
  const float* residual;
  float* y;
};

size_t size(int64_t dim) { return static_cast<size_t>(dim); }

Window window_of(const InvertedResidualCall& read) {
  const unmoor::Window& from = read.window;
  Window w;
  w.batch = size(read.batch);
  w.channels = size(read.expanded);
  w.h = size(from.input[0]);
  w.w = size(from.input[1]);
  w.out_h = size(from.output[0]);
  w.out_w = size(from.output[1]);
  w.kernel_h = size(from.kernel[0]);
  w.kernel_w = size(from.kernel[1]);
  w.stride_h = size(from.strides[0]);
  w.stride_w = size(from.strides[1]);
  w.dilation_h = size(from.dilations[0]);
  w.dilation_w = size(from.dilations[1]);
  w.pad_top = from.begin[0];
  w.pad_left = from.begin[1];
  return without_idle_strides(w);
}

size_t reach(size_t kernel, size_t dilation) { return (kernel - 1) * dilation + 1; }
// Columns of a ring's row: the image's with the padding that output pixels meet.
size_t padded_width(const Window& w) {
  return std::max(size(w.pad_left) + w.w, (w.out_w - 1) * w.stride_w + reach(w.kernel_w, w.dilation_w));
}

class InvertedResidual {
 public:
  InvertedResidual(const OpCall& call, const Machine& machine);

  void run(const Memory& m) const;

 private:
  // Output rows that a thread works on, a band or less, of one panel.
  struct Band {
    size_t image;
    size_t panel;
    size_t begin;
    size_t end;
    bool first;  // Else the ring holds what the rows before have read.
    float* ring;
    float* convolved;
  };

  bool expands() const { return expand_weights_ != nullptr; }
  size_t panels() const { return expands() ? loops_.panels(w_.channels) : 1; }
  size_t panel_channels(size_t panel) const { return std::min(block_, w_.channels - panel * block_); }
  size_t panel_ring() const { return expands() ? slots_ * width_ * block_ : 0; }  // Floats.
  void choose_band();
  void pack_depthwise(const Tensor& weights);
  void clear_padding(size_t panel, float* ring) const;
  void expand(const Memory& m, const Band& band) const;
  void convolve(const Memory& m, const Band& band) const;
  void project(const Memory& m, const Band& band) const;
  void run_rows(const Memory& m, size_t image, size_t begin, size_t end) const;

  const Machine& machine_;
  const GemmLoops& loops_;
  Window w_;  // Of the depthwise convolution.
  size_t channels_;
  size_t outputs_;
  size_t width_;                       // Pixels of a ring's row.
  size_t block_;                       // Wide channels of a panel.
  size_t row_step_;                    // Floats from a convolved pixel to the next.
  size_t slots_ = 0;                   // Rows of a ring.
  size_t band_ = 1;                    // Output rows at a time.
  std::array<Epilogue, 3> epilogues_;  // Of expansion, depthwise convolution, projection.
  Packed expand_weights_ = nullptr;
  Packed depthwise_weights_ = nullptr;  // By panel, [tap][channel].
  Packed project_weights_ = nullptr;
};

Packed packed_pointwise(const Machine& machine, const Tensor& weights) {
  const GemmLoops& loops = gemm_loops();
  const size_t n = size(weights.shape()[0]);
  const size_t k = size(weights.shape()[1]);
  const std::string kind = cat("pixels, panels of ", loops.panel_columns, "/", loops.lanes, " [", n, ",", k, "]");
  return machine.weights().get(weights, kind, loops.packed_b(n, k), [&](float* to) {
    loops.pack_b({unaligned_floats(weights), 1, k}, n, k, 0, loops.panels(n), to);
  });
}

InvertedResidual::InvertedResidual(const OpCall& call, const Machine& machine)
    : machine_(machine), loops_(gemm_loops()), w_(window_of(read_inverted_residual(call))) {
  const InvertedResidualCall read = read_inverted_residual(call);
  channels_ = size(read.channels);
  outputs_ = size(read.outputs);
  width_ = padded_width(w_);
  if (call.has(ExpandWeights)) expand_weights_ = packed_pointwise(machine, *call.constant(ExpandWeights));
  project_weights_ = packed_pointwise(machine, *call.constant(ProjectWeights));
  block_ = expands() ? loops_.panel_columns : w_.channels;
  row_step_ =
      w_.channels % 256 == 0 ? w_.channels + 16 : w_.channels;  // Rows a power of two apart would share places in the caches.
  pack_depthwise(*call.constant(DepthwiseWeights));
  set_activation(call, epilogues_[0], expand_prefix);
  set_activation(call, epilogues_[1], depthwise_prefix);
  set_activation(call, epilogues_[2]);
  choose_band();
}

void InvertedResidual::choose_band() {
  const size_t rows_of_l2 = machine_.l2_bytes() / 4 / sizeof(float) / (w_.out_w * row_step_);
  const size_t high = reach(w_.kernel_h, w_.dilation_h);
  const size_t rows_of_ring = ring_bytes / sizeof(float) / (width_ * block_);
  const size_t ring = !expands() ? w_.out_h : rows_of_ring <= high ? 1 : (rows_of_ring - high) / w_.stride_h + 1;
  band_ = std::clamp<size_t>(std::min(ring, rows_of_l2), 1, w_.out_h);
  slots_ = (band_ - 1) * w_.stride_h + high;
}

void InvertedResidual::pack_depthwise(const Tensor& weights) {
  const size_t taps = w_.taps();
  const std::string kind = cat("taps of panels of ", block_, " of ", w_.channels, " channels");
  depthwise_weights_ = machine_.weights().get(weights, kind, w_.channels * taps, [&](float* to) {
    for (size_t panel = 0; panel < panels(); ++panel) {
      const size_t n = panel_channels(panel);
      for (size_t t = 0; t < taps; ++t) {
        for (size_t j = 0; j < n; ++j, ++to)
          std::memcpy(to, weights.bytes().data() + ((panel * block_ + j) * taps + t) * sizeof(float), sizeof(float));
      }
    }
  });
}

void InvertedResidual::clear_padding(size_t panel, float* ring) const {
  if (!expands()) return;
  const size_t n = panel_channels(panel);
  const size_t left = size(w_.pad_left);
  for (size_t slot = 0; slot < slots_; ++slot) {
    float* const row = ring + slot * width_ * n;
    std::fill_n(row, left * n, 0.0F);
    std::fill(row + (left + w_.w) * n, row + width_ * n, 0.0F);
  }
}

// The rows of the image that the band is the first to read, into the ring.
void InvertedResidual::expand(const Memory& m, const Band& band) const {
  const auto place = [&](size_t row, size_t tap) {
    return size(std::clamp<int64_t>(static_cast<int64_t>(row * w_.stride_h + tap) - w_.pad_top, 0, static_cast<int64_t>(w_.h)));
  };
  const size_t high = reach(w_.kernel_h, w_.dilation_h);
  const size_t begin = band.first ? place(band.begin, 0) : std::max(place(band.begin, 0), place(band.begin - 1, high));
  const size_t end = place(band.end - 1, high);
  const size_t n = panel_channels(band.panel);
  const Epilogue& activation = epilogues_[0];
  Product p{.m = w_.w,
            .n = n,
            .k = channels_,
            .b = floats_of(expand_weights_) + band.panel * block_ * channels_,
            .c_stride = n,
            .a_stride = channels_};
  p.epilogue.low = activation.low;
  p.epilogue.high = activation.high;
  if (m.expand_bias != nullptr) p.epilogue.column_bias = m.expand_bias + band.panel * block_;
  for (size_t row = begin; row < end; ++row) {
    p.a = m.x + (band.image * w_.h + row) * w_.w * channels_;
    p.c = band.ring + (row % slots_ * width_ + size(w_.pad_left)) * n;
    loops_.multiply(p, {0, p.m, 0, 1});
    if (activation.activate != nullptr) activation.activate(p.c, p.c, p.m * n, activation.a, activation.b);
  }
}

void InvertedResidual::convolve(const Memory& m, const Band& band) const {
  const size_t n = panel_channels(band.panel);
  const Epilogue& activation = epilogues_[1];
  std::array<const float*, most_kernel_rows> rows{};
  ChannelRow row{rows.data(), w_.kernel_h, w_.kernel_w, w_.stride_w, w_.dilation_w, 0, width_, w_.out_w, n, nullptr, row_step_};
  if (!expands()) {
    row.pad = w_.pad_left;
    row.width = w_.w;
  }
  for (size_t i = band.begin; i < band.end; ++i) {
    for (size_t ky = 0; ky < w_.kernel_h; ++ky) {
      const int64_t at = static_cast<int64_t>(i * w_.stride_h + ky * w_.dilation_h) - w_.pad_top;
      const bool inside = at >= 0 && at < static_cast<int64_t>(w_.h);
      rows.at(ky) = !inside     ? nullptr
                    : expands() ? band.ring + size(at) % slots_ * width_ * n
                                : m.x + (band.image * w_.h + size(at)) * w_.w * n;
    }
    row.y = band.convolved + (i - band.begin) * w_.out_w * row_step_ + band.panel * block_;
    channel_loops().depthwise({row, floats_of(depthwise_weights_) + band.panel * block_ * w_.taps(),
                               m.depthwise_bias == nullptr ? nullptr : m.depthwise_bias + band.panel * block_, activation.low,
                               activation.high});
    if (activation.activate == nullptr) continue;
    for (size_t x = 0; x < w_.out_w; ++x)
      activation.activate(row.y + x * row_step_, row.y + x * row_step_, n, activation.a, activation.b);
  }
}

void InvertedResidual::project(const Memory& m, const Band& band) const {
  const size_t at = (band.image * w_.out_h + band.begin) * w_.out_w * outputs_;
  const size_t pixels = (band.end - band.begin) * w_.out_w;
  Epilogue epilogue = epilogues_[2];
  epilogue.column_bias = m.project_bias;
  if (m.residual != nullptr) epilogue.residual = m.residual + at;
  const bool from_memory = w_.channels * outputs_ * sizeof(float) > machine_.l2_bytes() / 2;
  loops_.multiply({.m = pixels,
                   .n = outputs_,
                   .k = w_.channels,
                   .a = band.convolved,
                   .b = floats_of(project_weights_),
                   .c = m.y + at,
                   .c_stride = outputs_,
                   .epilogue = epilogue,
                   .prefetch_b = from_memory,
                   .a_stride = row_step_},
                  {0, pixels, 0, loops_.panels(outputs_)});
}

// Output rows [begin, end) of an image, by one thread.
void InvertedResidual::run_rows(const Memory& m, size_t image, size_t begin, size_t end) const {
  float* const rings = scratch(0, panels() * panel_ring());
  Band band{image, 0, begin, begin, true, rings, scratch(1, band_ * w_.out_w * row_step_)};
  for (; band.begin < end; band.begin = band.end, band.first = false) {
    band.end = std::min(band.begin + band_, end);
    for (band.panel = 0; band.panel < panels(); ++band.panel) {
      band.ring = rings + band.panel * panel_ring();
      if (band.first) clear_padding(band.panel, band.ring);
      if (expands()) expand(m, band);
      convolve(m, band);
    }
    project(m, band);
  }
}

void InvertedResidual::run(const Memory& m) const {
  // Each piece expands the rows that its windows share with the piece before: few pieces, but some to even out.
  const size_t threads = machine_.threads();
  const size_t wanted = threads == 1 ? 1 : (2 * threads + w_.batch - 1) / w_.batch;
  const size_t pieces = std::min(wanted, w_.out_h);
  machine_.pool().each(w_.batch * pieces, [&](size_t i) {
    const size_t piece = i % pieces;
    run_rows(m, i / pieces, w_.out_h * piece / pieces, w_.out_h * (piece + 1) / pieces);
  });
}

Support fits(const OpCall& call) {
  const Window w = window_of(read_inverted_residual(call));
  if (w.kernel_h > most_kernel_rows) return no(Reason::Size, "a kernel of ", w.kernel_h, " rows, not up to ", most_kernel_rows);
  const auto real = [](size_t value) { return static_cast<double>(value); };
  const double high = (real(w.kernel_h) - 1) * real(w.dilation_h) + 1;
  const double wide =
      real(w.out_w) * real(w.stride_w) + real(w.kernel_w) * real(w.dilation_w) + real(w.w) + static_cast<double>(w.pad_left);
  const double ring = call.has(ExpandWeights) ? high * wide : 0;
  const double bytes = (ring + real(w.out_w)) * real(w.channels) * sizeof(float);
  if (bytes > real(most_band_bytes)) return no(Reason::Size, "a band of ", bytes / 1024, " KiB, more than the cache takes");
  const double image = real(w.h) * real(w.w) * real(w.channels) * sizeof(float);
  return image >= real(least_image_bytes) ? yes()
                                          : no(Reason::Size, "a wide image of ", image / 1024, " KiB, which the cache holds");
}

Support supports(const OpCall& call) {
  if (Support types = all_of(inputs_are(call, {DType::F32}), known_activation(call), known_activation(call, expand_prefix),
                             known_activation(call, depthwise_prefix));
      !types) {
    return types;
  }
  for (const size_t i : {ExpandWeights, DepthwiseWeights, ProjectWeights}) {
    if (Support constant = is_constant(call, i); !constant) return constant;
  }
  for (const size_t i : {X, DepthwiseWeights}) {
    if (call.input(i).shape.elements() == 0) return no(Reason::Size, "input ", i, " is empty");
  }
  return call.output(0).shape.elements() == 0 ? no(Reason::Size, "an empty result") : fits(call);
}

Prepared prepare(const OpCall& call, Device& device) {
  auto work = std::make_shared<const InvertedResidual>(call, machine_of(device));  // Shared by the copies of the function.
  std::vector<bool> unused(call.input_count(), false);
  for (const size_t i : {ExpandWeights, DepthwiseWeights, ProjectWeights}) unused.at(i) = true;
  return {.run =
              [work = std::move(work)](Stream&, const KernelArgs& args) {
                const auto input = [&](size_t i) {
                  return i < args.inputs.size() ? reinterpret_cast<const float*>(args.inputs[i].host()) : nullptr;
                };
                work->run({input(X), input(ExpandBias), input(DepthwiseBias), input(ProjectBias), input(Residual),
                           reinterpret_cast<float*>(args.outputs[0].host())});
              },
          .unused_inputs = std::move(unused)};
}

}  // namespace

void add_inverted_kernels(KernelTable& table) {
  table.add("unmoor:InvertedResidual", {.name = "cpu.conv.inverted", .supports = supports, .prepare = prepare});
}

}  // namespace unmoor::cpu
