#include <algorithm>

#include "unmoor/backends/gpu/gemm.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/backends/gpu/window.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

// Results per group that make a tile worth while; with fewer each result is computed alone.
constexpr int64_t fewest_rows_of_a_tile = 5;

std::vector<int64_t> kernel_shape(const OpCall& call) {
  const auto& weights = call.input(1).shape.dims();
  return {weights.begin() + 2, weights.end()};
}

Support conv_inputs(const OpCall& call, const Abilities& abilities) {
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (auto answer = is_real(call, i, abilities); !answer) return answer;
  }
  if (auto answer = is_picture(call); !answer) return answer;
  if (call.input(1).shape.rank() != call.input(0).shape.rank()) return no(Reason::Rank, "weights of rank ", call.input(1).shape.rank());
  const auto groups = call.integer("group", 1);
  if (groups < 1 || call.input(1).shape[0] % groups != 0) return no(Reason::Attribute, "group is ", groups);
  return window_fits(window_of(call, kernel_shape(call)));
}

void add_picture(Launch& launch, const Window& window, int64_t out_channels, int64_t groups) {
  launch.integers({window.channels, window.in[0], window.in[1], out_channels, window.out[0], window.out[1], groups, window.kernel[0],
                   window.kernel[1], window.stride[0], window.stride[1], window.dilation[0], window.dilation[1], window.before[0],
                   window.before[1]});
}

Launch direct_conv(const OpCall& call) {
  const auto window = window_of(call, kernel_shape(call));
  const auto activation = *activation_of(call);
  const int64_t count = call.output(0).shape.elements();
  Launch launch("conv_direct", cat(math_text(), unmoor_gpu_text::unmoor_backends_gpu_kernels_conv_inc),
                real_defines(call.output(0).dtype));
  for (size_t i = 0; i < 4; ++i) launch.input(call, i);
  launch.output(call, 0);
  add_picture(launch, window, call.input(1).shape[0], call.integer("group", 1));
  launch.integer(call.has(2) ? 1 : 0).integer(call.has(3) ? 1 : 0);
  launch.integer(activation.code).real(activation.p).real(activation.q).integer(count).elements(count);
  return launch;
}

// Each image and group is a product: weights times windows. Rows are output channels, columns are output places.
Product conv_product(const OpCall& call) {
  const auto window = window_of(call, kernel_shape(call));
  const int64_t groups = call.integer("group", 1);
  Product product;
  product.m = call.input(1).shape[0] / groups;
  product.n = window.out[0] * window.out[1];
  product.depth = call.input(1).shape.elements(1, call.input(1).shape.rank());
  product.batch = {window.batch, groups, 1};
  product.a = {.batch = {0, product.m * product.depth, 0}, .row = product.depth, .col = 1};
  const int64_t picture = window.in[0] * window.in[1] * window.channels;
  product.b.batch = {picture, picture / groups, 0};
  product.bias = {.batch = {0, product.m, 0}, .row = 1, .col = 0};
  product.residual = {.batch = {product.m * groups * product.n, product.m * product.n, 0}, .row = product.n, .col = 1};
  product.a_input = 1;
  product.b_input = 0;
  if (call.has(2)) product.bias_input = 2;
  if (call.has(3)) product.residual_input = 3;
  product.activation = *activation_of(call);
  product.window = {window.in[0],       window.in[1],       window.kernel[0], window.kernel[1], window.stride[0], window.stride[1],
                    window.dilation[0], window.dilation[1], window.before[0], window.before[1], window.out[1]};
  return product;
}

bool is_plain_product(const Window& window, int64_t groups) {
  constexpr std::array<int64_t, 2> ones{1, 1};
  constexpr std::array<int64_t, 2> zeros{0, 0};
  return groups == 1 && window.kernel == ones && window.stride == ones && window.before == zeros && window.after == zeros;
}

Product pointwise_product(const OpCall& call) {
  auto product = conv_product(call);
  product.window.clear();
  product.b.row = product.n;
  product.b.col = 1;
  return product;
}

void add_conv(Kernels& kernels, const std::string& op, const std::string& suffix) {
  const auto abilities = kernels.abilities();
  const auto accepts = [abilities](const OpCall& call) {
    if (auto answer = conv_inputs(call, abilities); !answer) return answer;
    if (auto answer = is_known_activation(call); !answer) return answer;
    if (call.has(3) && !(call.input(3).shape == call.output(0).shape)) return no(Reason::Attribute, "the residual is broadcast");
    return yes();
  };
  const auto rows = [](const OpCall& call) { return call.input(1).shape[0] / call.integer("group", 1); };
  const auto tiled = [accepts, rows](const OpCall& call) {
    if (auto answer = accepts(call); !answer) return answer;
    if (rows(call) < fewest_rows_of_a_tile) return no(Reason::Size, rows(call), " output channels a group are too few for a tile");
    const auto product = conv_product(call);
    return gemm_fits(product.m, product.n, product.batch[0] * product.batch[1]);
  };
  const auto prepare_tiled = [](const OpCall& call, GpuDevice& device) {
    const bool plain = is_plain_product(window_of(call, kernel_shape(call)), call.integer("group", 1));
    return run_in_order(call, device, {gemm(plain ? pointwise_product(call) : conv_product(call), call)});
  };
  kernels.add(op, cat("conv.gemm", suffix), tiled, prepare_tiled);
  const auto prepare_direct = [](const OpCall& call, GpuDevice& device) { return run_in_order(call, device, {direct_conv(call)}); };
  kernels.add(op, cat("conv.direct", suffix), accepts, prepare_direct);
}

void add_conv_transpose(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    if (auto answer = conv_inputs(call, abilities); !answer) return answer;
    const auto automatic = call.text("auto_pad", "NOTSET");
    if (automatic != "NOTSET" && automatic != "VALID") return no(Reason::Attribute, "auto_pad is ", automatic);
    if (!call.integers("output_shape").empty()) return no(Reason::Attribute, "output_shape is given");
    return yes();
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const int64_t groups = call.integer("group", 1);
    const int64_t count = call.output(0).shape.elements();
    Launch launch("conv_transpose", cat(math_text(), unmoor_gpu_text::unmoor_backends_gpu_kernels_conv_inc),
                  real_defines(call.output(0).dtype, {"TRANSPOSED"}));
    for (size_t i = 0; i < 3; ++i) launch.input(call, i);
    launch.output(call, 0);
    add_picture(launch, window_of(call, kernel_shape(call)), call.input(1).shape[1] * groups, groups);
    launch.integer(call.has(2) ? 1 : 0).integer(count).elements(count);
    return run_in_order(call, device, {std::move(launch)});
  };
  kernels.add("ConvTranspose", "conv_transpose", supports, prepare);
}

}  // namespace

void add_conv_kernels(Kernels& kernels) {
  add_conv(kernels, "Conv", "");
  add_conv(kernels, "unmoor:FusedConv", "_fused");
  add_conv_transpose(kernels);
}

}  // namespace unmoor::gpu
