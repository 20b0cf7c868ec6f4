#include <algorithm>
#include <array>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/product.h"
#include "unmoor/backends/cpu/kernels/window.h"
#include "unmoor/backends/cpu/simd/patch.h"
#include "unmoor/backends/cpu/simd/plane.h"

namespace unmoor::cpu {

namespace {

// A convolution as a matrix product: packed weights [Cout, Cin * taps] times panels of output pixels, which are gathered from the
// input as they are needed.
class Convolution {
 public:
  Convolution(const Machine& machine, const Window& window, size_t groups, size_t out_channels, const Tensor& weights, Epilogue epilogue);

  size_t workspace_bytes() const { return (split_floats() + shared_floats()) * sizeof(float); }
  using Operands = ConvOperands;
  void run(const Operands& operands) const;

 private:
  size_t images() const { return w_.batch * groups_; }
  size_t group_channels() const { return w_.channels / groups_; }
  size_t depth() const { return group_channels() * w_.taps(); }
  size_t out_group() const { return out_channels_ / groups_; }
  bool is_split() const { return w_.stride_w > 1; }
  size_t part() const { return (w_.w + w_.stride_w - 1) / w_.stride_w; }  // Of a row, by phase.
  size_t row_step() const { return is_split() ? part() * w_.stride_w : w_.w; }
  size_t split_floats() const { return is_split() ? (w_.batch * w_.channels * w_.h * row_step() + 15) / 16 * 16 : 0; }
  size_t packed_b() const { return loops_.packed_b(w_.pixels(), depth()); }
  size_t shared_floats() const { return shared_ ? images() * packed_b() : 0; }
  bool row_is_used(size_t row) const;
  const float* split(const Operands& operands) const;
  void gather(const float* image, size_t begin, size_t end, float* to) const;
  Product product(const Operands& operands, size_t image, const float* b) const;
  void run_local(const Operands& operands, const float* x) const;
  void run_shared(const Operands& operands, const float* x) const;

