#pragma once

#include "unmoor/formats/onnx/draft.h"

// How old forms of ai.onnx operators become the newest one, by the kind of change. Called by modernize; each looks at the opset
// itself.
namespace unmoor::onnx {

// Attributes that became inputs (opset_inputs.cpp).
void axes_to_input(NodeDraft& draft);  // Squeeze, Unsqueeze, reductions.
void modernize_slice(NodeDraft& draft);
void modernize_split(NodeDraft& draft);
void modernize_pad(NodeDraft& draft);
void modernize_topk(NodeDraft& draft);
void modernize_clip(NodeDraft& draft);
void modernize_reshape(NodeDraft& draft);
void modernize_dft(NodeDraft& draft);
void modernize_constant_fill(NodeDraft& draft);

// Changes of meaning (opset_meaning.cpp).
void modernize_softmax(NodeDraft& draft);  // And LogSoftmax, Hardmax.
void modernize_dropout(NodeDraft& draft);
void modernize_batch_normalization(NodeDraft& draft);
void modernize_group_normalization(NodeDraft& draft);
void modernize_scatter(NodeDraft& draft);
void modernize_dynamic_slice(NodeDraft& draft);
void modernize_grid_sample(NodeDraft& draft);
void modernize_roi_align(NodeDraft& draft);
void modernize_attention(NodeDraft& draft);
void modernize_broadcast(NodeDraft& draft);  // Two-input operators before opset 7.
void modernize_cast(NodeDraft& draft);
void modernize_concat(NodeDraft& draft);
void modernize_recurrent(NodeDraft& draft);
void refuse_before_6(NodeDraft& draft);  // Operators whose form before opset 6 is too different.

// Scan before opset 9 (opset_scan.cpp).
void modernize_scan(NodeDraft& draft);
// com.microsoft's FusedConv, FusedGemm, NhwcConv and NhwcFusedConv become the operators that were fused (contrib_fused.cpp).
void split_fused(NodeDraft& draft);

// Resize and Upsample (opset_resize.cpp).
void modernize_resize(NodeDraft& draft);
void modernize_upsample(NodeDraft& draft);

}  // namespace unmoor::onnx
