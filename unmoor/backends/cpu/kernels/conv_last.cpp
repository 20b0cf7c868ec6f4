#include <algorithm>

#include "unmoor/backends/cpu/kernels/activation.h"
#include "unmoor/backends/cpu/kernels/conv.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/gemm.h"

namespace unmoor::cpu {

namespace {

constexpr size_t page_floats = 1024;  // Rows so far apart share their places in the caches.
constexpr size_t apart = 16;          // What gathered rows lie further apart, for that reason.

// A convolution of channels-last images as a matrix product: output pixels as rows, which are gathered from the input where the kernel is
// larger than a pixel, times packed weights [taps * channels, output channels].
class LastConvolution {
 public:
  LastConvolution(const Machine& machine, const Window& window, size_t groups, size_t out_channels, const Tensor& weights, Epilogue epilogue);

  size_t workspace_bytes() const { return shared_ && !in_place_ ? groups_ * rows() * row_step() * sizeof(float) : 0; }
  void run(const ConvOperands& operands) const;

 private:
  size_t rows() const { return w_.batch * w_.pixels(); }
  size_t group_channels() const { return w_.channels / groups_; }
  size_t out_group() const { return out_channels_ / groups_; }
  size_t depth() const { return group_channels() * w_.taps(); }
  size_t row_step() const { return in_place_ ? w_.channels : depth() + apart; }
  size_t packed_b() const { return loops_.packed_b(out_group(), depth()); }
  void choose();
  void pack_weights(const Tensor& weights);
  void gather(const float* x, size_t group, size_t begin, size_t end, float* to) const;
  Product product(const ConvOperands& operands, size_t group, size_t row, size_t count, const float* a) const;
  void run_local(const ConvOperands& operands) const;
  void run_shared(const ConvOperands& operands) const;

