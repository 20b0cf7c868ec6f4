#include "unmoor/formats/onnx/contrib.h"

#include <map>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::onnx {
namespace {

using Rule = void (*)(NodeDraft&);

// The operator's name without its domain.
void rename(NodeDraft& draft) { draft.node.op.erase(0, draft.node.op.find(':') + 1); }

// It divides in float32 whatever the scale's dtype.
void quantize_linear(NodeDraft& draft) {
  rename(draft);
  draft.set("precision", int64_t{1});  // float32, as ONNX numbers dtypes.
}

void grid_sample(NodeDraft& draft) {
  rename(draft);
  modernize_grid_sample(draft);  // As in ai.onnx's opset 16.
}

bool has_rank(NodeDraft& draft, size_t i, size_t rank) {
  const auto type = draft.type(i);
  return type && type->shape.has_rank() && type->shape.rank() == rank;
}

// The amounts may be a matrix of one row.
void pad(NodeDraft& draft) {
  rename(draft);
  if (draft.input(1) != no_value && !has_rank(draft, 1, 1))
    draft.set_input(1, draft.add("Reshape", {draft.input(1), draft.ints({-1})}));
}

// Bounds may be vectors of one element, and the step may be absent.
void range(NodeDraft& draft) {
  rename(draft);
  for (size_t i = 0; i < 3; ++i) {
    if (draft.input(i) != no_value && !has_rank(draft, i, 0))
      draft.set_input(i, draft.add("Reshape", {draft.input(i), draft.ints({})}));
  }
  if (draft.input(0) == no_value || draft.input(2) != no_value) return;
  draft.set_input(2, draft.add("CastLike", {draft.constant(Tensor::scalar(1.0F)), draft.input(0)}));
}

void set_layout(NodeDraft& draft, bool last) { draft.set("layout", std::string(last ? "NHWC" : "NCHW")); }

void qlinear_conv(NodeDraft& draft) {
  rename(draft);
  set_layout(draft, draft.take<int64_t>("channels_last", 0) != 0);
}

void nhwc_max_pool(NodeDraft& draft) {
  draft.node.op = "MaxPool";
  set_layout(draft, true);
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table{
      {"com.microsoft:DequantizeLinear", rename},
      {"com.microsoft:GridSample", grid_sample},
      {"com.microsoft:NhwcMaxPool", nhwc_max_pool},
      {"com.microsoft:Pad", pad},
      {"com.microsoft:QLinearConv", qlinear_conv},
      {"com.microsoft:QuantizeLinear", quantize_linear},
      {"com.microsoft:Range", range},
      {"com.microsoft:Trilu", rename},
  };
  return table;
}

}  // namespace

void modernize_contrib(NodeDraft& draft) {
  const auto rule = rules().find(draft.node.op);
  if (rule != rules().end()) rule->second(draft);
}

}  // namespace unmoor::onnx
