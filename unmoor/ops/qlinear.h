#pragma once

#include "unmoor/ops/quantize.h"

namespace unmoor {

// Parts of the family of com.microsoft's quantised operators.
void add_qlinear_ops(OpSet& ops);             // QLinearAdd and its kin: dequantize, do something, quantize.
void add_contrib_product_ops(OpSet& ops);     // MatMulIntegerToFloat, DynamicQuantizeMatMul, QGemm.
void add_packed_matmul_op(OpSet& ops);        // MatMulNBits.
void add_packed_gather_op(OpSet& ops);        // GatherBlockQuantized.
void add_quantized_lstm_op(OpSet& ops);       // DynamicQuantizeLSTM.
void add_quantized_attention_op(OpSet& ops);  // QAttention.

// Fails with InvalidModel if a scale or zero point, as far as known, has not one element.
void require_single(const OpCall& call, size_t i);
// The only element of an input, or `otherwise` where it is absent.
double single(std::span<const Data> in, size_t i, double otherwise);

}  // namespace unmoor
