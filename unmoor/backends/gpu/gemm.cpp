#include "unmoor/backends/gpu/gemm.h"

#include <limits>
#include <string_view>
#include <utility>

#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

constexpr int64_t smallest_tile = 16;

struct Tiles {
  int64_t m;
  int64_t n;
};

// 64 by 64 results, or a long tile for thin matrices. A window's columns are read by columns, so its tile is not made thin.
Tiles tiles_for(int64_t m, int64_t n) {
  if (m <= smallest_tile && n > 64) return {2, 32};
  if (n <= smallest_tile && m > 64) return {32, 2};
  return {8, 8};
}

int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

void add_steps(Launch& launch, const MatrixSteps& steps) {
  for (const auto step : steps.batch) launch.integer(step);
  launch.integer(steps.row).integer(steps.col);
}

void add_optional(Launch& launch, const OpCall& call, const std::optional<size_t>& input, const MatrixSteps& steps) {
  if (input) {
    launch.input(call, *input);
  } else {
    launch.nothing();
  }
  add_steps(launch, steps);
}

}  // namespace

Support gemm_fits(int64_t m, int64_t n, int64_t batch) {
  const auto tiles = tiles_for(m, n);
  if (divided_up(m, tiles.m * 8) > most_groups || divided_up(n, tiles.n * 8) > most_groups || batch > most_groups) {
    return no(Reason::Size, batch, " products of ", m, " by ", n, " are too many work-groups");
  }
  return yes();
}

Launch gemm(const Product& product, const OpCall& call) {
  const auto tiles = tiles_for(product.m, product.n);
  const bool conv = !product.window.empty();
  std::vector<std::string> defines{cat("TILES_M ", tiles.m), cat("TILES_N ", tiles.n)};
  if (conv) defines.emplace_back("CONV");
  Launch launch("gemm", cat(math_text(), unmoor_gpu_text::unmoor_backends_gpu_kernels_gemm_inc),
                real_defines(call.output(0).dtype, std::move(defines)));
  launch.input(call, product.a_input);
  add_steps(launch, product.a);
  launch.input(call, product.b_input);
  for (const auto step : product.b.batch) launch.integer(step);
  if (conv) {
    launch.integers(product.window);
  } else {
    launch.integer(product.b.row).integer(product.b.col);
  }
  add_optional(launch, call, product.bias_input, product.bias);
  add_optional(launch, call, product.residual_input, product.residual);
  launch.integer(product.bias_input ? 1 : 0).integer(product.residual_input ? 1 : 0).output(call, 0);
  launch.integer(product.m).integer(product.n).integer(product.depth).integer(product.batch[1]).integer(product.batch[2]);
  launch.real(product.alpha).real(product.beta);
  launch.integer(product.activation.code).real(product.activation.p).real(product.activation.q);
  launch.groups(divided_up(product.n, tiles.n * 8), divided_up(product.m, tiles.m * 8),
                product.batch[0] * product.batch[1] * product.batch[2]);
  return launch;
}

std::optional<Activation> activation_of(const OpCall& call) {
  struct Known {
    std::string_view label;
    double p;
    double q;
  };
  constexpr double top = std::numeric_limits<float>::max();
  constexpr std::array known{Known{"", 0, 0},       Known{"Relu", 0, 0}, Known{"Clip", -top, top},
                             Known{"Sigmoid", 0, 0}, Known{"HardSigmoid", 0.2, 0.5}, Known{"HardSwish", 0, 0},
                             Known{"Swish", 1, 0},  Known{"Gelu", 0, 0}, Known{"GeluTanh", 0, 0},
                             Known{"LeakyRelu", 0.01, 0}, Known{"Tanh", 0, 0}};
  const auto wanted = call.text("activation", "");
  const auto parameters = call.reals("activation_params");
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].label != wanted) continue;
    return Activation{.code = static_cast<int64_t>(i),
                      .p = parameters.empty() ? known[i].p : static_cast<double>(parameters[0]),
                      .q = parameters.size() < 2 ? known[i].q : static_cast<double>(parameters[1])};
  }
  return std::nullopt;
}

Support is_known_activation(const OpCall& call) {
  return activation_of(call) ? yes() : no(Reason::Attribute, "activation is ", call.text("activation", ""));
}

}  // namespace unmoor::gpu
