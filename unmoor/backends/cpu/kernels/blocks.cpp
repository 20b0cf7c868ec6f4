#include <algorithm>
#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/ops/convolve.h"

namespace unmoor::cpu {

namespace {

Support takes_elements(const OpCall& call) {
  return element_bytes(call.input(0).dtype) != 0 ? yes() : no(Reason::DType, call.input(0).dtype);
}

// A dense tensor of these axes whose axes come out in the order of the permutation.
StridedCopy permuted(const std::vector<size_t>& dims, const std::vector<size_t>& permutation) {
  std::vector<int64_t> steps(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * static_cast<int64_t>(std::max<size_t>(dims[i], 1));
  StridedCopy copy{.dims = {}, .in = {}, .out = std::vector<int64_t>(dims.size(), 1)};
  for (const size_t axis : permutation) {
    copy.dims.push_back(dims[axis]);
    copy.in.push_back(steps[axis]);
  }
  for (size_t i = dims.size(); i-- > 1;) copy.out[i - 1] = copy.out[i] * static_cast<int64_t>(std::max<size_t>(copy.dims[i], 1));
  return copy;
}

Prepared prepare_space(const OpCall& call, Device& device) {
  const bool to_space = call.node.op == "DepthToSpace";
  const bool depth_first = call.text("mode", "DCR") == "DCR";
  const auto block = static_cast<size_t>(call.integer("blocksize", 1));
  const auto dim = [&](size_t axis) { return static_cast<size_t>((to_space ? call.input(0) : call.output(0)).shape[axis]); };
  const auto channels = static_cast<size_t>((to_space ? call.output(0) : call.input(0)).shape[1]);
  StridedCopy copy;
  if (to_space) {
    copy = depth_first ? permuted({dim(0), block, block, channels, dim(2), dim(3)}, {0, 3, 4, 1, 5, 2})
                       : permuted({dim(0), channels, block, block, dim(2), dim(3)}, {0, 1, 4, 2, 5, 3});
  } else {
    copy = permuted({dim(0), channels, dim(2), block, dim(3), block},
                    depth_first ? std::vector<size_t>{0, 3, 5, 1, 2, 4} : std::vector<size_t>{0, 1, 3, 5, 2, 4});
  }
  copy.element_bytes = element_bytes(call.input(0).dtype);
  return {.run = [copy = PreparedCopy(machine_of(device), copy)](Stream&, const KernelArgs& args) {
    copy.run(args.inputs[0].host(), args.outputs[0].host());
  }};
}

// The box that input and output share, within zeros. Halves go toward zero.
Prepared prepare_center(const OpCall& call, Device& device) {
  const Shape& in = call.input(0).shape;
  const Shape& out = call.output(0).shape;
  StridedCopy copy{.element_bytes = element_bytes(call.input(0).dtype), .in = dense_steps(in), .out = dense_steps(out)};
  bool grows = false;
  for (size_t axis = 0; axis < in.rank(); ++axis) {
    const int64_t skipped = (in[axis] - out[axis]) / 2;
    copy.dims.push_back(static_cast<size_t>(std::min(in[axis], out[axis])));
    if (copy.dims.back() > 0)
      (skipped > 0 ? copy.in_start : copy.out_start) +=
          static_cast<size_t>(skipped > 0 ? skipped * copy.in[axis] : -skipped * copy.out[axis]);
    grows = grows || out[axis] > in[axis];
  }
  return {.run = [copy = PreparedCopy(machine_of(device), copy), bytes = grows ? call.output(0).bytes() : 0](
                     Stream&, const KernelArgs& args) {
    if (bytes != 0) std::memset(args.outputs[0].host(), 0, bytes);
    copy.run(args.inputs[0].host(), args.outputs[0].host());
  }};
}

// The first steps of each sequence in reverse.
struct Reversal {
  std::string who;
  size_t steps, batch, run;  // run: bytes of one step of one item.
  bool time_first;
};

Prepared prepare_reversal(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const auto time = static_cast<size_t>(call.integer("time_axis", 0));
  const Reversal reversal{title(call), static_cast<size_t>(shape[time]), static_cast<size_t>(shape[1 - time]),
                          static_cast<size_t>(shape.elements(2, shape.rank())) * element_bytes(call.input(0).dtype), time == 0};
  return {.run = [&machine = machine_of(device), r = reversal](Stream&, const KernelArgs& args) {
    const auto* const lengths = input_as<int64_t>(args, 1);
    for (size_t b = 0; b < r.batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > static_cast<int64_t>(r.steps)) {
        fail(ErrorKind::InvalidArgument, r.who, ": a length of ", lengths[b], " for ", r.steps, " steps");
      }
    }
    if (r.run == 0) return;
    machine.pool().ranges(r.steps * r.batch, 65536 / (r.run + 16) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t step = r.time_first ? i / r.batch : i % r.steps;
        const size_t item = r.time_first ? i % r.batch : i / r.steps;
        const auto length = static_cast<size_t>(lengths[item]);
        const size_t other = step < length ? length - 1 - step : step;
        const size_t from = r.time_first ? other * r.batch + item : item * r.steps + other;
        std::memcpy(args.outputs[0].host() + i * r.run, args.inputs[0].host() + from * r.run, r.run);
      }
    });
  }};
}

