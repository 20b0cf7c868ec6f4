#pragma once

#include <string_view>

// Kernel sources, embedded by layer.cmake and named by their paths.
namespace unmoor_gpu_text {
extern const std::string_view unmoor_backends_gpu_dialect_host_h;
extern const std::string_view unmoor_backends_gpu_dialect_prelude_h;
extern const std::string_view unmoor_backends_gpu_kernels_batch_normalize_inc;
extern const std::string_view unmoor_backends_gpu_kernels_conv_inc;
extern const std::string_view unmoor_backends_gpu_kernels_gather_inc;
extern const std::string_view unmoor_backends_gpu_kernels_gemm_inc;
extern const std::string_view unmoor_backends_gpu_kernels_group_inc;
extern const std::string_view unmoor_backends_gpu_kernels_math_inc;
extern const std::string_view unmoor_backends_gpu_kernels_move_inc;
extern const std::string_view unmoor_backends_gpu_kernels_normalize_inc;
extern const std::string_view unmoor_backends_gpu_kernels_pad_inc;
extern const std::string_view unmoor_backends_gpu_kernels_pool_inc;
extern const std::string_view unmoor_backends_gpu_kernels_reduce_inc;
extern const std::string_view unmoor_backends_gpu_kernels_resize_inc;
extern const std::string_view unmoor_backends_gpu_kernels_softmax_inc;
}  // namespace unmoor_gpu_text

namespace unmoor::gpu {

inline std::string_view prelude() { return unmoor_gpu_text::unmoor_backends_gpu_dialect_prelude_h; }
inline std::string_view host_prelude() { return unmoor_gpu_text::unmoor_backends_gpu_dialect_host_h; }
inline std::string_view math_text() { return unmoor_gpu_text::unmoor_backends_gpu_kernels_math_inc; }

}  // namespace unmoor::gpu
