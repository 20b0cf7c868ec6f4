#include <algorithm>
#include <numeric>

#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/backends/gpu/move.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::gpu {

Support moves_bytes(const OpCall& call, size_t input) {
  const auto dtype = call.input(input).dtype;
  const auto bits = bits_of(dtype);
  if (bits == 8 || bits == 16 || bits == 32 || bits == 64) return yes();
  return no(Reason::DType, "input ", input, " is ", dtype);
}

Support walks(const Walk& walk) {
  const auto axes = collapsed(walk).rank();
  return axes <= most_axes ? yes() : no(Reason::Rank, axes, " axes, more than ", most_axes);
}

Launch move(const Move& what) {
  auto walk = collapsed(what.walk);
  const size_t rank = walk.rank() <= 3 ? 3 : most_axes;
  walk = padded(std::move(walk), rank);
  const auto bytes = what.element_bytes;
  Launch launch("move", unmoor_gpu_text::unmoor_backends_gpu_kernels_move_inc,
                {cat("TYPE ", element_name(integer_of_bytes(bytes))), cat("RANK ", walk.rank())});
  launch.input_bytes(what.input, bytes).output_bytes(what.output, bytes).integer(what.input_first).integer(what.output_first);
  launch.integers(walk.dims).integers(walk.strides[0]).integers(walk.strides[1]).integer(walk.elements()).elements(walk.elements());
  return launch;
}

Prepared copied(const OpCall& call) {
  Prepared prepared;
  prepared.run = [bytes = call.output(0).bytes()](Stream& stream, const KernelArgs& arguments) {
    const auto& from = arguments.inputs[0];
    const auto& to = arguments.outputs[0];
    if (from.buffer != to.buffer || from.offset != to.offset) stream.copy(*to.buffer, to.offset, *from.buffer, from.offset, bytes);
  };
  prepared.unused_inputs.assign(call.input_count(), true);
  prepared.unused_inputs[0] = false;
  return prepared;
}

namespace {

size_t element_bytes(const OpCall& call, size_t input) { return bytes_of(call.input(input).dtype, 1); }

// One input to one output along a walk that `walk_of` finds.
void add_move(Kernels& kernels, const std::string& op, const std::string& kernel, Move (*move_of)(const OpCall&),
              Support (*accepts)(const OpCall&)) {
  const auto supports = [move_of, accepts](const OpCall& call) {
    if (auto answer = moves_bytes(call, 0); !answer) return answer;
    if (auto answer = accepts(call); !answer) return answer;
    return walks(move_of(call).walk);
  };
  const auto prepare = [move_of](const OpCall& call, GpuDevice& device) { return run_in_order(call, device, {move(move_of(call))}); };
  kernels.add(op, kernel, supports, prepare);
}

Support anything(const OpCall&) { return yes(); }

Move transposed(const OpCall& call) {
  const auto& shape = call.input(0).shape;
  const auto strides = shape.strides();
  std::vector<int64_t> backwards(shape.rank());
  for (size_t i = 0; i < shape.rank(); ++i) backwards[i] = static_cast<int64_t>(shape.rank() - 1 - i);
  const auto permutation = call.integers("perm", backwards);
  Walk walk{call.output(0).shape.dims(), {{}, call.output(0).shape.strides()}};
  for (const auto axis : permutation) walk.strides[0].push_back(strides[shape.axis(axis)]);
  return {.walk = walk, .element_bytes = element_bytes(call, 0)};
}

Move expanded_move(const OpCall& call) {
  const auto& out = call.output(0).shape;
  return {.walk = {out.dims(), {broadcast_strides(call.input(0).shape, out), out.strides()}}, .element_bytes = element_bytes(call, 0)};
}

// Each axis becomes two: the repetitions, then the elements.
Move tiled(const OpCall& call) {
  const auto& in = call.input(0).shape;
  const auto& out = call.output(0).shape;
  const auto in_strides = in.strides();
  const auto out_strides = out.strides();
  Walk walk{{}, {{}, {}}};
  for (size_t axis = 0; axis < in.rank(); ++axis) {
    const int64_t times = in[axis] == 0 ? 0 : out[axis] / in[axis];
    walk.dims.insert(walk.dims.end(), {times, in[axis]});
    walk.strides[0].insert(walk.strides[0].end(), {0, in_strides[axis]});
    walk.strides[1].insert(walk.strides[1].end(), {out_strides[axis] * in[axis], out_strides[axis]});
  }
  return {.walk = walk, .element_bytes = element_bytes(call, 0)};
}

Support slice_is_known(const OpCall& call) {
  for (size_t i = 1; i < 5; ++i) {
    if (call.has(i) && call.constant(i) == nullptr) return no(Reason::Dynamic, "input ", i, " is known only at run time");
  }
  return yes();
}

Move sliced(const OpCall& call) {
  const auto& in = call.input(0).shape;
  const auto& out = call.output(0).shape;
  const auto starts = integers(*call.constant(1));
  std::vector<int64_t> axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has(3)) axes = integers(*call.constant(3));
  std::vector<int64_t> steps(starts.size(), 1);
  if (call.has(4)) steps = integers(*call.constant(4));
  const auto strides = in.strides();
  Move what{.walk = {out.dims(), {strides, out.strides()}}, .element_bytes = element_bytes(call, 0)};
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto axis = in.axis(axes.at(i));
    const int64_t length = in[axis];
    const int64_t step = steps.at(i);
    int64_t start = starts[i] < 0 ? starts[i] + length : starts[i];
    start = std::clamp<int64_t>(start, 0, step < 0 ? std::max<int64_t>(length - 1, 0) : length);
    what.input_first += start * strides[axis];
    what.walk.strides[0][axis] = out[axis] <= 1 ? 0 : step * strides[axis];
  }
  return what;
}

