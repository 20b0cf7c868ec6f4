#include <algorithm>

#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

namespace text = unmoor_gpu_text;

std::string with_groups(std::string_view kernel) { return cat(math_text(), text::unmoor_backends_gpu_kernels_group_inc, kernel); }

Support all_real(const OpCall& call, const Abilities& abilities) {
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (auto answer = is_real(call, i, abilities); !answer) return answer;
    if (call.has(i) && call.input(i).dtype != call.input(0).dtype) return no(Reason::DType, "inputs of several dtypes");
  }
  return yes();
}

void add_softmax(Kernels& kernels, const std::string& op, const std::string& kernel, bool logarithm) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    const auto& shape = call.input(0).shape;
    if (shape.rank() == 0) return no(Reason::Rank, "input 0 is a scalar");
    const int64_t length = shape[shape.axis(call.integer("axis", -1))];
    return all_of(is_real(call, 0, abilities), rows_fit(shape.elements() / std::max<int64_t>(length, 1)));
  };
  const auto prepare = [logarithm](const OpCall& call, GpuDevice& device) {
    const auto& shape = call.input(0).shape;
    const auto axis = shape.axis(call.integer("axis", -1));
    const int64_t step = shape.elements(axis + 1, shape.rank());
    const int64_t rows = shape.elements(0, axis) * step;
    Launch launch("softmax", with_groups(text::unmoor_backends_gpu_kernels_softmax_inc), real_defines(call.output(0).dtype));
    launch.input(call, 0).output(call, 0).integers({rows, shape[axis], step, logarithm ? 1 : 0});
    launch.rows(shape[axis] == 0 ? 0 : rows);
    return run_in_order(call, device, {std::move(launch)});
  };
  kernels.add(op, kernel, supports, prepare);
}

// Rows of `length` that each become one. `channels`: see normalize.inc.
struct Rows {
  int64_t count;
  int64_t length;
  int64_t channels;
  bool centre;
  bool has_bias;
};

Prepared normalize(const OpCall& call, GpuDevice& device, const Rows& rows) {
  Launch launch("normalize_row", with_groups(text::unmoor_backends_gpu_kernels_normalize_inc), real_defines(call.output(0).dtype));
  launch.input(call, 0).input(call, 1).input(call, 2).output(call, 0).output(call, 1).output(call, 2);
  launch.integers({rows.count, rows.length, rows.channels, rows.centre ? 1 : 0, rows.has_bias ? 1 : 0, call.wants_output(1) ? 1 : 0,
                   call.wants_output(2) ? 1 : 0});
  launch.real(call.real("epsilon", 1e-5)).rows(rows.length == 0 ? 0 : rows.count);
  return run_in_order(call, device, {std::move(launch)});
}

void add_layer_norm(Kernels& kernels, const std::string& op, const std::string& kernel, bool centre) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities, centre](const OpCall& call) {
    if (auto answer = all_real(call, abilities); !answer) return answer;
    const auto& shape = call.input(0).shape;
    const auto axis = shape.axis(call.integer("axis", -1));
    if (!centre && (call.wants_output(1) || call.has(2))) return no(Reason::Attribute, "more than X and scale");
    for (size_t i = 1; i < 3; ++i) {
      if (call.wants_output(i) && call.output(i).dtype != call.output(0).dtype) return no(Reason::DType, "output ", i, " differs");
    }
    if (shape.elements(axis, shape.rank()) == 0) return no(Reason::Size, "rows of no elements");
    return all_of(rows_fit(shape.elements(0, axis)), is_row_of(call, 1, axis), is_row_of(call, 2, axis));
  };
  const auto prepare = [centre](const OpCall& call, GpuDevice& device) {
    const auto& shape = call.input(0).shape;
    const auto axis = shape.axis(call.integer("axis", -1));
    return normalize(call, device, {.count = shape.elements(0, axis), .length = shape.elements(axis, shape.rank()), .channels = 0,
                                    .centre = centre, .has_bias = centre && call.has(2)});
  };
  kernels.add(op, kernel, supports, prepare);
}

void add_instance_norm(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    if (call.input(0).shape.rank() < 3) return no(Reason::Rank, "input 0 has rank ", call.input(0).shape.rank());
    if (const auto layout = call.text("layout", "NCHW"); layout != "NCHW") return no(Reason::Layout, "the layout is ", layout);
    return all_of(all_real(call, abilities), rows_fit(call.input(0).shape.elements(0, 2)));
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const auto& shape = call.input(0).shape;
    return normalize(call, device, {.count = shape[0] * shape[1], .length = shape.elements(2, shape.rank()), .channels = shape[1],
                                    .centre = true, .has_bias = true});
  };
  kernels.add("InstanceNormalization", "instance_norm", supports, prepare);
}

void add_batch_norm(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    if (call.integer("training_mode", 0) != 0 || call.wants_output(1)) return no(Reason::Attribute, "training_mode is 1");
    if (call.input(0).shape.rank() < 2) return no(Reason::Rank, "input 0 has rank ", call.input(0).shape.rank());
    if (const auto layout = call.text("layout", "NCHW"); layout != "NCHW") return no(Reason::Layout, "the layout is ", layout);
    return all_real(call, abilities);
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const auto& shape = call.input(0).shape;
    Launch launch("batch_normalize", text::unmoor_backends_gpu_kernels_batch_normalize_inc, real_defines(call.output(0).dtype));
    for (size_t i = 0; i < 5; ++i) launch.input(call, i);
    launch.output(call, 0).integer(shape[1]).integer(shape.elements(2, shape.rank())).real(call.real("epsilon", 1e-5));
    launch.integer(shape.elements()).elements(shape.elements());
    return run_in_order(call, device, {std::move(launch)});
  };
  kernels.add("BatchNormalization", "batch_norm", supports, prepare, true);
}

}  // namespace

void add_row_kernels(Kernels& kernels) {
  add_softmax(kernels, "Softmax", "softmax", false);
  add_softmax(kernels, "LogSoftmax", "log_softmax", true);
  add_layer_norm(kernels, "LayerNormalization", "layer_norm", true);
  add_layer_norm(kernels, "RMSNormalization", "rms_norm", false);
  add_instance_norm(kernels);
  add_batch_norm(kernels);
}

}  // namespace unmoor::gpu
