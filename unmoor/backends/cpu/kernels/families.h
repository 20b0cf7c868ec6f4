#pragma once

#include "unmoor/hal/kernel.h"

namespace unmoor::cpu {

// One function a family; each adds its kernels, best first. Called by cpu.cpp.
void add_binary_kernels(KernelTable& table);     // Add … Pow, comparisons, logic, Where.
void add_unary_kernels(KernelTable& table);      // Activations and functions of one value.
void add_matmul_kernels(KernelTable& table);     // MatMul, Gemm, unmoor:FusedMatMul.
void add_f32x6_matmul_kernels(KernelTable& table);  // The same on AMX, before them.
void add_f32x6_conv_kernels(KernelTable& table);    // Convolutions of channels-last images on AMX, behind Winograd's.
void add_attention_kernels(KernelTable& table);  // unmoor:FusedAttention.
void add_conv_kernels(KernelTable& table);       // Conv, unmoor:FusedConv.
void add_conv_transpose_kernels(KernelTable& table);
void add_depthwise_kernels(KernelTable& table);       // Before the general convolution.
void add_last_depthwise_kernels(KernelTable& table);  // Of channels-last images, as the next two.
void add_winograd_kernels(KernelTable& table);
void add_last_conv_kernels(KernelTable& table);
void add_inverted_kernels(KernelTable& table);               // unmoor:InvertedResidual.
void add_pool_kernels(KernelTable& table);                   // MaxPool, AveragePool.
void add_softmax_kernels(KernelTable& table);                // Softmax, LogSoftmax.
void add_normalize_kernels(KernelTable& table);              // LayerNormalization and its kin.
void add_reduce_kernels(KernelTable& table);                 // ReduceSum and its kin, global pools, ArgMax.
void add_move_kernels(KernelTable& table);                   // Transpose, Slice, Pad, Concat, Split, Reshape and the like.
void add_gather_kernels(KernelTable& table);                 // Gather.
void add_pick_kernels(KernelTable& table);                   // GatherElements, GatherND.
void add_scatter_kernels(KernelTable& table);                // ScatterElements, ScatterND, TensorScatter.
void add_block_kernels(KernelTable& table);                  // DepthToSpace and its kin, Col2Im, MaxUnpool.
void add_create_kernels(KernelTable& table);                 // Range, OneHot, Trilu, windows, random numbers.
void add_select_kernels(KernelTable& table);                 // NonZero, Compress, Unique, NonMaxSuppression.
void add_choose_kernels(KernelTable& table);                 // TopK, Hardmax.
void add_running_kernels(KernelTable& table);                // CumSum, CumProd.
void add_cast_kernels(KernelTable& table);                   // Cast, CastLike.
void add_fold_kernels(KernelTable& table);                   // Sum, Mean, Max, Min of any number, after the binary ones; Mod.
void add_plain_kernels(KernelTable& table);                  // Functions of one value by the C library.
void add_einsum_kernels(KernelTable& table);                 // Einsum.
void add_norm_kernels(KernelTable& table);                   // LRN, LpNormalization and their kin.
void add_lp_pool_kernels(KernelTable& table);                // LpPool.
void add_loss_kernels(KernelTable& table);                   // NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
void add_grid_kernels(KernelTable& table);                   // GridSample, AffineGrid.
void add_roi_kernels(KernelTable& table);                    // RoiAlign, MaxRoiPool.
void add_rotary_kernels(KernelTable& table);                 // RotaryEmbedding.
void add_quantize_kernels(KernelTable& table);               // QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
void add_integer_bytes_kernels(KernelTable& table);          // MatMulInteger, QLinearMatMul: by one matrix of bytes.
void add_integer_product_kernels(KernelTable& table);        // MatMulInteger, QLinearMatMul.
void add_integer_conv_kernels(KernelTable& table);           // ConvInteger, QLinearConv.
void add_signal_kernels(KernelTable& table);                 // DFT, STFT.
void add_state_kernels(KernelTable& table);                  // CausalConvWithState, LinearAttention, Det, Multinomial.
void add_deform_conv_kernels(KernelTable& table);            // DeformConv.
void add_resize_kernels(KernelTable& table);                 // Resize.
void add_recurrent_kernels(KernelTable& table);              // LSTM, GRU, RNN.
void add_tree_kernels(KernelTable& table);                   // Decision trees of ai.onnx.ml.
void add_quantized_lstm_kernels(KernelTable& table);         // DynamicQuantizeLSTM.
void add_quantized_matmul_kernels(KernelTable& table);       // DynamicQuantizeMatMul, MatMulIntegerToFloat, QGemm.
void add_quantized_block_kernels(KernelTable& table);        // MatMulNBits.
void add_quantized_elementwise_kernels(KernelTable& table);  // QLinearAdd, QLinearMul, QLinearWhere, QLinearSigmoid and the like.

}  // namespace unmoor::cpu
