#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/backends/gpu/window.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

void add_pool(Kernels& kernels, const std::string& op, const std::string& kernel, bool mean) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    if (auto answer = is_real(call, 0, abilities); !answer) return answer;
    if (call.wants_output(1)) return no(Reason::Attribute, "indices are wanted");
    if (auto answer = is_picture(call); !answer) return answer;
    return window_fits(window_of(call, {}));
  };
  const auto prepare = [mean](const OpCall& call, GpuDevice& device) {
    const auto window = window_of(call, {});
    const int64_t count = call.output(0).shape.elements();
    Launch launch("pool", cat(math_text(), unmoor_gpu_text::unmoor_backends_gpu_kernels_pool_inc), real_defines(call.output(0).dtype));
    launch.input(call, 0).output(call, 0).integers({window.in[0], window.in[1], window.out[0], window.out[1], window.kernel[0],
                                                    window.kernel[1], window.stride[0], window.stride[1], window.dilation[0],
                                                    window.dilation[1], window.before[0], window.before[1], window.after[0],
                                                    window.after[1]});
    launch.integer(mean ? 1 : 0).integer(call.integer("count_include_pad", 0)).integer(count).elements(count);
    return run_in_order(call, device, {std::move(launch)});
  };
  kernels.add(op, kernel, supports, prepare);
}

}  // namespace

void add_pool_kernels(Kernels& kernels) {
  add_pool(kernels, "MaxPool", "max_pool", false);
  add_pool(kernels, "AveragePool", "average_pool", true);
}

}  // namespace unmoor::gpu
