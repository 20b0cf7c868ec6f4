#include <algorithm>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/kernels/winograd_products.h"
#include "unmoor/backends/cpu/simd/winograd.h"

namespace unmoor::cpu {

namespace {

// A convolution of three taps in a row, of channels-last signals or images, by Winograd's F(4,3): tiles of six pixels, a dilation
// apart, become six points, every point is a matrix product over channels, and the products become four pixels of the output.
class LineWinograd {
 public:
  LineWinograd(const Machine& machine, const Window& window, size_t out_channels, const Tensor& weights, Epilogue epilogue);

  static constexpr size_t workspace_bytes() { return 0; }
  void run(const ConvOperands& operands) const;
  // Tiles that cover a line of the output.
  static size_t tiles_of_line(const Window& w) {
    const size_t longer = w.out_w % w.dilation_w;  // So many sequences of pixels a dilation apart have one more.
    const size_t length = w.out_w / w.dilation_w;
    const auto tiles = [](size_t pixels) { return (pixels + winograd_out - 1) / winograd_out; };
    return longer * tiles(length + 1) + (w.dilation_w - longer) * tiles(length);
  }

 private:
  size_t tiles() const { return w_.batch * w_.out_h * starts_.size(); }
  void read_tile(const float* x, size_t tile, float* points) const;
  void write_tile(const ConvOperands& operands, size_t tile, const float* points) const;

  const Machine& machine_;
  Window w_;
  size_t out_channels_;
  Epilogue epilogue_;
  WinogradProducts products_;
  std::vector<size_t> starts_;  // Of a line's tiles, the first output pixel.
};

LineWinograd::LineWinograd(const Machine& machine, const Window& window, size_t out_channels, const Tensor& weights,
                           Epilogue epilogue)
    : machine_(machine),
      w_(window),
      out_channels_(out_channels),
      epilogue_(epilogue),
      products_(machine, winograd_in, window.channels, out_channels) {
  for (size_t first = 0; first < std::min(w_.dilation_w, w_.out_w); ++first) {
    for (size_t x = first; x < w_.out_w; x += winograd_out * w_.dilation_w) starts_.push_back(x);
  }
  const size_t tile = gemm_loops().tile_rows;
  const size_t fitting = machine.l2_bytes() / sizeof(float) * 3 / 4 / products_.tile_floats();
  const size_t fair = tiles() / machine.threads();
  products_.set_together(std::clamp<size_t>(std::min(fitting, fair) / tile * tile, 4 * tile, 64 * tile));
  products_.pack(weights, "Winograd 4 in a row", [&](size_t o, size_t c, float* to, size_t step) {
    winograd_line_kernel(unaligned_floats(weights) + (o * w_.channels + c) * 3, to, step);
  });
}

void LineWinograd::read_tile(const float* x, size_t tile, float* points) const {
  const size_t line = tile / starts_.size();
  const int64_t y = static_cast<int64_t>(line % w_.out_h) - w_.pad_top;
  const bool inside = y >= 0 && y < static_cast<int64_t>(w_.h);
  const float* const row = x + (line / w_.out_h * w_.h + static_cast<size_t>(inside ? y : 0)) * w_.w * w_.channels;
  WinogradTile part{{}, points, products_.in_point(), w_.channels};
  for (size_t i = 0; i < winograd_in; ++i) {
    const int64_t at = static_cast<int64_t>(starts_[tile % starts_.size()] + i * w_.dilation_w) - w_.pad_left;
    part.pixels[i] = inside && at >= 0 && at < static_cast<int64_t>(w_.w) ? row + static_cast<size_t>(at) * w_.channels : nullptr;
  }
  winograd_loops().input_line(part);
}

void LineWinograd::write_tile(const ConvOperands& operands, size_t tile, const float* points) const {
  const size_t x = starts_[tile % starts_.size()];
  const size_t at = (tile / starts_.size() * w_.out_w + x) * out_channels_;
  const size_t columns = std::min(winograd_out, (w_.out_w - x + w_.dilation_w - 1) / w_.dilation_w);
  const size_t step = w_.dilation_w * out_channels_;
  winograd_loops().output_line({points, products_.out_point(), operands.y + at, 0, 1, columns, out_channels_, step});
  Epilogue epilogue = epilogue_;
  epilogue.column_bias = operands.bias;
  if (operands.residual != nullptr) epilogue.residual = operands.residual + at;
  if (!epilogue.is_identity()) gemm_loops().finish(operands.y + at, step, columns, out_channels_, epilogue);
}

void LineWinograd::run(const ConvOperands& operands) const {
  const size_t together = products_.together();
  const size_t parts = (tiles() + together - 1) / together;
  machine_.pool().each(parts, [&](size_t i) {
    float* const in = scratch(0, together * products_.tile_floats());
    float* const out = in + winograd_in * products_.in_point();
    const size_t first = i * together;
    const size_t count = std::min(together, tiles() - first);
    for (size_t t = 0; t < count; ++t) read_tile(operands.x, first + t, in + t * products_.in_step());
    for (size_t p = 0; p < winograd_in; ++p) products_.multiply(p, count, in, out);
    for (size_t t = 0; t < count; ++t) write_tile(operands, first + t, out + t * products_.out_step());
  });
}

Support supports_line(const OpCall& call) {
  if (Support takes = all_of(takes_window_last(call), takes_convolution(call)); !takes) return takes;
  const Window w = window_of_weights(call);
  if (w.kernel_h != 1 || w.kernel_w != 3 || w.stride_h != 1 || w.stride_w != 1)
    return no(Reason::Attribute, "only three taps in a row without stride");
  constexpr size_t few_channels = 16;
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  if (call.integer("group", 1) != 1 || w.channels < few_channels || outputs < few_channels) {
    return no(Reason::Size, "groups, or fewer than ", few_channels, " channels");
  }
  constexpr size_t few_tiles = 48;
  if (w.dilation_w > w.out_w) return no(Reason::Size, "a dilation of ", w.dilation_w, " for ", w.out_w, " results");
  const size_t line = LineWinograd::tiles_of_line(w);
  if (w.batch * w.out_h * line < few_tiles) return no(Reason::Size, "fewer than ", few_tiles, " tiles of four results");
  // Products that are saved must outweigh what the tiles cost.
  const bool fills = 3 * w.out_w * 10 >= line * winograd_in * 13;
  return fills ? yes() : no(Reason::Size, "tiles of four results, ", w.dilation_w, " apart, would be filled too little");
}

Prepared prepare_line(const OpCall& call, Device& device) {
  Epilogue epilogue;
  set_activation(call, epilogue);
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  return prepared_convolution(call, std::make_shared<const LineWinograd>(machine_of(device), window_of_weights(call), outputs,
                                                                         *call.constant(1), epilogue));
}

}  // namespace

void add_line_winograd_kernels(KernelTable& table) {
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.winograd43.line", .supports = supports_line, .prepare = prepare_line});
  }
}

}  // namespace unmoor::cpu