// The blocks of DepthToSpace and SpaceToDepth: axes of the input in the order of the output.
Move depth_to_space(const OpCall& call) {
  const auto& in = call.input(0).shape;
  const int64_t block = call.integer("blocksize", 1);
  const int64_t depth = in[1] / (block * block);
  const bool columns_first = call.text("mode", "DCR") == "CRD";
  const auto split = columns_first ? Shape{in[0], depth, block, block, in[2], in[3]} : Shape{in[0], block, block, depth, in[2], in[3]};
  const auto s = split.strides();
  const size_t c = columns_first ? 1 : 3;
  const size_t b = columns_first ? 2 : 1;
  return {.walk = {{in[0], depth, in[2], block, in[3], block}, {{s[0], s[c], s[4], s[b], s[5], s[b + 1]}, Shape{in[0], depth, in[2], block, in[3], block}.strides()}},
          .element_bytes = element_bytes(call, 0)};
}

Move space_to_depth(const OpCall& call) {
  const auto& in = call.input(0).shape;
  const int64_t block = call.integer("blocksize", 1);
  const int64_t h = in[2] / block;
  const int64_t w = in[3] / block;
  const auto s = Shape{in[0], in[1], h, block, w, block}.strides();
  Walk walk{{in[0], block, block, in[1], h, w}, {{s[0], s[3], s[5], s[1], s[2], s[4]}}};
  if (call.text("mode", "DCR") == "CRD") walk = {{in[0], in[1], block, block, h, w}, {{s[0], s[1], s[3], s[5], s[2], s[4]}}};
  walk.strides.push_back(Shape(walk.dims).strides());
  return {.walk = walk, .element_bytes = element_bytes(call, 0)};
}

void add_concat(Kernels& kernels) {
  const auto supports = [](const OpCall& call) {
    for (size_t i = 0; i < call.input_count(); ++i) {
      if (auto answer = moves_bytes(call, i); !answer) return answer;
    }
    return yes();
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const auto& out = call.output(0).shape;
    const auto axis = out.axis(call.integer("axis", 0));
    const int64_t outer = out.elements(0, axis);
    const int64_t inner = out.elements(axis + 1, out.rank());
    std::vector<Launch> launches;
    int64_t at = 0;
    for (size_t i = 0; i < call.input_count(); ++i) {
      const int64_t length = call.input(i).shape[axis] * inner;
      launches.push_back(move({.walk = {{outer, length}, {{length, 1}, {out[axis] * inner, 1}}},
                               .element_bytes = element_bytes(call, 0), .input = i, .output_first = at}));
      at += length;
    }
    return run_in_order(call, device, std::move(launches));
  };
  kernels.add("Concat", "concat", supports, prepare);
}

