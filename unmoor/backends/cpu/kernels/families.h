#pragma once

#include "unmoor/hal/kernel.h"

namespace unmoor::cpu {

// One function a family; each adds its kernels, best first. Called by cpu.cpp.
void add_binary_kernels(KernelTable& table);     // Add … Pow, comparisons, logic, Where.
void add_unary_kernels(KernelTable& table);      // Activations and functions of one value.
void add_matmul_kernels(KernelTable& table);     // MatMul, Gemm, unmoor:FusedMatMul.
void add_attention_kernels(KernelTable& table);  // unmoor:FusedAttention.
void add_conv_kernels(KernelTable& table);       // Conv, unmoor:FusedConv.
void add_conv_transpose_kernels(KernelTable& table);
void add_depthwise_kernels(KernelTable& table);  // Before the general convolution.
void add_last_depthwise_kernels(KernelTable& table);  // Of channels-last images, as the next two.
void add_winograd_kernels(KernelTable& table);
void add_last_conv_kernels(KernelTable& table);
void add_inverted_kernels(KernelTable& table);   // unmoor:InvertedResidual.
void add_pool_kernels(KernelTable& table);       // MaxPool, AveragePool.
void add_softmax_kernels(KernelTable& table);    // Softmax, LogSoftmax.
void add_normalize_kernels(KernelTable& table);  // LayerNormalization and its kin.
void add_reduce_kernels(KernelTable& table);     // ReduceSum and its kin, global pools, ArgMax.
void add_move_kernels(KernelTable& table);       // Transpose, Slice, Pad, Concat, Split, Reshape and the like.
void add_gather_kernels(KernelTable& table);     // Gather.
void add_cast_kernels(KernelTable& table);       // Cast.
void add_resize_kernels(KernelTable& table);     // Resize.
void add_recurrent_kernels(KernelTable& table);  // LSTM, GRU.
void add_tree_kernels(KernelTable& table);       // Decision trees of ai.onnx.ml.

}  // namespace unmoor::cpu
