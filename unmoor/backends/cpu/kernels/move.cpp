#include <algorithm>
#include <cstring>
#include <optional>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/walk.h"

namespace unmoor::cpu {

namespace {

Support takes_elements(const OpCall& call) {
  return element_bytes(call.input(0).dtype) != 0 ? yes() : no(Reason::DType, call.input(0).dtype);
}

Support takes_constants(const OpCall& call, size_t from) {
  for (size_t i = from; i < call.input_count(); ++i) {
    if (call.has(i) && call.constant(i) == nullptr) return no(Reason::Dynamic, "input ", i, " is not constant");
  }
  return takes_elements(call);
}

// An integer constant's values, in either of ONNX's index types.
std::vector<int64_t> values_of(const Tensor& tensor) {
  std::vector<int64_t> values;
  if (tensor.dtype() == DType::I32) {
    for (const int32_t value : tensor.span<int32_t>()) values.push_back(value);
  } else {
    const auto all = tensor.span<int64_t>();
    values.assign(all.begin(), all.end());
  }
  return values;
}

std::vector<size_t> sizes_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

Prepared prepare_copy(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), bytes = call.output(0).bytes()](Stream&, const KernelArgs& args) {
    const std::byte* const x = args.inputs[0].host();
    std::byte* const y = args.outputs[0].host();
    if (x == y || bytes == 0) return;
    machine.pool().ranges(bytes, size_t{1} << 18, [&](size_t begin, size_t end) { std::memcpy(y + begin, x + begin, end - begin); });
  }};
}

Prepared run_copy(const OpCall& call, Device& device, StridedCopy copy) {
  copy.element_bytes = element_bytes(call.input(0).dtype);
  return {.run = [copy = PreparedCopy(machine_of(device), copy)](Stream&, const KernelArgs& args) {
    copy.run(args.inputs[0].host(), args.outputs[0].host());
  }};
}

Prepared prepare_transpose(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  std::vector<int64_t> permutation = call.integers("perm");
  for (size_t i = 0; permutation.size() < shape.rank(); ++i) permutation.push_back(static_cast<int64_t>(shape.rank() - 1 - i));
  const std::vector<int64_t> steps = dense_steps(shape);
  StridedCopy copy{.dims = sizes_of(call.output(0).shape), .out = dense_steps(call.output(0).shape)};
  for (const int64_t axis : permutation) copy.in.push_back(steps[shape.axis(axis)]);
  return run_copy(call, device, copy);
}

Prepared prepare_expand(const OpCall& call, Device& device) {
  const Shape& in = call.input(0).shape;
  const Shape& out = call.output(0).shape;
  const std::vector<int64_t> steps = dense_steps(in);
  StridedCopy copy{.dims = sizes_of(out), .in = std::vector<int64_t>(out.rank(), 0), .out = dense_steps(out)};
  for (size_t i = 0; i < in.rank(); ++i) copy.in[out.rank() - in.rank() + i] = in[i] == 1 ? 0 : steps[i];
  return run_copy(call, device, copy);
}

// Each axis becomes two: which copy, and where in it.
Prepared prepare_tile(const OpCall& call, Device& device) {
  const Shape& in = call.input(0).shape;
  const std::vector<int64_t> steps = dense_steps(in);
  const std::vector<int64_t> out_steps = dense_steps(call.output(0).shape);
  StridedCopy copy;
  for (size_t i = 0; i < in.rank(); ++i) {
    const int64_t repeats = in[i] == 0 ? 0 : call.output(0).shape[i] / in[i];
    copy.dims.insert(copy.dims.end(), {static_cast<size_t>(repeats), static_cast<size_t>(in[i])});
    copy.in.insert(copy.in.end(), {0, steps[i]});
    copy.out.insert(copy.out.end(), {out_steps[i] * in[i], out_steps[i]});
  }
  return run_copy(call, device, copy);
}

