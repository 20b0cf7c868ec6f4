#include <algorithm>
#include <cstring>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/dots.h"
#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/ops/window.h"

namespace unmoor::cpu {

namespace {

constexpr int64_t most_outputs = 8;  // More of them fill a vector's lanes better than a window does.
constexpr size_t least_run = 16;     // Floats: shorter runs are mostly rests.

// A convolution of a channels-last image to few channels: each result is a sum over what its window sees, which lies in memory as
// a run of floats for each row of the kernel.
class DotConvolution {
 public:
  DotConvolution(const Machine& machine, const Window& window, size_t outputs, const Tensor& weights, Epilogue epilogue)
      : machine_(machine), w_(window), outputs_(outputs), epilogue_(epilogue) {
    const std::string kind = cat("windows of ", w_.channels, " channels [", outputs, ",", w_.taps(), "]");
    weights_ = machine.weights().get(weights, kind, outputs * window_floats(), [&](float* to) {
      // [output][channel][tap] as [output][tap][channel].
      const std::byte* from = weights.bytes().data();
      for (size_t o = 0; o < outputs; ++o) {
        for (size_t c = 0; c < w_.channels; ++c) {
          for (size_t t = 0; t < w_.taps(); ++t, from += sizeof(float)) {
            std::memcpy(to + o * window_floats() + t * w_.channels + c, from, sizeof(float));
          }
        }
      }
    });
  }

  static constexpr size_t workspace_bytes() { return 0; }

  void run(const ConvOperands& operands) const {
    const size_t row_floats = w_.out_w * outputs_;
    const size_t grain = 65536 / (row_floats * window_floats() + 1) + 1;
    machine_.pool().ranges(w_.batch * w_.out_h, grain, [&](size_t begin, size_t end) {
      Epilogue epilogue = epilogue_;
      if (operands.bias != nullptr) {
        float* const bias = scratch(0, row_floats);
        for (size_t i = 0; i < row_floats; ++i) bias[i] = operands.bias[i % outputs_];
        epilogue.column_bias = bias;
      }
      for (size_t i = begin; i < end; ++i) {
        float* const y = operands.y + i * row_floats;
        run_row(operands.x, i, y);
        if (operands.residual != nullptr) epilogue.residual = operands.residual + i * row_floats;
        if (!epilogue.is_identity()) gemm_loops().finish(y, row_floats, 1, row_floats, epilogue);
      }
    });
  }

 private:
  size_t window_floats() const { return w_.taps() * w_.channels; }

  // One row of results.
  void run_row(const float* x, size_t row, float* y) const {
    const auto dilation = static_cast<int64_t>(w_.dilation_h);
    const auto height = static_cast<int64_t>(w_.h);
    const int64_t top = static_cast<int64_t>(row % w_.out_h * w_.stride_h) - w_.pad_top;
    const auto kernel = static_cast<int64_t>(w_.kernel_h);
    const int64_t first = top < 0 ? std::min((-top + dilation - 1) / dilation, kernel) : 0;
    const int64_t last = top >= height ? first : std::clamp((height - 1 - top) / dilation + 1, first, kernel);
    Dots dots;
    dots.runs = static_cast<size_t>(last - first);
    dots.x_run = w_.dilation_h * w_.w * w_.channels;
    dots.w_run = w_.kernel_w * w_.channels;
    dots.w_step = window_floats();
    dots.x_step = w_.stride_w * w_.channels;
    dots.w = floats_of(weights_) + static_cast<size_t>(first) * dots.w_run;
    const size_t line = row / w_.out_h * w_.h + static_cast<size_t>(dots.runs == 0 ? 0 : top + first * dilation);
    dots.x = x + line * w_.w * w_.channels;
    run_line(dots, y);
  }

  // `dots` stands at the beginning of its line of the image. Windows that reach over its ends one by one, those between together.
  void run_line(const Dots& line, float* y) const {
    const auto width = static_cast<int64_t>(w_.w);
    const auto kernel = static_cast<int64_t>(w_.kernel_w);
    const auto stride = static_cast<int64_t>(w_.stride_w);
    const auto count = static_cast<int64_t>(w_.out_w);
    const int64_t begin = std::clamp<int64_t>((w_.pad_left + stride - 1) / stride, 0, count);
    const int64_t room = width + w_.pad_left - kernel;
    const int64_t end = room < 0 ? begin : std::clamp(room / stride + 1, begin, count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t left = i * stride - w_.pad_left;
      Dots dots = line;
      if (i == begin && end > begin) {
        dots.x += left * static_cast<int64_t>(w_.channels);
        dots.run = w_.kernel_w * w_.channels;
        dot_loops().multiply(dots, static_cast<size_t>(end - begin), outputs_, y + i * static_cast<int64_t>(outputs_));
        i = end - 1;
        continue;
      }
      const int64_t from = std::clamp<int64_t>(-left, 0, kernel);
      const int64_t to = std::clamp<int64_t>(width - left, from, kernel);
      dots.run = static_cast<size_t>(to - from) * w_.channels;
      if (dots.run == 0) dots.runs = 0;
      dots.w += from * static_cast<int64_t>(w_.channels);
      if (dots.runs != 0) dots.x += (left + from) * static_cast<int64_t>(w_.channels);
      dot_loops().multiply(dots, 1, outputs_, y + i * static_cast<int64_t>(outputs_));
    }
  }

  const Machine& machine_;
  Window w_;
  size_t outputs_;
  Epilogue epilogue_;
  Packed weights_;
};

Support supports_dots(const OpCall& call) {
  if (Support takes = all_of(takes_window_last(call), takes_convolution(call)); !takes) return takes;
  const int64_t groups = call.integer("group", 1);
  if (groups != 1) return no(Reason::Attribute, "group ", groups);
  const int64_t outputs = call.input(1).shape[0];
  if (outputs > most_outputs) return no(Reason::Size, outputs, " output channels, not up to ", most_outputs);
  const Window window = window_of_weights(call);
  if (window.dilation_w != 1 && window.kernel_w != 1) return no(Reason::Attribute, "dilations ", window.dilation_w);
  const size_t run = window.kernel_w * window.channels;
  if (run < least_run) return no(Reason::Size, "windows of ", run, " floats a row, not ", least_run);
  // A product of packed weights takes about 0.6 cycles for each float of a window with up to 8 outputs, this an eighth of that
  // for each output, and some cycles to add up a vector's lanes.
  const size_t least_window = 6 * static_cast<size_t>(outputs * outputs);
  return run * window.kernel_h >= least_window
             ? yes()
             : no(Reason::Size, "windows of ", run * window.kernel_h, " floats for ", outputs, " outputs");
}

Prepared prepare_dots(const OpCall& call, Device& device) {
  Epilogue epilogue;
  set_activation(call, epilogue);
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  return prepared_convolution(call, std::make_shared<const DotConvolution>(machine_of(device), window_of_weights(call), outputs,
                                                                           *call.constant(1), epilogue));
}

}  // namespace

void add_dot_conv_kernels(KernelTable& table) {
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.dots", .supports = supports_dots, .prepare = prepare_dots});
  }
}

}  // namespace unmoor::cpu
