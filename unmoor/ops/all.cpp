#include "unmoor/ops/families.h"

namespace unmoor {

const OpSet& all_ops() {
  static const OpSet ops = [] {
    OpSet set;
    add_elementwise_ops(set);
    add_activation_ops(set);
    add_reduce_ops(set);
    add_matmul_ops(set);
    add_conv_ops(set);
    add_pool_ops(set);
    add_normalize_ops(set);
    add_softmax_ops(set);
    add_recurrent_ops(set);
    add_quantize_ops(set);
    add_contrib_quantized_ops(set);
    add_fused_ops(set);
    add_mixture_ops(set);
    add_cast_ops(set);
    add_reshape_ops(set);
    add_gather_ops(set);
    add_scatter_ops(set);
    add_concat_ops(set);
    add_create_ops(set);
    add_attention_ops(set);
    add_resize_ops(set);
    add_sort_ops(set);
    add_contrib_unique_op(set);
    add_control_ops(set);
    add_generation_ops(set);
    add_sequence_ops(set);
    add_signal_ops(set);
    add_ml_ops(set);
    add_vision_ops(set);
    add_loss_ops(set);
    add_text_ops(set);
    add_training_ops(set);
    return set;
  }();
  return ops;
}

}  // namespace unmoor