  const Machine& machine_;
  const GemmLoops& loops_;
  const PatchLoops& patches_;
  Window w_;
  size_t groups_;
  size_t out_channels_;
  Epilogue epilogue_;
  Packed weights_;
  size_t together_;  // Panels that a thread gathers at once.
  bool shared_;      // Few panels: all are gathered first, then threads share rows too.
};

// Where taps do not reach, a 1x1 convolution is over one long row.
Window flattened(Window w) {
  if (w.taps() == 1 && w.stride_h == 1 && w.stride_w == 1 && w.pad_top == 0 && w.pad_left == 0 && w.out_h == w.h && w.out_w == w.w) {
    w.w *= w.h;
    w.out_w = w.w;
    w.h = w.out_h = 1;
  }
  return w;
}

Convolution::Convolution(const Machine& machine, const Window& window, size_t groups, size_t out_channels, const Tensor& weights, Epilogue epilogue)
    : machine_(machine), loops_(gemm_loops()), patches_(patch_loops()), w_(flattened(window)), groups_(groups), out_channels_(out_channels),
      epilogue_(epilogue) {
  const std::string kind = cat("rows of ", loops_.tile_rows, " [", groups, ",", out_group(), ",", depth(), "]");
  weights_ = machine.weights().get(weights, kind, out_channels * depth(), [&](float* to) {
    machine.pool().each(groups, [&](size_t g) {
      const size_t at = g * out_group() * depth();
      loops_.pack_a({unaligned_floats(weights) + at, depth(), 1}, out_group(), depth(), to + at);
    });
  });
  const size_t panel_bytes = std::max<size_t>(depth() * loops_.panel_columns * sizeof(float), 1);
  const size_t panels = loops_.panels(w_.pixels());
  shared_ = machine.threads() > 1 && images() * panels < 8 * machine.threads();
  together_ = std::clamp<size_t>(machine.l2_bytes() / 2 / panel_bytes, 1, 8);
  if (machine.threads() > 1) {
    together_ = std::clamp<size_t>(images() * panels / (8 * machine.threads()), 1, together_);
  }
}

bool Convolution::row_is_used(size_t row) const {
  for (size_t ky = 0; ky < w_.kernel_h; ++ky) {
    const int64_t at = static_cast<int64_t>(row) + w_.pad_top - static_cast<int64_t>(ky * w_.dilation_h);
    if (at >= 0 && at % static_cast<int64_t>(w_.stride_h) == 0) return true;
  }
  return false;
}

// The input with the pixels of each row sorted by phase, so that a stride along w becomes none.
const float* Convolution::split(const Operands& operands) const {
  if (!is_split()) {
    return operands.x;
  }
  const size_t rows = w_.batch * w_.channels * w_.h;
  const PlaneLoops& loops = plane_loops();
  machine_.pool().ranges(rows, 16384 / (w_.w + 1) + 1, [&](size_t begin, size_t end) {
    std::vector<float*> phases(w_.stride_w);
    for (size_t row = begin; row < end; ++row) {
      if (!row_is_used(row % w_.h)) continue;
      for (size_t i = 0; i < phases.size(); ++i) phases[i] = operands.workspace + row * row_step() + i * part();
      loops.spread(operands.x + row * w_.w, w_.w, w_.stride_w, phases.data());
    }
  });
  return operands.workspace;
}

// Packs output pixels [begin, end) of an image, a panel.
void Convolution::gather(const float* image, size_t begin, size_t end, float* to) const {
  std::vector<PatchCopy> copies;
  std::vector<size_t> ends;
  copies.reserve(w_.taps() * ((end - begin) / w_.out_w + 2));
  for (size_t ky = 0; ky < w_.kernel_h; ++ky) {
    for (size_t kx = 0; kx < w_.kernel_w; ++kx) {
      const Tap tap = tap_of(kx, w_.dilation_w, w_.stride_w, w_.pad_left);
      const auto valid = static_cast<int64_t>(w_.w > tap.phase ? (w_.w - tap.phase + w_.stride_w - 1) / w_.stride_w : 0);
      for (size_t at = begin; at < end;) {
        const size_t oy = at / w_.out_w;
        const size_t ox = at % w_.out_w;
        const size_t count = std::min(w_.out_w - ox, end - at);
        const int64_t iy = static_cast<int64_t>(oy * w_.stride_h + ky * w_.dilation_h) - w_.pad_top;
        const int64_t first = std::max(static_cast<int64_t>(ox), -tap.shift);
        const int64_t last = std::min(static_cast<int64_t>(ox + count), valid - tap.shift);
        if (iy >= 0 && iy < static_cast<int64_t>(w_.h) && first < last) {
          const size_t from = static_cast<size_t>(iy) * row_step() + tap.phase * (is_split() ? part() : 0) + static_cast<size_t>(first + tap.shift);
          copies.push_back({from, static_cast<uint32_t>(at - begin + static_cast<size_t>(first) - ox), static_cast<uint32_t>(last - first)});
        }
        at += count;
      }
      ends.push_back(copies.size());
    }
  }
  std::vector<PatchTap> taps;
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t start = i == 0 ? 0 : ends[i - 1];
    taps.push_back({copies.data() + start, ends[i] - start});
  }
  const size_t width = (end - begin + loops_.lanes - 1) / loops_.lanes * loops_.lanes;
  patches_.pack({image, w_.h * row_step(), group_channels(), taps.data(), taps.size(), width, to});
}

Product Convolution::product(const Operands& operands, size_t image, const float* b) const {
  const size_t group = image % groups_;
  const size_t at = image * out_group() * w_.pixels();
  Epilogue epilogue = epilogue_;
  if (operands.bias != nullptr) epilogue.row_bias = operands.bias + group * out_group();
  if (operands.residual != nullptr) epilogue.residual = operands.residual + at;
  return {out_group(), w_.pixels(), depth(), floats_of(weights_) + group * out_group() * depth(), b, operands.y + at, w_.pixels(), epilogue};
}

void Convolution::run(const Operands& operands) const {
  if (images() * out_group() * w_.pixels() == 0) {
    return;
  }
  const float* const x = split(operands);
  if (shared_) {
    run_shared(operands, x);
  } else {
    run_local(operands, x);
  }
}

void Convolution::run_local(const Operands& operands, const float* x) const {
  const size_t panels = loops_.panels(w_.pixels());
  const size_t sets = (panels + together_ - 1) / together_;
  const size_t columns = loops_.panel_columns;
  const size_t image_step = group_channels() * w_.h * row_step();
  machine_.pool().each(images() * sets, [&](size_t i) {
    const size_t image = i / sets;
    const size_t first = i % sets * together_;
    const size_t count = std::min(together_, panels - first);
    float* const b = scratch(0, together_ * columns * depth());
    for (size_t panel = 0; panel < count; ++panel) {
      const size_t begin = (first + panel) * columns;
      gather(x + image * image_step, begin, std::min(begin + columns, w_.pixels()), b + panel * columns * depth());
    }
    Product part = product(operands, image, b);
    part.c += first * columns;
    part.n = std::min(count * columns, w_.pixels() - first * columns);
    part.epilogue = part.epilogue.at(0, first * columns, part.c_stride);
    loops_.multiply(part, {0, out_group(), 0, count});
  });
}

void Convolution::run_shared(const Operands& operands, const float* x) const {
  const size_t panels = loops_.panels(w_.pixels());
  const size_t columns = loops_.panel_columns;
  const size_t image_step = group_channels() * w_.h * row_step();
  float* const packed = operands.workspace + split_floats();
  machine_.pool().each(images() * panels, [&](size_t i) {
    const size_t begin = i % panels * columns;
    gather(x + i / panels * image_step, begin, std::min(begin + columns, w_.pixels()), packed + i / panels * packed_b() + begin * depth());
  });
  const size_t tile = loops_.tile_rows;
  const size_t tiles = (out_group() + tile - 1) / tile;
  const size_t parts = std::clamp<size_t>(8 * machine_.threads() / (images() * panels), 1, tiles);
  machine_.pool().each(images() * panels * parts, [&](size_t i) {
    const size_t image = i / (panels * parts);
    const size_t panel = i / parts % panels;
    const size_t part = i % parts;
    loops_.multiply(product(operands, image, packed + image * packed_b()),
                    {tiles * part / parts * tile, std::min(tiles * (part + 1) / parts * tile, out_group()), panel, panel + 1});
  });
}

Support supports_conv(const OpCall& call) {
  if (Support takes = all_of(takes_window(call), takes_convolution(call)); !takes) {
    return takes;
  }
  // Rows are split by phase, in as many parts as the stride.
  const Window w = window_of_weights(call);
  return w.stride_w <= std::max<size_t>(w.w, 16) ? yes() : no(Reason::Size, "a stride of ", w.stride_w, " over rows of ", w.w);
}

Prepared prepare_conv(const OpCall& call, Device& device) {
  Epilogue epilogue;
  set_activation(call, epilogue);
  const auto groups = static_cast<size_t>(call.integer("group", 1));
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  return prepared_convolution(call, std::make_shared<const Convolution>(
                                        machine_of(device), window_of_weights(call), groups, outputs, *call.constant(1), epilogue));
}

// A kernel as large as its input gives one pixel: a matrix product of images and weights.
Support supports_dense(const OpCall& call) {
  if (Support types = supports_conv(call); !types) {
    return types;
  }
  const Window w = window_of_weights(call);
  const bool dense = (w.kernel_h == 1 || w.dilation_h == 1) && (w.kernel_w == 1 || w.dilation_w == 1);
  const bool whole = dense && w.pixels() == 1 && w.kernel_h == w.h && w.kernel_w == w.w && w.pad_top == 0 && w.pad_left == 0;
  return whole && call.integer("group", 1) == 1 ? yes() : no(Reason::Size, "the result has more than one pixel");
}

Prepared prepare_dense(const OpCall& call, Device& device) {
  const Window w = window_of_weights(call);
  Products products;
  products.m = w.batch;
  products.n = static_cast<size_t>(call.input(1).shape[0]);
  products.k = w.channels * w.taps();
  products.transposed_b = true;
  set_activation(call, products.epilogue);
  // Shared by the copies of the function below.
  const auto prepared = std::make_shared<const PreparedProducts>(machine_of(device), products, call.constant(1),
                                                                 call.has(2) ? Bias::Column : Bias::None);
  return {.run =
              [prepared](Stream&, const KernelArgs& args) {
                const ConvOperands o(args);
                prepared->run({o.x, nullptr, o.bias, o.residual, o.y, o.workspace});
              },
          .workspace_bytes = prepared->workspace_bytes(),
          .unused_inputs = without_weights(call)};
}

}  // namespace

void add_conv_kernels(KernelTable& table) {
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.dense", .supports = supports_dense, .prepare = prepare_dense});
    table.add(op, {.name = "cpu.conv.indirect", .supports = supports_conv, .prepare = prepare_conv});
  }
}

}  // namespace unmoor::cpu
