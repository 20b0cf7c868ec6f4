#include <cmath>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/rows.h"

namespace unmoor::cpu {

namespace {

const float* input_at(const KernelArgs& args, size_t i) {
  return i < args.inputs.size() ? reinterpret_cast<const float*>(args.inputs[i].host()) : nullptr;
}
float* output_at(const KernelArgs& args, size_t i) {
  return i < args.outputs.size() ? reinterpret_cast<float*>(args.outputs[i].host()) : nullptr;
}

float epsilon_of(const OpCall& call) { return static_cast<float>(call.real("epsilon", 1e-5)); }

// Elements that each row of LayerNormalization or RMSNormalization has.
size_t row_length(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  return static_cast<size_t>(shape.elements(shape.axis(call.integer("axis", -1)), shape.rank()));
}

Support supports_rows(const OpCall& call) {
  if (Support types = inputs_are(call, {DType::F32}); !types) {
    return types;
  }
  const Shape& shape = call.input(0).shape;
  if (shape.rank() == 0) {
    return no(Reason::Rank, "a scalar");
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.wants_output(i) && call.output(i).dtype != DType::F32) return no(Reason::DType, "statistics of ", call.output(i).dtype);
  }
  if (row_length(call) == 0) {
    return no(Reason::Size, "rows of no elements");
  }
  const size_t axis = shape.axis(call.integer("axis", -1));
  return all_of(is_row_of(call, 1, axis), is_row_of(call, 2, axis));
}

Prepared prepare_rows(const OpCall& call, Device& device) {
  const size_t length = row_length(call);
  const size_t rows = static_cast<size_t>(call.input(0).shape.elements()) / length;
  const bool centred = call.node.op == "LayerNormalization";
  return {.run = [&machine = machine_of(device), &loops = row_loops(), length, rows, centred, epsilon = epsilon_of(call)](Stream&, const KernelArgs& args) {
    const float* const x = input_at(args, 0);
    const float* const scale = input_at(args, 1);
    const float* const shift = input_at(args, 2);
    float* const y = output_at(args, 0);
    float* const mean = output_at(args, 1);
    float* const inverse = output_at(args, 2);
    machine.pool().ranges(rows, 8192 / (length + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        float statistics[2];
        loops.normalize(x + i * length, y + i * length, length, scale, shift, epsilon, centred, statistics);
        if (mean != nullptr) mean[i] = statistics[0];
        if (inverse != nullptr) inverse[i] = statistics[1];
      }
    });
  }};
}

Support supports_channels(const OpCall& call) {
  if (Support types = inputs_are(call, {DType::F32}); !types) {
    return types;
  }
  const Shape& shape = call.input(0).shape;
  if (shape.rank() < 2) {
    return no(Reason::Rank, "fewer than two dimensions");
  }
  if (call.text("layout", "NCHW") != "NCHW") {
    return no(Reason::Layout, call.text("layout", "NCHW"));
  }
  if (call.integer("training_mode", 0) != 0) {
    return no(Reason::Attribute, "training_mode");
  }
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (call.has(i) && call.input(i).shape.elements() != shape[1]) {
      return no(Reason::Size, "a scale of ", call.input(i).shape, " for ", shape[1], " channels");
    }
  }
  return shape.elements() == 0 ? no(Reason::Size, "an empty input") : yes();
}

// The input as [batch, channels, plane].
struct Planes {
  size_t batch, channels, plane;
};
Planes planes_of(const Shape& shape) {
  return {static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]), static_cast<size_t>(shape.elements(2, shape.rank()))};
}

Prepared prepare_batch(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), &loops = row_loops(), p = planes_of(call.input(0).shape),
                  epsilon = epsilon_of(call)](Stream&, const KernelArgs& args) {
    const float* const x = input_at(args, 0);
    float* const y = output_at(args, 0);
    machine.pool().ranges(p.batch * p.channels, 16384 / (p.plane + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t c = i % p.channels;
        const float factor = input_at(args, 1)[c] / std::sqrt(input_at(args, 4)[c] + epsilon);
        loops.affine(x + i * p.plane, y + i * p.plane, p.plane, factor, input_at(args, 2)[c] - input_at(args, 3)[c] * factor);
      }
    });
  }};
}

// InstanceNormalization is GroupNormalization with a group for each channel.
Prepared prepare_group(const OpCall& call, Device& device) {
  const Planes p = planes_of(call.input(0).shape);
  const size_t groups = call.node.op == "InstanceNormalization" ? p.channels : static_cast<size_t>(call.integer("num_groups", 1));
  return {.run = [&machine = machine_of(device), &loops = row_loops(), p, groups, epsilon = epsilon_of(call)](Stream&, const KernelArgs& args) {
    const float* const x = input_at(args, 0);
    const float* const scale = input_at(args, 1);
    const float* const shift = input_at(args, 2);
    float* const y = output_at(args, 0);
    const size_t channels = p.channels / groups;
    const size_t n = channels * p.plane;
    machine.pool().ranges(p.batch * groups, 16384 / (n + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const float* const from = x + i * n;
        const float mean = loops.sum(from, n) / static_cast<float>(n);
        const float inverse = 1.0F / std::sqrt(loops.squares(from, n, mean) / static_cast<float>(n) + epsilon);
        for (size_t j = 0; j < channels; ++j) {
          const size_t c = i % groups * channels + j;
          const float factor = inverse * scale[c];
          loops.affine(from + j * p.plane, y + i * n + j * p.plane, p.plane, factor, shift[c] - mean * factor);
        }
      }
    });
  }};
}

Support supports_group(const OpCall& call) {
  if (Support channels = supports_channels(call); !channels) {
    return channels;
  }
  const int64_t groups = call.integer("num_groups", 1);
  return groups >= 1 && call.input(0).shape[1] % groups == 0 ? yes() : no(Reason::Attribute, "num_groups ", groups);
}

}  // namespace

void add_normalize_kernels(KernelTable& table) {
  table.add("LayerNormalization", {.name = "cpu.layernormalization.row", .supports = supports_rows, .prepare = prepare_rows, .in_place = true});
  table.add("RMSNormalization", {.name = "cpu.rmsnormalization.row", .supports = supports_rows, .prepare = prepare_rows, .in_place = true});
  table.add("BatchNormalization", {.name = "cpu.batchnormalization.plane", .supports = supports_channels, .prepare = prepare_batch, .in_place = true});
  table.add("InstanceNormalization",
            {.name = "cpu.instancenormalization.plane", .supports = supports_channels, .prepare = prepare_group, .in_place = true});
  table.add("GroupNormalization", {.name = "cpu.groupnormalization.plane", .supports = supports_group, .prepare = prepare_group, .in_place = true});
}

}  // namespace unmoor::cpu