Prepared prepare_bits(const OpCall& call, Device&) {
  return {.run = [bytes = call.output(0).bytes()](Stream&, const KernelArgs& args) {
    std::byte* const y = args.outputs[0].host();
    if (bytes != 0 && y != args.inputs[0].host()) std::memcpy(y, args.inputs[0].host(), bytes);
  }};
}

// Col2Im: blocks added where they were. Where the blocks' taps lie is worked out once.
struct Fold {
  Window window;
  size_t planes, size, taps, blocks;
};

Support supports_fold(const OpCall& call) {
  return all_of(
      input_is(call, 0, {DType::F32}), is_constant(call, 1), is_constant(call, 2),
      call.input(0).shape.elements() == 0 || call.output(0).shape.elements() == 0 ? no(Reason::Size, "an empty input") : yes());
}

Prepared prepare_fold(const OpCall& call, Device& device) {
  const auto numbers = [&](size_t i) {
    const auto values = call.constant(i)->span<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  Fold fold{unmoor::window_of(call, numbers(1), numbers(2)), 0, 0, 0, 0};
  fold.planes = static_cast<size_t>(call.output(0).shape.elements(0, 2));
  fold.size = static_cast<size_t>(Shape(fold.window.input).elements());
  fold.taps = static_cast<size_t>(Shape(fold.window.kernel).elements());
  fold.blocks = static_cast<size_t>(Shape(fold.window.output).elements());
  return {.run = [&machine = machine_of(device), fold](Stream&, const KernelArgs& args) {
    const float* const x = input_as(args, 0);
    float* const y = output_as(args, 0);
    machine.pool().ranges(fold.planes, 32768 / (fold.taps * fold.blocks + 1) + 1, [&](size_t begin, size_t end) {
      TapOffsets offsets(fold.window, 0, static_cast<int64_t>(fold.blocks));
      std::vector<int64_t> index(fold.window.rank());
      std::fill(y + begin * fold.size, y + end * fold.size, 0.0F);
      for (size_t tap = 0; tap < fold.taps; ++tap, advance(index, fold.window.kernel)) {
        const std::vector<int64_t>& to = offsets.at(index);
        for (size_t plane = begin; plane < end; ++plane) {
          const float* const column = x + (plane * fold.taps + tap) * fold.blocks;
          float* const image = y + plane * fold.size;
          for (size_t i = 0; i < fold.blocks; ++i) {
            if (to[i] >= 0) image[to[i]] += column[i];
          }
        }
      }
    });
  }};
}

// MaxUnpool: the places count in the shape that kernel, strides and pads give, which is the corner of the output.
struct Unpool {
  std::string who;
  Shape counted;
  std::vector<int64_t> steps;  // Of the output.
  size_t count, bytes;
};

Prepared prepare_unpool(const OpCall& call, Device&) {
  const Shape& x = call.input(0).shape;
  const std::vector<int64_t> kernel = call.integers("kernel_shape");
  const auto strides = per_axis(call, "strides", kernel.size(), 1, 1);
  const auto pads = per_axis(call, "pads", 2 * kernel.size(), 0, 0);
  Shape counted{x[0], x[1]};
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    counted.push_back((x[axis + 2] - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + kernel.size()]);
  }
  Unpool unpool{title(call), counted, dense_steps(call.output(0).shape), static_cast<size_t>(x.elements()),
                call.output(0).bytes()};
  return {.run = [unpool = std::move(unpool), limit = counted.elements(), same = counted == call.output(0).shape](
                     Stream&, const KernelArgs& args) {
    const float* const values = input_as(args, 0);
    const auto* const places = input_as<int64_t>(args, 1);
    float* const y = output_as(args, 0);
    if (unpool.bytes != 0) std::memset(y, 0, unpool.bytes);
    for (size_t i = 0; i < unpool.count; ++i) {
      if (places[i] < 0 || places[i] >= limit) {
        fail(ErrorKind::InvalidArgument, unpool.who, ": place ", places[i], " lies outside of ", unpool.counted);
      }
      int64_t to = places[i];
      if (!same) {
        int64_t rest = places[i];
        to = 0;
        for (size_t axis = unpool.counted.rank(); axis-- > 0;) {
          to += rest % unpool.counted[axis] * unpool.steps[axis];
          rest /= unpool.counted[axis];
        }
      }
      y[to] = values[i];
    }
  }};
}

}  // namespace

void add_block_kernels(KernelTable& table) {
  table.add("DepthToSpace", {.name = "cpu.depthtospace.blocks", .supports = takes_elements, .prepare = prepare_space});
  table.add("SpaceToDepth", {.name = "cpu.spacetodepth.blocks", .supports = takes_elements, .prepare = prepare_space});
  table.add("CenterCropPad", {.name = "cpu.centercroppad.box", .supports = takes_elements, .prepare = prepare_center});
  table.add("ReverseSequence", {.name = "cpu.reversesequence.runs", .supports = takes_elements, .prepare = prepare_reversal});
  table.add("BitCast", {.name = "cpu.bitcast.copy", .supports = takes_elements, .prepare = prepare_bits, .in_place = true});
  table.add("Col2Im", {.name = "cpu.col2im.planes", .supports = supports_fold, .prepare = prepare_fold});
  table.add("MaxUnpool", {.name = "cpu.maxunpool.places",
                          .supports = [](const OpCall& call) { return input_is(call, 0, {DType::F32}); },
                          .prepare = prepare_unpool});
}

}  // namespace unmoor::cpu
