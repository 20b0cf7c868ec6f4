#include "unmoor/backends/cpu/kernels/winograd_products.h"

namespace unmoor::cpu {

WinogradProducts::WinogradProducts(const Machine& machine, size_t points, size_t channels, size_t outputs)
    : machine_(machine), loops_(gemm_loops()), points_(points), channels_(channels), outputs_(outputs) {}

void WinogradProducts::pack(const Tensor& weights, const std::string& kind, const KernelPoints& at) {
  const size_t n = outputs_;
  const size_t k = channels_;
  const std::string layout = cat(kind, ", panels of ", loops_.panel_columns, "/", loops_.lanes, " [", n, ",", k, "]");
  weights_ = machine_.weights().get(weights, layout, points_ * packed_point(), [&](float* to) {
    constexpr size_t columns_at_once = 64;
    std::vector<float> points(points_ * k * n);
    machine_.pool().ranges(n, columns_at_once, [&](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o) {
        for (size_t c = 0; c < k; ++c) at(o, c, &points[c * n + o], k * n);
      }
    });
    machine_.pool().each(points_, [&](size_t p) {
      loops_.pack_b({points.data() + p * k * n, n, 1}, n, k, 0, loops_.panels(n), to + p * packed_point());
    });
  });
}

void WinogradProducts::multiply(size_t point, size_t count, const float* in, float* out) const {
  const bool from_memory = points_ * packed_point() * sizeof(float) > machine_.l2_bytes() / 2;
  loops_.multiply({.m = count,
                   .n = outputs_,
                   .k = channels_,
                   .a = in + point * in_point(),
                   .b = floats_of(weights_) + point * packed_point(),
                   .c = out + point * out_point(),
                   .c_stride = out_step(),
                   .epilogue = {},
                   .prefetch_b = from_memory,
                   .a_stride = in_step()},
                  {0, count, 0, loops_.panels(outputs_)});
}

}  // namespace unmoor::cpu
