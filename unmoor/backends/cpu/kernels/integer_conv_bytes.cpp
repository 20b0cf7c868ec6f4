#include <algorithm>
#include <memory>

#include "unmoor/backends/cpu/kernels/integer_conv.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/quantized_product.h"

namespace unmoor::cpu {

namespace {

constexpr uint8_t sign_bit = 0x80;
constexpr int64_t scattered = -1;

// Weights are the rows of a product, positions of the image its columns: sums come out as the output lies.
struct ByteConv {
  IntegerConv conv;
  std::vector<int64_t> starts;    // [panels, taps]: the first offset where a panel's positions see neighbours, else `scattered`.
  std::vector<int32_t> row_sums;  // [group * outputs] of the weights.

  size_t inner() const { return conv.channels * conv.taps; }
  size_t pairs() const { return (inner() + 1) / 2; }
  size_t panels() const { return byte_loops().panels(conv.positions); }
};

Support supports_bytes(const OpCall& call) {
  if (Support whole = supports_integer_conv(call); !whole) return whole;
  if (channels_last(call)) return no(Reason::Layout, "channels last");
  const Shape& w = call.input(integer_conv_places(call).w).shape;
  const int64_t outputs = w[0] / call.integer("group", 1);
  return outputs < 4 ? no(Reason::Size, outputs, " output channels a group") : yes();
}

ByteConv byte_conv_of(const OpCall& call) {
  ByteConv b{integer_conv_of(call, row_stride), {}, {}};
  const IntegerConv& c = b.conv;
  const size_t width = byte_loops().panel_columns;
  b.starts.resize(b.panels() * c.taps, scattered);
  for (size_t panel = 0; panel < b.panels(); ++panel) {
    if ((panel + 1) * width > c.positions) continue;
    for (size_t t = 0; t < c.taps; ++t) {
      const auto offset = [&](size_t j) { return c.offsets[(panel * width + j) * c.taps + t]; };
      bool side_by_side = offset(0) >= 0;
      for (size_t j = 1; side_by_side && j < width; ++j) side_by_side = offset(j) == offset(0) + static_cast<int64_t>(j);
      if (side_by_side) b.starts[panel * c.taps + t] = offset(0);
    }
  }
  for (size_t row = 0; row < c.group * c.outputs; ++row)
    b.row_sums.push_back(row_sum(c.weights.data() + row * c.depth, b.inner()));
  return b;
}

// A panel of the image as ByteProduct wants it. `pad` stands for what lies outside.
class PanelPacker {
 public:
  PanelPacker(const ByteConv& b, const uint8_t* x, uint8_t pad, uint8_t flip) : b_(b), x_(x), pad_(pad), flip_(flip) {}

  void pack(size_t panel, uint8_t* to) {
    const size_t width = byte_loops().panel_columns;
    for (size_t k = 0; k < b_.inner(); k += 2, to += 2 * width) {
      const uint8_t* const even = column(panel, k, even_);
      const uint8_t* const odd = k + 1 < b_.inner() ? column(panel, k + 1, odd_) : padding();
      byte_loops().interleave(even, odd, flip_, to);
    }
  }

 private:
  // What the panel's positions see of number k: where it lies, or gathered.
  const uint8_t* column(size_t panel, size_t k, uint8_t* to) const {
    const IntegerConv& c = b_.conv;
    const size_t width = byte_loops().panel_columns;
    const size_t t = k % c.taps;
    const uint8_t* const plane = x_ + k / c.taps * c.plane;
    const int64_t start = b_.starts[panel * c.taps + t];
    if (start != scattered) return plane + start;
    const size_t first = panel * width;
    const size_t count = std::min(width, c.positions - first);
    for (size_t j = 0; j < count; ++j) {
      const int64_t offset = c.offsets[(first + j) * c.taps + t];
      to[j] = offset < 0 ? pad_ : plane[offset];
    }
    std::fill(to + count, to + width, pad_);
    return to;
  }

  const uint8_t* padding() {
    std::fill_n(odd_, byte_loops().panel_columns, pad_);
    return odd_;
  }

