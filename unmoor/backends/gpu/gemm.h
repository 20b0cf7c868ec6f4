#pragma once

#include <array>
#include <optional>
#include <vector>

#include "unmoor/backends/gpu/kernels.h"

namespace unmoor::gpu {

// A fused operator's activation, as kernels know it.
struct Activation {
  int64_t code = 0;  // See activated() in math.inc.
  double p = 0;
  double q = 0;
};
// Nothing for a name that kernels do not know.
std::optional<Activation> activation_of(const OpCall& call);
Support is_known_activation(const OpCall& call);

// Steps of one operand of a product, in elements: by batch axis (at most three), by row, by column.
struct MatrixSteps {
  std::array<int64_t, 3> batch{};
  int64_t row = 0;
  int64_t col = 0;
};

// y[z] = act(alpha * a[z] * b[z] + beta * bias[z] + residual[z]) for a batch of up to three axes; y is dense.
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t depth = 0;
  std::array<int64_t, 3> batch{1, 1, 1};
  MatrixSteps a;
  MatrixSteps b;
  MatrixSteps bias;
  MatrixSteps residual;
  size_t a_input = 0;  // Which inputs of the call they are.
  size_t b_input = 1;
  std::optional<size_t> bias_input;
  std::optional<size_t> residual_input;
  double alpha = 1;
  double beta = 1;
  Activation activation;
  std::vector<int64_t> window;  // Of a convolution, as gemm.inc takes it; empty for a product of matrices.
};

Launch gemm(const Product& product, const OpCall& call);
// The grid is not too large for a launch.
Support gemm_fits(int64_t m, int64_t n, int64_t batch);

}  // namespace unmoor::gpu