void add_split(Kernels& kernels) {
  const auto supports = [](const OpCall& call) { return moves_bytes(call, 0); };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const auto& in = call.input(0).shape;
    const auto axis = in.axis(call.integer("axis", 0));
    const int64_t outer = in.elements(0, axis);
    const int64_t inner = in.elements(axis + 1, in.rank());
    std::vector<Launch> launches;
    int64_t at = 0;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const int64_t length = call.output(i).shape[axis] * inner;
      if (call.wants_output(i)) {
        launches.push_back(move({.walk = {{outer, length}, {{in[axis] * inner, 1}, {length, 1}}},
                                 .element_bytes = element_bytes(call, 0), .output = i, .input_first = at}));
      }
      at += length;
    }
    return run_in_order(call, device, std::move(launches));
  };
  kernels.add("Split", "split", supports, prepare);
}

void add_gather(Kernels& kernels) {
  const auto supports = [](const OpCall& call) {
    const auto indices = call.input(1).dtype;
    if (indices != DType::I32 && indices != DType::I64) return no(Reason::DType, "indices are ", indices);
    return moves_bytes(call, 0);
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const auto& in = call.input(0).shape;
    const auto axis = in.axis(call.integer("axis", 0));
    const auto bytes = element_bytes(call, 0);
    const int64_t count = call.output(0).shape.elements();
    Launch launch("gather", unmoor_gpu_text::unmoor_backends_gpu_kernels_gather_inc,
                  {cat("TYPE ", element_name(integer_of_bytes(bytes))), cat("INDEX ", element_name(call.input(1).dtype))});
    launch.input_bytes(0, bytes).input(call, 1).output_bytes(0, bytes).faults().integer(in[axis]);
    launch.integer(call.input(1).shape.elements()).integer(in.elements(axis + 1, in.rank())).integer(count).elements(count);
    return run_in_order(call, device, {std::move(launch)});
  };
  kernels.add("Gather", "gather", supports, prepare);
}

// Operators whose output holds the input's bytes in the same order.
void add_copies(Kernels& kernels) {
  const auto supports = [](const OpCall& call) {
    if (call.wants_output(1)) return no(Reason::Attribute, "a second output is wanted");
    return call.input(0).dtype == DType::String ? no(Reason::DType, "input 0 is string") : yes();
  };
  const auto prepare = [](const OpCall& call, GpuDevice&) { return copied(call); };
  for (const char* const op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}) {
    kernels.add(op, "copy", supports, prepare, true);
  }
  const auto infers = [supports](const OpCall& call) {
    const auto* const training = call.has(2) ? call.constant(2) : nullptr;
    if (call.has(2) && training == nullptr) return no(Reason::Dynamic, "training_mode is known only at run time");
    if (training != nullptr && integers(*training).at(0) != 0) return no(Reason::Attribute, "training_mode is true");
    return supports(call);
  };
  kernels.add("Dropout", "copy", infers, prepare, true);
}

}  // namespace

void add_move_kernels(Kernels& kernels) {
  add_move(kernels, "Transpose", "transpose", transposed, anything);
  add_move(kernels, "Expand", "expand", expanded_move, anything);
  add_move(kernels, "Tile", "tile", tiled, anything);
  add_move(kernels, "Slice", "slice", sliced, slice_is_known);
  add_move(kernels, "DepthToSpace", "depth_to_space", depth_to_space, anything);
  add_move(kernels, "SpaceToDepth", "space_to_depth", space_to_depth, anything);
  add_concat(kernels);
  add_split(kernels);
  add_gather(kernels);
  add_copies(kernels);
}

}  // namespace unmoor::gpu
