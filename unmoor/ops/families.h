#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// One function a family; each adds its operators. Called by all.cpp.
void add_elementwise_ops(OpSet& ops);   // Add, Mul, comparisons, logic, rounding, Min, Max, Where, Pow, Mod, bit operators.
void add_activation_ops(OpSet& ops);    // Relu, Gelu, Sigmoid, HardSwish and the like, one input each.
void add_reduce_ops(OpSet& ops);        // ReduceSum and its kin, ArgMax, CumSum.
void add_matmul_ops(OpSet& ops);        // MatMul, Gemm, Einsum, Det.
void add_conv_ops(OpSet& ops);          // Conv, ConvTranspose.
void add_pool_ops(OpSet& ops);          // MaxPool, AveragePool, global pools.
void add_normalize_ops(OpSet& ops);     // BatchNormalization, LayerNormalization, InstanceNormalization and the like.
void add_softmax_ops(OpSet& ops);       // Softmax, LogSoftmax, Hardmax.
void add_recurrent_ops(OpSet& ops);     // LSTM, GRU, RNN.
void add_quantize_ops(OpSet& ops);      // QuantizeLinear, DequantizeLinear, MatMulInteger and the like.
void add_contrib_quantized_ops(OpSet& ops);  // com.microsoft: QLinearAdd, MatMulNBits, QGemm, QAttention and the like.
void add_fused_ops(OpSet& ops);         // Operators that passes make: unmoor:FusedConv, unmoor:FusedMatMul, unmoor:InvertedResidual.
void add_mixture_ops(OpSet& ops);       // com.microsoft: MoE, QMoE.
void add_cast_ops(OpSet& ops);          // Cast, CastLike, BitCast.
void add_reshape_ops(OpSet& ops);       // Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Identity, Shape, Size, Dropout.
void add_gather_ops(OpSet& ops);        // Gather, GatherElements, GatherND, Slice.
void add_scatter_ops(OpSet& ops);       // ScatterElements, ScatterND.
void add_concat_ops(OpSet& ops);        // Concat, Split, Tile, Expand, Pad.
void add_create_ops(OpSet& ops);        // ConstantOfShape, Range, EyeLike, OneHot, Trilu.
void add_attention_ops(OpSet& ops);     // Attention, RotaryEmbedding, LinearAttention and the like.
void add_resize_ops(OpSet& ops);        // Resize.
void add_sort_ops(OpSet& ops);          // TopK, NonZero, Unique, NonMaxSuppression.
void add_contrib_unique_op(OpSet& ops);  // com.microsoft: Unique.
void add_control_ops(OpSet& ops);       // If, Loop, Scan, SequenceMap.
void add_generation_ops(OpSet& ops);    // com.microsoft: BeamSearch, GreedySearch, Sampling.
void add_sequence_ops(OpSet& ops);      // Sequence and optional operators.
void add_signal_ops(OpSet& ops);        // STFT, DFT, windows.
void add_ml_ops(OpSet& ops);            // The domain ai.onnx.ml: trees, support vectors, encoders, maps.
void add_vision_ops(OpSet& ops);        // CenterCropPad, Col2Im, DeformConv, ImageDecoder, MaxRoiPool, MaxUnpool.
void add_loss_ops(OpSet& ops);          // NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
void add_text_ops(OpSet& ops);          // StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer.
void add_training_ops(OpSet& ops);      // Adagrad, Adam, Momentum.

}  // namespace unmoor
