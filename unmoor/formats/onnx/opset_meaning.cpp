#include <algorithm>
#include <array>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::onnx {
namespace {

using Ints = std::vector<int64_t>;

Tensor small_number(DType dtype, double value) {
  Tensor tensor(TensorType{dtype, Shape()});
  store(tensor, std::span<const double>(&value, 1));
  return tensor;
}

// Leaves only output 0. Fails if another is used.
void keep_first_output(NodeDraft& draft, std::string_view problem) {
  for (size_t i = 1; i < draft.uses.size(); ++i) {
    if (draft.is_used(i)) fail(ErrorKind::Unsupported, "output ", i, " is used, ", problem);
  }
  if (draft.uses.size() > 1) draft.uses.resize(1);
}

}  // namespace

// Before opset 13 the input was seen as a matrix, cut at `axis`, and the operator worked on its rows.
void modernize_softmax(NodeDraft& draft) {
  if (draft.opset >= 13) return;
  const auto axis = draft.take<int64_t>("axis", 1);
  const auto type = axis == -1 ? std::nullopt : draft.type(0);
  const auto rank = type && type->shape.has_rank() ? static_cast<int64_t>(type->shape.rank()) : -1;
  if (rank >= 0 && (axis < -rank || axis > rank)) fail(ErrorKind::InvalidModel, "axis ", axis, " is outside of rank ", rank);
  if (axis == -1 || (rank >= 0 && axis == rank - 1)) {
    draft.set("axis", int64_t{-1});
    return;
  }
  const ValueId input = draft.input(0);
  if (input == no_value) fail(ErrorKind::InvalidModel, "input 0 is missing");
  const ValueId shape = draft.add("Shape", {input});
  const ValueId matrix = draft.add("Flatten", {input}, {{"axis", axis}});
  const ValueId rows = draft.add(draft.node.op, {matrix}, {{"axis", int64_t{-1}}});
  draft.node.op = "Reshape";
  draft.node.inputs = {rows, shape};
  draft.set("allowzero", int64_t{1});  // An empty dimension is one, not that of the matrix.
}

// In inference all forms pass their input on.
void modernize_dropout(NodeDraft& draft) {
  if (draft.opset >= 12) return;
  if (draft.opset < 10) keep_first_output(draft, "which before opset 10 is a mask of the data's type");
  draft.node.attributes.erase("ratio");
  draft.node.attributes.erase("is_test");
}

void modernize_batch_normalization(NodeDraft& draft) {
  if (draft.opset >= 14) return;
  draft.node.attributes.erase("is_test");
  keep_first_output(draft, "but it is only made in training");
  const auto spatial = draft.take<int64_t>("spatial", 1);
  if (spatial != 0) return;
  // One mean and variance for each element of a sample: plain arithmetic.
  if (draft.node.inputs.size() != 5) fail(ErrorKind::InvalidModel, "it has ", draft.node.inputs.size(), " inputs, not 5");
  const auto epsilon = draft.take<float>("epsilon", 1e-5F);
  draft.node.attributes.clear();
  const auto inputs = draft.node.inputs;
  const ValueId offset = draft.constant(small_number(draft.dtype_or_float(4), epsilon));
  const ValueId deviation = draft.add("Sqrt", {draft.add("Add", {inputs[4], offset})});
  const ValueId scaled = draft.add("Div", {draft.add("Sub", {inputs[0], inputs[3]}), deviation});
  draft.node.op = "Add";
  draft.node.inputs = {draft.add("Mul", {scaled, inputs[1]}), inputs[2]};
}

