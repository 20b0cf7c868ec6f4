#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/kernels/f32x6.h"
#include "unmoor/backends/cpu/kernels/families.h"

namespace unmoor::cpu {

namespace {

constexpr size_t apart = 16;  // Gathered rows lie so many floats further apart, so that they do not share places in the caches.

bool lies_as_rows(const Window& w) {
  return w.taps() == 1 && w.stride_h == 1 && w.stride_w == 1 && w.pad_top == 0 && w.pad_left == 0 && w.out_h == w.h && w.out_w == w.w;
}

// A convolution of channels-last images on AMX: output pixels are the rows of a product, gathered where a kernel is larger than a pixel.
class SixPartConvolution {
 public:
  SixPartConvolution(const Machine& machine, const Window& window, size_t out_channels, const Tensor& weights, Epilogue epilogue)
      : w_(window), out_channels_(out_channels), epilogue_(epilogue), in_place_(lies_as_rows(window)),
        product_(machine, out_channels, depth(), weights, cat("by tap, ", w_.channels, " channels"), [&](std::vector<float>& room) {
          room = weights_by_tap(weights, 0, out_channels_, w_.channels, w_.taps());
          return Strided{room.data(), out_channels_, 1};
        }) {}

  size_t workspace_bytes() const { return product_.workspace_bytes(rows()); }

  void run(const ConvOperands& operands) const {
    Epilogue epilogue = epilogue_;
    epilogue.column_bias = operands.bias;
    epilogue.residual = operands.residual;
    const auto at = [&](size_t row, size_t count, float* room) {
      if (in_place_) return Strided{operands.x + row * w_.channels, w_.channels, 1};
      gather_pixels(w_, 1, operands.x, 0, {row, row + count}, depth() + apart, room);
      return Strided{room, depth() + apart, 1};
    };
    const size_t room = in_place_ ? 0 : set_rows * (depth() + apart);
    product_.run(rows(), {at, room}, operands.y, out_channels_, epilogue, operands.workspace);
  }

 private:
  size_t rows() const { return w_.batch * w_.pixels(); }
  size_t depth() const { return w_.channels * w_.taps(); }

  Window w_;
  size_t out_channels_;
  Epilogue epilogue_;
  bool in_place_;  // The input's pixels are the rows.
  SixPartProduct product_;
};

Support supports_f32x6(const OpCall& call) {
  if (Support takes = all_of(takes_window_last(call), takes_convolution(call)); !takes) return takes;
  if (const int64_t groups = call.integer("group", 1); groups != 1) return no(Reason::Attribute, "group ", groups);
  const Window w = window_of_weights(call);
  return takes_f32x6(w.batch * w.pixels(), static_cast<size_t>(call.input(1).shape[0]), w.channels * w.taps(), *call.constant(1));
}

Prepared prepare_f32x6(const OpCall& call, Device& device) {
  Epilogue epilogue;
  set_activation(call, epilogue);
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  return prepared_convolution(call, std::make_shared<const SixPartConvolution>(machine_of(device), window_of_weights(call), outputs,
                                                                               *call.constant(1), epilogue));
}

}  // namespace

void add_f32x6_conv_kernels(KernelTable& table) {
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.f32x6", .supports = supports_f32x6, .prepare = prepare_f32x6});
  }
}

}  // namespace unmoor::cpu
