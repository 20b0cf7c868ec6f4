#include "unmoor/backends/cpu/kernels/integer_conv.h"

#include <algorithm>
#include <memory>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"

namespace unmoor::cpu {

namespace {

constexpr int64_t most_offsets = int64_t{1} << 24;

}  // namespace

IntegerConvPlaces integer_conv_places(const OpCall& call) {
  return call.node.op == "ConvInteger" ? IntegerConvPlaces{0, 2, 1, 3, false} : IntegerConvPlaces{0, 2, 3, 5, true};
}

Support supports_integer_conv(const OpCall& call) {
  const IntegerConvPlaces at = integer_conv_places(call);
  for (const size_t i : {at.x, at.x_zero, at.w, at.w_zero}) {
    if (Support types = input_is(call, i, {DType::U8, DType::I8}); !types) return types;
  }
  if (call.constant(at.w) == nullptr || (call.has(at.w_zero) && call.constant(at.w_zero) == nullptr))
    return no(Reason::Dynamic, "weights are not constant");
  if (call.output(0).shape.elements() == 0 || call.input(at.x).shape.elements() == 0 || call.input(at.w).shape.elements() == 0) {
    return no(Reason::Size, "an empty product");
  }
  const Convolution c = convolution_of(call, canonical(call, call.input(at.x).shape), call.input(at.w).shape);
  const Shape kernel(c.window.kernel);
  const Shape output(c.window.output);
  if (kernel.elements() > most_offsets || output.elements() > most_offsets ||
      kernel.elements() * output.elements() > most_offsets) {
    return no(Reason::Size, "a window of ", kernel, " at ", output, " places");
  }
  if (!at.quantized) return yes();
  const int64_t depth = call.input(at.w).shape.elements(1, call.input(at.w).shape.rank());
  if (depth > static_cast<int64_t>(most_exact_depth)) return no(Reason::Size, "sums of ", depth, " products");
  return all_of(input_is(call, 1, {DType::F32}), input_is(call, 4, {DType::F32}), input_is(call, 6, {DType::F32}),
                input_is(call, 7, {DType::U8, DType::I8}));
}

namespace {

// The weights' rows in the order in which columns of the input are read: taps inside of channels, or channels inside of taps.
std::vector<int16_t> packed_weights(const OpCall& call, const IntegerConv& c) {
  const size_t rows = c.group * c.outputs;
  const Bytes w = Bytes(call.input(c.at.w).dtype).of(*call.constant(c.at.w));
  std::vector<int16_t> packed(rows * c.depth, 0);
  for (size_t m = 0; m < rows; ++m) {
    int16_t zero = 0;
    if (call.has(c.at.w_zero)) {
      const Tensor& zeros = *call.constant(c.at.w_zero);
      zero = Bytes(zeros.dtype()).of(zeros).at(zeros.elements() == 1 ? 0 : m);
    }
    for (size_t i = 0; i < c.channels; ++i) {
      for (size_t t = 0; t < c.taps; ++t) {
        packed[m * c.depth + (c.last ? t * c.channels + i : i * c.taps + t)] =
            static_cast<int16_t>(w.at((m * c.channels + i) * c.taps + t) - zero);
      }
    }
  }
  return packed;
}

}  // namespace

IntegerConv integer_conv_of(const OpCall& call, size_t (*depth)(size_t)) {
  const IntegerConvPlaces at = integer_conv_places(call);
  const auto size = [](const std::vector<int64_t>& dims) { return static_cast<size_t>(Shape(dims).elements()); };
  IntegerConv c{.at = at,
                .convolution = convolution_of(call, canonical(call, call.input(at.x).shape), call.input(at.w).shape),
                .x = Bytes(call.input(at.x).dtype),
                .x_zero = Bytes(call.has(at.x_zero) ? call.input(at.x_zero).dtype : DType::U8),
                .y = Bytes(call.output(0).dtype),
                .offsets = {},
                .weights = {}};
  c.group = static_cast<size_t>(c.convolution.group);
  c.channels = static_cast<size_t>(c.convolution.channels) / c.group;
  c.outputs = static_cast<size_t>(c.convolution.outputs) / c.group;
  c.taps = size(c.convolution.window.kernel);
  c.plane = size(c.convolution.window.input);
  c.positions = size(c.convolution.window.output);
  c.depth = depth(c.channels * c.taps);
  c.last = channels_last(call);
  c.scales = at.quantized ? static_cast<size_t>(call.input(4).shape.elements()) : 0;
  c.offsets.resize(c.positions * c.taps);
  TapOffsets offsets(c.convolution.window, 0, static_cast<int64_t>(c.positions));
  std::vector<int64_t> index(c.convolution.window.rank());
  for (size_t t = 0; t < c.taps; ++t, advance(index, c.convolution.window.kernel)) {
    const std::vector<int64_t>& from = offsets.at(index);
    for (size_t i = 0; i < c.positions; ++i) c.offsets[i * c.taps + t] = from[i];
  }
  c.weights = packed_weights(call, c);
  return c;
}

namespace {

// What position `position` of group g of an item sees, as a row of int16.
template <class T>
void gather_column(const IntegerConv& c, const T* x, int16_t zero, size_t item, size_t g, size_t position, int16_t* to) {
  const int64_t* const offsets = c.offsets.data() + position * c.taps;
  const T* const first = x + item * c.group * c.channels * c.plane;
  std::fill(to + c.channels * c.taps, to + c.depth, int16_t{0});
  if (c.last) {
    for (size_t t = 0; t < c.taps; ++t) {
      int16_t* const row = to + t * c.channels;
      const T* const from =
          first + std::max<int64_t>(offsets[t], 0) * static_cast<int64_t>(c.group * c.channels) + g * c.channels;
      if (offsets[t] < 0) std::fill_n(row, c.channels, int16_t{0});
      for (size_t i = 0; offsets[t] >= 0 && i < c.channels; ++i) row[i] = static_cast<int16_t>(from[i] - zero);
    }
    return;
  }
  const bool inside = std::all_of(offsets, offsets + c.taps, [](int64_t offset) { return offset >= 0; });
  const T* plane = first + g * c.channels * c.plane;
  for (size_t i = 0; i < c.channels; ++i, plane += c.plane, to += c.taps) {
    if (inside) {
      for (size_t t = 0; t < c.taps; ++t) to[t] = static_cast<int16_t>(plane[offsets[t]] - zero);
    } else {
      for (size_t t = 0; t < c.taps; ++t) to[t] = offsets[t] < 0 ? int16_t{0} : static_cast<int16_t>(plane[offsets[t]] - zero);
    }
  }
}

}  // namespace

void finish_integer_conv(const IntegerConv& c, const KernelArgs& args, const IntegerConvBlock& block, const int32_t* sums,
                         size_t stride) {
  const auto* const bias = c.at.quantized ? input_as<int32_t>(args, 8) : nullptr;
  const double y_scale = c.at.quantized ? static_cast<double>(*input_as(args, 6)) : 1;
  const double x_scale = c.at.quantized ? static_cast<double>(*input_as(args, 1)) : 1;
  const double zero = c.at.quantized ? c.y.of(args, 7).at(0) : 0;
  const size_t all = c.group * c.outputs;
  for (size_t m = 0; m < c.outputs; ++m) {
    const size_t channel = block.group * c.outputs + m;
    const double factor = c.at.quantized ? x_scale * static_cast<double>(input_as(args, 4)[c.scales == 1 ? 0 : channel]) : 1;
    const double more = bias == nullptr ? 0 : bias[channel];
    const size_t step = c.last ? all : 1;
    const size_t to = c.last ? (block.item * c.positions + block.first) * all + channel
                             : (block.item * all + channel) * c.positions + block.first;
    const int32_t* const row = sums + m * stride;
    if (c.at.quantized) {
      c.y.put_row(args.outputs[0].host(), to, step, row, block.count, {more, factor, y_scale, zero});
    } else {
      for (size_t i = 0; i < block.count; ++i) output_as<int32_t>(args, 0)[to + i * step] = row[i];
    }
  }
}

namespace {

void run_conv(const Machine& machine, const IntegerConv& c, const KernelArgs& args) {
  constexpr size_t most = 16;  // Positions that are gathered and multiplied at once.
  const size_t blocks = (c.positions + most - 1) / most;
  const Bytes zeros = c.x_zero.of(args, c.at.x_zero);
  const bool centred = c.at.x_zero < args.inputs.size() && args.inputs[c.at.x_zero].buffer != nullptr;
  const int16_t zero = centred ? zeros.at(0) : int16_t{0};
  machine.pool().ranges(
      static_cast<size_t>(c.convolution.batch) * c.group * blocks, 4096 / (c.depth * c.outputs + 1) + 1,
      [&](size_t begin, size_t end) {
        auto* const columns = reinterpret_cast<int16_t*>(scratch(0, most * c.depth / 2));
        auto* const sums = reinterpret_cast<int32_t*>(scratch(1, most * c.outputs));
        for (size_t i = begin; i < end; ++i) {
          const size_t first = i % blocks * most;
          const IntegerConvBlock block{i / blocks / c.group, i / blocks % c.group, first, std::min(most, c.positions - first)};
          for (size_t j = 0; j < block.count; ++j) {
            int16_t* const to = columns + j * c.depth;
            if (c.x.is_signed()) {
              gather_column(c, input_as<int8_t>(args, c.at.x), zero, block.item, block.group, first + j, to);
            } else {
              gather_column(c, input_as<uint8_t>(args, c.at.x), zero, block.item, block.group, first + j, to);
            }
          }
          integer_loops().multiply({c.weights.data() + block.group * c.outputs * c.depth, columns, c.outputs, block.count,
                                    c.depth, sums, block.count});
          finish_integer_conv(c, args, block, sums, block.count);
        }
      });
}

Prepared prepare_conv(const OpCall& call, Device& device) {
  const auto conv =
      std::make_shared<const IntegerConv>(integer_conv_of(call, padded_depth));  // Shared by the copies of the function below.
  std::vector<bool> unused(call.input_count(), false);
  unused[conv->at.w] = true;
  return {.run = [&machine = machine_of(device), conv](Stream&, const KernelArgs& args) { run_conv(machine, *conv, args); },
          .unused_inputs = unused};
}

}  // namespace

void add_integer_conv_kernels(KernelTable& table) {
  table.add("ConvInteger", integer_conv_by_bytes("cpu.convinteger.bytes"));
  table.add("QLinearConv", integer_conv_by_bytes("cpu.qlinearconv.bytes"));
  table.add("ConvInteger", {.name = "cpu.convinteger.columns", .supports = supports_integer_conv, .prepare = prepare_conv});
  table.add("QLinearConv", {.name = "cpu.qlinearconv.columns", .supports = supports_integer_conv, .prepare = prepare_conv});
}

}  // namespace unmoor::cpu