// Before opset 21 scale and bias were given by group, now by channel.
void modernize_group_normalization(NodeDraft& draft) {
  if (draft.opset >= 21) return;
  const auto found = draft.node.attributes.find("num_groups");
  if (draft.node.inputs.size() != 3 || found == draft.node.attributes.end() || !std::holds_alternative<int64_t>(found->second)) {
    fail(ErrorKind::InvalidModel, "it needs three inputs and the attribute 'num_groups'");
  }
  const ValueId groups = draft.ints({std::get<int64_t>(found->second)});
  const ValueId channels = draft.add("Shape", {draft.input(0)}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  const ValueId size = draft.add("Div", {channels, groups});
  const ValueId shape = draft.add("Concat", {groups, size}, {{"axis", int64_t{0}}});
  for (size_t i = 1; i < 3; ++i) {
    const ValueId column = draft.add("Unsqueeze", {draft.input(i), draft.ints({1})});
    draft.set_input(i, draft.add("Reshape", {draft.add("Expand", {column, shape}), draft.ints({-1})}));
  }
}

void modernize_scatter(NodeDraft& draft) { draft.node.op = "ScatterElements"; }

void modernize_dynamic_slice(NodeDraft& draft) { draft.node.op = "Slice"; }

void modernize_grid_sample(NodeDraft& draft) {
  if (draft.opset >= 20) return;
  const auto mode = draft.take<std::string>("mode", "bilinear");
  draft.set("mode", mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
}

void modernize_roi_align(NodeDraft& draft) {
  if (draft.opset < 16) draft.set("coordinate_transformation_mode", std::string("output_half_pixel"));
}

// In opset 23 a mask of one column counts for every key; later it is the first key's, and the others are shut out.
void modernize_attention(NodeDraft& draft) {
  constexpr size_t key = 1, mask = 3, past_key = 4;
  if (draft.opset >= 24 || draft.input(mask) == no_value || draft.input(key) == no_value) return;
  const auto type = draft.type(mask);
  const bool is_column = type && type->shape.has_rank() && type->shape.rank() > 0 && type->shape[type->shape.rank() - 1] == 1;
  if (!is_column) return;
  const Attributes length{{"start", int64_t{-2}}, {"end", int64_t{-1}}};
  ValueId total = draft.add("Shape", {draft.input(key)}, length);
  if (draft.input(past_key) != no_value) total = draft.add("Add", {total, draft.add("Shape", {draft.input(past_key)}, length)});
  draft.set_input(mask, draft.add("Expand", {draft.input(mask), total}));
}

// Before opset 7 a flag said that the second input is to be broadcast, and an attribute said along which axis.
void modernize_broadcast(NodeDraft& draft) {
  if (draft.opset >= 7) return;
  const auto broadcast = draft.take<int64_t>("broadcast", 0);
  const auto axis = draft.take<int64_t>("axis");
  const auto first = draft.type(0);
  const auto second = draft.type(1);
  const bool know_ranks = first && second && first->shape.has_rank() && second->shape.has_rank();
  const bool is_slope = draft.node.op == "PRelu";
  // The slopes of PRelu went by channel, whatever their place.
  if (is_slope && (!know_ranks || (second->shape.rank() != 0 && second->shape != Shape{1} && first->shape.rank() != 2))) {
    if (!know_ranks || second->shape.rank() != 1) {
      fail(ErrorKind::Unsupported, "its form of opset ", draft.opset, " is not supported with slopes of this shape");
    }
    Ints axes(first->shape.rank() < 2 ? 0 : first->shape.rank() - 2);
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i) + 1;
    draft.set_input(1, draft.add("Unsqueeze", {draft.input(1), draft.ints(axes)}));
    return;
  }
  if (broadcast == 0 || !axis || draft.node.op == "Gemm") return;
  if (!know_ranks) fail(ErrorKind::Unsupported, "broadcasting along axis ", *axis, " as in opset 6 needs known ranks");
  const auto rank = static_cast<int64_t>(first->shape.rank());
  const int64_t place = *axis < 0 ? *axis + rank : *axis;
  const int64_t missing = place < 0 ? -1 : rank - place - static_cast<int64_t>(second->shape.rank());
  if (missing < 0)
    fail(ErrorKind::InvalidModel, "axis ", *axis, " does not fit shapes ", first->shape, " and ", second->shape);
  if (missing == 0) return;
  Ints axes(static_cast<size_t>(missing));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(second->shape.rank() + i);
  draft.set_input(1, draft.add("Unsqueeze", {draft.input(1), draft.ints(axes)}));
}

// Before opset 6 the target was spelled out.
void modernize_cast(NodeDraft& draft) {
  if (draft.opset >= 6) return;
  constexpr std::array<std::string_view, 17> names{"",       "FLOAT",  "UINT8",     "INT8",       "UINT16",  "INT16",
                                                   "INT32",  "INT64",  "STRING",    "BOOL",       "FLOAT16", "DOUBLE",
                                                   "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};
  const auto to = draft.take<std::string>("to", "");
  const auto found = std::ranges::find(names, to);
  if (to.empty() || found == names.end()) fail(ErrorKind::InvalidModel, "attribute 'to' is '", to, "', no type");
  draft.set("to", static_cast<int64_t>(found - names.begin()));
}

void modernize_concat(NodeDraft& draft) {
  if (draft.opset < 4 && !draft.has("axis")) draft.set("axis", int64_t{1});
}

void modernize_recurrent(NodeDraft& draft) {
  if (draft.opset < 7) draft.node.attributes.erase("output_sequence");
}

void refuse_before_6(NodeDraft& draft) {
  if (draft.opset < 6)
    fail(ErrorKind::Unsupported, "its form of opset ", draft.opset, " is not supported; opset 6 or later is needed");
}

}  // namespace unmoor::onnx