Prepared prepare_slice(const OpCall& call, Device& device) {
  const Shape& in = call.input(0).shape;
  const std::vector<int64_t> starts = values_of(*call.constant(1));
  const std::vector<int64_t> axes = call.has(3) ? values_of(*call.constant(3)) : std::vector<int64_t>();
  const std::vector<int64_t> steps = call.has(4) ? values_of(*call.constant(4)) : std::vector<int64_t>();
  StridedCopy copy{.dims = sizes_of(call.output(0).shape), .in = dense_steps(in), .out = dense_steps(call.output(0).shape)};
  const std::vector<int64_t> in_steps = copy.in;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = axes.empty() ? i : in.axis(axes[i]);
    const int64_t step = steps.empty() ? 1 : steps[i];
    const int64_t start = starts[i] < 0 ? std::max<int64_t>(starts[i] + in[axis], 0) : starts[i];
    const int64_t first = std::clamp<int64_t>(start, 0, step < 0 ? std::max<int64_t>(in[axis] - 1, 0) : in[axis]);
    copy.in_start += static_cast<size_t>(first * in_steps[axis]);
    copy.in[axis] = copy.dims[axis] > 1 ? in_steps[axis] * step : 0;  // Nobody steps where there is one: the step may be enormous.
  }
  return run_copy(call, device, copy);
}

// By axis: elements before the input.
std::vector<int64_t> pads_before(const OpCall& call) {
  const Shape& in = call.input(0).shape;
  const std::vector<int64_t> pads = values_of(*call.constant(1));
  std::vector<int64_t> before(in.rank(), 0);
  const std::vector<int64_t> axes = call.has(3) ? values_of(*call.constant(3)) : std::vector<int64_t>();
  for (size_t i = 0; i < pads.size() / 2; ++i) before[axes.empty() ? i : in.axis(axes[i])] = pads[i];
  return before;
}

Support supports_pad(const OpCall& call) {
  if (Support types = takes_elements(call); !types) {
    return types;
  }
  if (call.text("mode", "constant") != "constant") {
    return no(Reason::Attribute, "mode ", call.text("mode", "constant"));
  }
  return call.constant(1) == nullptr || (call.has(3) && call.constant(3) == nullptr) ? no(Reason::Dynamic, "pads are not constant") : yes();
}

// Fills the output with the value, then copies the part of the input that is inside. Negative pads cut.
Prepared prepare_pad(const OpCall& call, Device& device) {
  const Shape& in = call.input(0).shape;
  const Shape& out = call.output(0).shape;
  const std::vector<int64_t> before = pads_before(call);
  StridedCopy copy{.element_bytes = element_bytes(call.input(0).dtype), .in = dense_steps(in), .out = dense_steps(out)};
  for (size_t i = 0; i < in.rank(); ++i) {
    const int64_t first = std::max<int64_t>(0, -before[i]);
    const int64_t last = std::min(in[i], out[i] - before[i]);
    copy.dims.push_back(static_cast<size_t>(std::max<int64_t>(last - first, 0)));
    if (last <= first) continue;
    copy.in_start += static_cast<size_t>(first * copy.in[i]);
    copy.out_start += static_cast<size_t>((first + before[i]) * copy.out[i]);
  }
  return {.run = [copy = PreparedCopy(machine_of(device), copy), size = copy.element_bytes, bytes = call.output(0).bytes()](Stream&, const KernelArgs& args) {
    std::byte* const y = args.outputs[0].host();
    const std::byte* const value = args.inputs.size() > 2 ? args.inputs[2].host() : nullptr;
    if (bytes == 0) return;
    std::memset(y, 0, bytes);
    const std::byte zero[16] = {};
    if (value != nullptr && std::memcmp(value, zero, size) != 0) {
      for (size_t at = 0; at < bytes; at += size) std::memcpy(y + at, value, size);
    }
    copy.run(args.inputs[0].host(), y);
  }};
}

// A part of the dimensions along `axis`, as [outer, part, inner] within [outer, whole, inner].
struct Part {
  size_t outer, inner, whole;
};
Part part_of(const Shape& shape, size_t axis) {
  return {static_cast<size_t>(shape.elements(0, axis)), static_cast<size_t>(shape.elements(axis + 1, shape.rank())), static_cast<size_t>(shape[axis])};
}