  static constexpr size_t most_columns = 128;
  const ByteConv& b_;
  const uint8_t* x_;
  uint8_t pad_;
  uint8_t flip_;
  uint8_t even_[most_columns];
  uint8_t odd_[most_columns];
};

void run_block(const ByteConv& b, const KernelArgs& args, const IntegerConvBlock& block) {
  const IntegerConv& c = b.conv;
  const ByteLoops& loops = byte_loops();
  const size_t width = loops.panel_columns;
  const size_t begin = block.first / width;
  const size_t end = (block.first + block.count + width - 1) / width;
  const size_t panel_bytes = 2 * width * b.pairs();
  const bool has_zero = c.at.x_zero < args.inputs.size() && args.inputs[c.at.x_zero].buffer != nullptr;
  const uint8_t pad = has_zero ? *input_as<uint8_t>(args, c.at.x_zero) : uint8_t{0};
  const uint8_t flip = c.x.is_signed() ? uint8_t{0} : sign_bit;
  auto* const panels = reinterpret_cast<uint8_t*>(scratch(0, ((end - begin) * panel_bytes + 3) / 4));
  const size_t plane = (block.item * c.group + block.group) * c.channels * c.plane;
  PanelPacker packer(b, input_as<uint8_t>(args, c.at.x) + plane, pad, flip);
  for (size_t panel = begin; panel < end; ++panel) packer.pack(panel, panels + (panel - begin) * panel_bytes);
  const size_t stride = (end - begin) * width;
  auto* const sums = reinterpret_cast<int32_t*>(scratch(1, c.outputs * stride));
  const size_t row = block.group * c.outputs;
  const ByteProduct product{c.outputs, b.pairs(), c.weights.data() + row * c.depth, c.depth,
                            reinterpret_cast<const int8_t*>(panels)};
  loops.multiply(product, 0, end - begin, sums, stride);
  const auto zero = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(pad ^ flip)));
  for (size_t m = 0; zero != 0 && m < c.outputs; ++m) {
    const uint32_t less = zero * static_cast<uint32_t>(b.row_sums[row + m]);
    for (size_t j = 0; j < block.count; ++j)
      sums[m * stride + j] = static_cast<int32_t>(static_cast<uint32_t>(sums[m * stride + j]) - less);
  }
  finish_integer_conv(c, args, block, sums, stride);
}

void run_byte_conv(const Machine& machine, const ByteConv& b, const KernelArgs& args) {
  constexpr size_t most_bytes = size_t{1} << 16;  // Of panels that are multiplied at once: they stay in L2, and so do their sums.
  constexpr size_t most_sums = size_t{1} << 14;
  const IntegerConv& c = b.conv;
  const size_t width = byte_loops().panel_columns;
  const size_t most = std::min(most_bytes / (2 * width * b.pairs()), most_sums / (width * c.outputs));
  const size_t share = (b.panels() + machine.threads() - 1) / machine.threads();
  const size_t positions = width * std::clamp<size_t>(most, 1, share);
  const size_t blocks = (c.positions + positions - 1) / positions;
  machine.pool().each(static_cast<size_t>(c.convolution.batch) * c.group * blocks, [&](size_t i) {
    const size_t first = i % blocks * positions;
    run_block(b, args, {i / blocks / c.group, i / blocks % c.group, first, std::min(positions, c.positions - first)});
  });
}

Prepared prepare_byte_conv(const OpCall& call, Device& device) {
  const auto conv = std::make_shared<const ByteConv>(byte_conv_of(call));  // Shared by the copies of the function below.
  std::vector<bool> unused(call.input_count(), false);
  unused[conv->conv.at.w] = true;
  return {.run = [&machine = machine_of(device), conv](Stream&, const KernelArgs& args) { run_byte_conv(machine, *conv, args); },
          .unused_inputs = unused};
}

}  // namespace

Kernel integer_conv_by_bytes(std::string name) {
  return {.name = std::move(name), .supports = supports_bytes, .prepare = prepare_byte_conv};
}

}  // namespace unmoor::cpu