  const Machine& machine_;
  const GemmLoops& loops_;
  Window w_;
  size_t groups_;
  size_t out_channels_;
  Epilogue epilogue_;
  Packed weights_;
  bool in_place_;   // The input's pixels are the rows.
  bool shared_;     // All rows are gathered first, then threads share panels of the weights too.
  size_t together_;  // Rows of a piece of work.
};

LastConvolution::LastConvolution(const Machine& machine, const Window& window, size_t groups, size_t out_channels, const Tensor& weights,
                                 Epilogue epilogue)
    : machine_(machine), loops_(gemm_loops()), w_(window), groups_(groups), out_channels_(out_channels), epilogue_(epilogue) {
  const bool plain = w_.taps() == 1 && w_.stride_h == 1 && w_.stride_w == 1 && w_.pad_top == 0 && w_.pad_left == 0 && w_.out_h == w_.h && w_.out_w == w_.w;
  in_place_ = plain && w_.channels % page_floats != 0;
  choose();
  pack_weights(weights);
}

void LastConvolution::choose() {
  const size_t tile = loops_.tile_rows;
  const size_t l2 = machine_.l2_bytes() / sizeof(float);
  const size_t threads = machine_.threads();
  together_ = std::clamp<size_t>(l2 / 2 / std::max<size_t>(depth(), 1) / tile * tile, 4 * tile, 256 * tile);
  if (threads > 1) {
    const size_t fair = (rows() * groups_ / (4 * threads) + tile - 1) / tile * tile;
    together_ = std::min(together_, std::max(fair, 4 * tile));
  }
  const size_t blocks = (rows() + together_ - 1) / together_;
  const bool large_weights = depth() * out_group() > l2 / 2 && rows() * depth() <= 4 * l2;
  shared_ = large_weights || (threads > 1 && blocks * groups_ < 2 * threads);
  if (shared_) together_ = std::max<size_t>(l2 / 2 / 256 / tile * tile, 4 * tile);
}

void LastConvolution::pack_weights(const Tensor& weights) {
  const size_t taps = w_.taps();
  const size_t n = out_group();
  const std::string kind = cat("channels last, panels of ", loops_.panel_columns, "/", loops_.lanes, " [", groups_, ",", n, ",", group_channels(), ",", taps, "]");
  weights_ = machine_.weights().get(weights, kind, groups_ * packed_b(), [&](float* to) {
    machine_.pool().each(groups_, [&](size_t g) {
      const std::vector<float> rows = weights_by_tap(weights, g, n, group_channels(), taps);
      loops_.pack_b({rows.data(), n, 1}, n, depth(), 0, loops_.panels(n), to + g * packed_b());
    });
  });
}

void LastConvolution::gather(const float* x, size_t group, size_t begin, size_t end, float* to) const {
  gather_pixels(w_, groups_, x, group, {begin, end}, row_step(), to);
}

Product LastConvolution::product(const ConvOperands& operands, size_t group, size_t row, size_t count, const float* a) const {
  const size_t at = row * out_channels_ + group * out_group();
  Epilogue epilogue = epilogue_;
  if (operands.bias != nullptr) epilogue.column_bias = operands.bias + group * out_group();
  if (operands.residual != nullptr) epilogue.residual = operands.residual + at;
  const bool from_memory = depth() * out_group() * sizeof(float) > machine_.l2_bytes() / 2;
  return {.m = count, .n = out_group(), .k = depth(), .a = a, .b = floats_of(weights_) + group * packed_b(), .c = operands.y + at,
          .c_stride = out_channels_, .epilogue = epilogue, .prefetch_b = from_memory, .a_stride = row_step()};
}

void LastConvolution::run(const ConvOperands& operands) const {
  if (rows() * out_group() == 0) {
    return;
  }
  if (shared_) {
    run_shared(operands);
  } else {
    run_local(operands);
  }
}

void LastConvolution::run_local(const ConvOperands& operands) const {
  const size_t blocks = (rows() + together_ - 1) / together_;
  const size_t panels = loops_.panels(out_group());
  machine_.pool().each(groups_ * blocks, [&](size_t i) {
    const size_t group = i / blocks;
    const size_t row = i % blocks * together_;
    const size_t count = std::min(together_, rows() - row);
    const float* a = operands.x + row * w_.channels + group * group_channels();
    if (!in_place_) {
      float* const gathered = scratch(0, count * row_step());
      gather(operands.x, group, row, row + count, gathered);
      a = gathered;
    }
    loops_.multiply(product(operands, group, row, count, a), {0, count, 0, panels});
  });
}

void LastConvolution::run_shared(const ConvOperands& operands) const {
  constexpr size_t gathered_at_once = 8;
  if (!in_place_) {
    machine_.pool().ranges(groups_ * rows(), gathered_at_once, [&](size_t begin, size_t end) {
      for (size_t at = begin; at < end;) {
        const size_t group = at / rows();
        const size_t stop = std::min(end, (group + 1) * rows());
        gather(operands.x, group, at - group * rows(), stop - group * rows(), operands.workspace + at * row_step());
        at = stop;
      }
    });
  }
  const size_t panels = loops_.panels(out_group());
  const size_t blocks = (rows() + together_ - 1) / together_;
  const size_t tiles = (rows() + loops_.tile_rows - 1) / loops_.tile_rows;
  const size_t wanted = machine_.threads() == 1 ? 1 : (4 * machine_.threads() + groups_ * panels - 1) / (groups_ * panels);
  const size_t parts = std::min(std::max(blocks, wanted), tiles);
  machine_.pool().each(groups_ * parts * panels, [&](size_t i) {
    const size_t group = i / (parts * panels);
    const size_t part = i / panels % parts;
    const size_t panel = i % panels;
    const float* const a = in_place_ ? operands.x + group * group_channels() : operands.workspace + group * rows() * row_step();
    const size_t tile = loops_.tile_rows;
    loops_.multiply(product(operands, group, 0, rows(), a),
                    {tiles * part / parts * tile, std::min(tiles * (part + 1) / parts * tile, rows()), panel, panel + 1});
  });
}

Support supports_last(const OpCall& call) {
  if (Support takes = all_of(takes_window_last(call), takes_convolution(call)); !takes) {
    return takes;
  }
  constexpr int64_t few_outputs = 8;  // Products with fewer columns waste most of a vector.
  const int64_t groups = call.integer("group", 1);
  const int64_t outputs = call.input(1).shape[0] / groups;
  return groups == 1 || outputs >= few_outputs ? yes() : no(Reason::Size, "groups of ", outputs, " output channels, not ", few_outputs);
}

Prepared prepare_last(const OpCall& call, Device& device) {
  Epilogue epilogue;
  set_activation(call, epilogue);
  const auto groups = static_cast<size_t>(call.integer("group", 1));
  const auto outputs = static_cast<size_t>(call.input(1).shape[0]);
  return prepared_convolution(call, std::make_shared<const LastConvolution>(
                                        machine_of(device), window_of_weights(call), groups, outputs, *call.constant(1), epilogue));
}

}  // namespace

void add_last_conv_kernels(KernelTable& table) {
  for (const char* op : {"Conv", "unmoor:FusedConv"}) {
    table.add(op, {.name = "cpu.conv.last", .supports = supports_last, .prepare = prepare_last});
  }
}

}  // namespace unmoor::cpu