Support supports_concat(const OpCall& call) {
  return call.output(0).shape.rank() == 0 ? no(Reason::Rank, "scalars") : takes_elements(call);
}

Prepared prepare_concat(const OpCall& call, Device& device) {
  const Shape& out = call.output(0).shape;
  const size_t axis = out.axis(call.integer("axis", 0));
  const Part all = part_of(out, axis);
  std::vector<PreparedCopy> copies;
  size_t start = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const auto own = static_cast<size_t>(call.input(i).shape[axis]);
    copies.emplace_back(machine_of(device), StridedCopy{.element_bytes = element_bytes(call.output(0).dtype),
                                                        .dims = {all.outer, own * all.inner},
                                                        .in = {static_cast<int64_t>(own * all.inner), 1},
                                                        .out = {static_cast<int64_t>(all.whole * all.inner), 1},
                                                        .out_start = start * all.inner});
    start += own;
  }
  return {.run = [copies](Stream&, const KernelArgs& args) {
    for (size_t i = 0; i < copies.size(); ++i) copies[i].run(args.inputs[i].host(), args.outputs[0].host());
  }};
}

Prepared prepare_split(const OpCall& call, Device& device) {
  const Shape& in = call.input(0).shape;
  const size_t axis = in.axis(call.integer("axis", 0));
  const Part all = part_of(in, axis);
  std::vector<std::optional<PreparedCopy>> copies;
  size_t start = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const auto own = static_cast<size_t>(call.output(i).shape[axis]);
    const StridedCopy copy{.element_bytes = element_bytes(call.input(0).dtype),
                           .dims = {all.outer, own * all.inner},
                           .in = {static_cast<int64_t>(all.whole * all.inner), 1},
                           .out = {static_cast<int64_t>(own * all.inner), 1},
                           .in_start = start * all.inner};
    copies.push_back(call.wants_output(i) ? std::optional(PreparedCopy(machine_of(device), copy)) : std::nullopt);
    start += own;
  }
  return {.run = [copies](Stream&, const KernelArgs& args) {
    for (size_t i = 0; i < copies.size(); ++i) {
      if (copies[i]) copies[i]->run(args.inputs[0].host(), args.outputs[i].host());
    }
  }};
}

}  // namespace

void add_move_kernels(KernelTable& table) {
  for (const auto& [op, kernel] : {std::pair("Reshape", "cpu.reshape.copy"), std::pair("Flatten", "cpu.flatten.copy"), std::pair("Squeeze", "cpu.squeeze.copy"),
                                   std::pair("Unsqueeze", "cpu.unsqueeze.copy"), std::pair("Identity", "cpu.identity.copy")}) {
    const auto supports = [](const OpCall& call) {
      return std::holds_alternative<TensorType>(*call.inputs[0]) ? takes_elements(call) : no(Reason::DType, "no tensor");
    };
    table.add(op, {.name = kernel, .supports = supports, .prepare = prepare_copy, .in_place = true});
  }
  table.add("Transpose", {.name = "cpu.transpose.blocks", .supports = takes_elements, .prepare = prepare_transpose});
  table.add("Expand", {.name = "cpu.expand.runs", .supports = takes_elements, .prepare = prepare_expand});
  table.add("Tile", {.name = "cpu.tile.runs", .supports = takes_elements, .prepare = prepare_tile});
  table.add("Slice", {.name = "cpu.slice.runs", .supports = [](const OpCall& call) { return takes_constants(call, 1); }, .prepare = prepare_slice});
  table.add("Pad", {.name = "cpu.pad.runs", .supports = supports_pad, .prepare = prepare_pad});
  table.add("Concat", {.name = "cpu.concat.runs", .supports = supports_concat, .prepare = prepare_concat});
  table.add("Split", {.name = "cpu.split.runs", .supports = takes_elements, .prepare = prepare_split});
}

}  // namespace unmoor::cpu
