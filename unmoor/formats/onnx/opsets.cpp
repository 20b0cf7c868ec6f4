#include "unmoor/formats/onnx/opsets.h"

#include <map>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"

namespace unmoor::onnx {
namespace {

using Rule = void (*)(NodeDraft&);

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table{
      {"Add", modernize_broadcast},
      {"And", modernize_broadcast},
      {"Attention", modernize_attention},
      {"BatchNormalization", modernize_batch_normalization},
      {"Cast", modernize_cast},
      {"Clip", modernize_clip},
      {"Concat", modernize_concat},
      {"ConstantFill", modernize_constant_fill},
      {"DFT", modernize_dft},
      {"Div", modernize_broadcast},
      {"Dropout", modernize_dropout},
      {"DynamicSlice", modernize_dynamic_slice},
      {"Equal", modernize_broadcast},
      {"GRU", modernize_recurrent},
      {"Gemm", modernize_broadcast},
      {"Greater", modernize_broadcast},
      {"GridSample", modernize_grid_sample},
      {"GroupNormalization", modernize_group_normalization},
      {"Hardmax", modernize_softmax},
      {"LSTM", modernize_recurrent},
      {"Less", modernize_broadcast},
      {"LogSoftmax", modernize_softmax},
      {"Mul", modernize_broadcast},
      {"Or", modernize_broadcast},
      {"PRelu", modernize_broadcast},
      {"Pad", modernize_pad},
      {"Pow", modernize_broadcast},
      {"RNN", modernize_recurrent},
      {"ReduceL1", axes_to_input},
      {"ReduceL2", axes_to_input},
      {"ReduceLogSum", axes_to_input},
      {"ReduceLogSumExp", axes_to_input},
      {"ReduceMax", axes_to_input},
      {"ReduceMean", axes_to_input},
      {"ReduceMin", axes_to_input},
      {"ReduceProd", axes_to_input},
      {"ReduceSum", axes_to_input},
      {"ReduceSumSquare", axes_to_input},
      {"Reshape", modernize_reshape},
      {"Resize", modernize_resize},
      {"RoiAlign", modernize_roi_align},
      {"Scan", modernize_scan},
      {"Scatter", modernize_scatter},
      {"Selu", refuse_before_6},
      {"HardSigmoid", refuse_before_6},
      {"Slice", modernize_slice},
      {"Softmax", modernize_softmax},
      {"Split", modernize_split},
      {"Squeeze", axes_to_input},
      {"Sub", modernize_broadcast},
      {"Tile", refuse_before_6},
      {"TopK", modernize_topk},
      {"Unsqueeze", axes_to_input},
      {"Upsample", modernize_upsample},
      {"Xor", modernize_broadcast},
  };
  return table;
}

}  // namespace

void modernize(NodeDraft& draft) {
  if (draft.opset == 0) fail(ErrorKind::InvalidModel, "the model uses operators of ai.onnx but imports no opset of it");
  // A hint about memory in the oldest forms of many operators.
  if (draft.opset < 6) draft.node.attributes.erase("consumed_inputs");
  const auto rule = rules().find(draft.node.op);
  if (rule != rules().end()) rule->second(draft);
}

}  // namespace unmoor::onnx
