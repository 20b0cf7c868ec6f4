#include <algorithm>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/winograd_products.h"
#include "unmoor/backends/cpu/simd/winograd.h"

namespace unmoor::cpu {

namespace {

constexpr size_t few_tiles = 12;   // Fewer do not pay for weights that are four times as large.

// A 3x3 convolution of channels-last images by Winograd's F(4x4,3x3): tiles of the input become 36 points each, every point is a matrix
// product over channels, and the products become tiles of the output.
class Winograd {
 public:
  Winograd(const Machine& machine, const Window& window, size_t out_channels, const Tensor& weights, Epilogue epilogue);

  size_t workspace_bytes() const { return piecewise_ ? 0 : part_floats() * sizeof(float); }
  void run(const ConvOperands& operands) const;

 private:
  size_t tiles_w() const { return (w_.out_w + winograd_out - 1) / winograd_out; }
  size_t tiles_h() const { return (w_.out_h + winograd_out - 1) / winograd_out; }
  size_t tiles() const { return w_.batch * tiles_h() * tiles_w(); }
  size_t part_floats() const { return products_.together() * products_.tile_floats(); }
  void read_tile(const float* x, size_t tile, float* points) const;
  void write_tile(const ConvOperands& operands, size_t tile, const float* points) const;

  const Machine& machine_;
  Window w_;
  size_t out_channels_;
  Epilogue epilogue_;
  WinogradProducts products_;
  bool piecewise_;   // Each thread does all of its tiles alone.
};

Winograd::Winograd(const Machine& machine, const Window& window, size_t out_channels, const Tensor& weights, Epilogue epilogue)
    : machine_(machine), w_(window), out_channels_(out_channels), epilogue_(epilogue), products_(machine, winograd_points, window.channels, out_channels) {
  const size_t l2 = machine.l2_bytes() / sizeof(float);
  const size_t all_weights = winograd_points * w_.channels * out_channels;
  // Points of as many tiles as stay in L2, or more where the weights, read once a part, are what does not.
  const size_t tile = gemm_loops().tile_rows;
  const size_t fitting = l2 * 3 / 4 / products_.tile_floats();
  const size_t together = std::max(fitting, all_weights > l2 / 2 ? 8 * tile : 3 * tile) / tile * tile;
  products_.set_together(std::min(together, tiles()));
  piecewise_ = machine.threads() == 1 || tiles() >= 2 * machine.threads() * products_.together();
  products_.pack(weights, "Winograd 4x4", [&](size_t o, size_t c, float* to, size_t step) {
    winograd_kernel(unaligned_floats(weights) + (o * w_.channels + c) * 9, 1, to, step);
  });
}

void Winograd::read_tile(const float* x, size_t tile, float* points) const {
  const size_t image = tile / (tiles_h() * tiles_w());
  const auto top = static_cast<int64_t>(tile / tiles_w() % tiles_h() * winograd_out) - w_.pad_top;
  const auto left = static_cast<int64_t>(tile % tiles_w() * winograd_out) - w_.pad_left;
  WinogradTile part{{}, points, products_.in_point(), w_.channels};
  for (size_t i = 0; i < winograd_points; ++i) {
    const int64_t y = top + static_cast<int64_t>(i / winograd_in);
    const int64_t column = left + static_cast<int64_t>(i % winograd_in);
    const bool inside = y >= 0 && y < static_cast<int64_t>(w_.h) && column >= 0 && column < static_cast<int64_t>(w_.w);
    part.pixels[i] = inside ? x + ((image * w_.h + static_cast<size_t>(y)) * w_.w + static_cast<size_t>(column)) * w_.channels : nullptr;
  }
  winograd_loops().input(part);
}

void Winograd::write_tile(const ConvOperands& operands, size_t tile, const float* points) const {
  const size_t image = tile / (tiles_h() * tiles_w());
  const size_t y = tile / tiles_w() % tiles_h() * winograd_out;
  const size_t x = tile % tiles_w() * winograd_out;
  const size_t at = ((image * w_.out_h + y) * w_.out_w + x) * out_channels_;
  const size_t row_step = w_.out_w * out_channels_;
  const size_t rows = std::min(winograd_out, w_.out_h - y);
  const size_t columns = std::min(winograd_out, w_.out_w - x);
  winograd_loops().output({points, products_.out_point(), operands.y + at, row_step, rows, columns, out_channels_, out_channels_});
  if (epilogue_.is_identity() && operands.bias == nullptr && operands.residual == nullptr) return;
  for (size_t row = 0; row < rows; ++row) {
    Epilogue epilogue = epilogue_;
    epilogue.column_bias = operands.bias;
    if (operands.residual != nullptr) epilogue.residual = operands.residual + at + row * row_step;
    gemm_loops().finish(operands.y + at + row * row_step, out_channels_, columns, out_channels_, epilogue);
  }
}

void Winograd::run(const ConvOperands& operands) const {
  const size_t parts = (tiles() + products_.together() - 1) / products_.together();
  const auto part = [&](size_t i, float* in, const auto& each) {
    const size_t first = i * products_.together();
    const size_t count = std::min(products_.together(), tiles() - first);
    float* const out = in + winograd_points * products_.in_point();
    each(count, [&](size_t t) { read_tile(operands.x, first + t, in + t * products_.in_step()); });
    each(winograd_points, [&](size_t p) { products_.multiply(p, count, in, out); });
    each(count, [&](size_t t) { write_tile(operands, first + t, out + t * products_.out_step()); });
  };
  if (piecewise_) {
    machine_.pool().each(parts, [&](size_t i) {
      part(i, scratch(0, part_floats()), [](size_t count, const auto& body) {
        for (size_t j = 0; j < count; ++j) body(j);
      });
    });
    return;
  }
  for (size_t i = 0; i < parts; ++i) {
    part(i, operands.workspace, [&](size_t count, const auto& body) { machine_.pool().each(count, body); });
  }
}

Support supports_winograd(const OpCall& call) {
  if (Support takes = all_of(takes_window_last(call), takes_convolution(call)); !takes) {
    return takes;
  }
  const Window w = window_of_weights(call);
  if (w.kernel_h != 3 || w.kernel_w != 3 || w.stride_h != 1 || w.stride_w != 1 || w.dilation_h != 1 || w.dilation_w != 1) {
    return no(Reason::Attribute, "only a 3x3 kernel without stride and dilation");
  }
  constexpr size_t few_channels = 16;
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  if (call.integer("group", 1) != 1 || w.channels < few_channels || outputs < few_channels) {
    return no(Reason::Size, "groups, or fewer than ", few_channels, " channels");
  }
  const size_t tiles = w.batch * ((w.out_h + winograd_out - 1) / winograd_out) * ((w.out_w + winograd_out - 1) / winograd_out);
  return tiles >= few_tiles ? yes() : no(Reason::Size, "only ", tiles, " tiles of 4x4 pixels, not ", few_tiles);
}

Prepared prepare_winograd(const OpCall& call, Device& device) {
  Epilogue epilogue;
  set_activation(call, epilogue);
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  return prepared_convolution(call, std::make_shared<const Winograd>(
                                        machine_of(device), window_of_weights(call), outputs, *call.constant(1), epilogue));
}

}  // namespace

void add_winograd_kernels(KernelTable& table) {
  add_line_winograd_kernels(table);
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.winograd43", .supports = supports_winograd, .prepare = prepare_winograd});
  }
}

}  // namespace unmoor::cpu
