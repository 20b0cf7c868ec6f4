#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::onnx {
namespace {

using Ints = std::vector<int64_t>;

Ints required(NodeDraft& draft, std::string_view attribute) {
  auto values = draft.take<Ints>(attribute);
  if (!values) fail(ErrorKind::InvalidModel, "attribute '", attribute, "' is missing");
  return std::move(*values);
}

Tensor scalar_of(DType dtype, double value) {
  Tensor tensor(TensorType{dtype, Shape()});
  store(tensor, std::span<const double>(&value, 1));
  return tensor;
}

}  // namespace

void axes_to_input(NodeDraft& draft) {
  const auto axes = draft.take<Ints>("axes");
  // An empty list of axes stood for all of them; as an input it does so only where the input is absent. Of Unsqueeze it means none.
  const bool counts = axes && (!axes->empty() || draft.node.op == "Unsqueeze");
  if (counts && draft.input(1) == no_value) draft.set_input(1, draft.ints(*axes));
}

void modernize_slice(NodeDraft& draft) {
  if (!draft.has("starts") && draft.opset >= 10) return;
  Ints starts = required(draft, "starts");
  Ints ends = required(draft, "ends");
  const auto axes = draft.take<Ints>("axes");
  draft.set_input(1, draft.ints(std::move(starts)));
  draft.set_input(2, draft.ints(std::move(ends)));
  if (axes) draft.set_input(3, draft.ints(*axes));
}

void modernize_split(NodeDraft& draft) {
  if (draft.opset >= 18) return;
  if (draft.opset < 2 && draft.input(1) != no_value) return;
  const auto sizes = draft.take<Ints>("split");
  if (sizes && !sizes->empty()) draft.set_input(1, draft.ints(*sizes));
  if (draft.input(1) == no_value) draft.set("num_outputs", static_cast<int64_t>(draft.uses.size()));
}

void modernize_pad(NodeDraft& draft) {
  if (draft.opset >= 11) return;
  Ints pads = required(draft, draft.has("pads") ? "pads" : "paddings");
  const auto value = draft.take<float>("value", 0.0F);
  draft.set_input(1, draft.ints(std::move(pads)));
  if (value != 0) draft.set_input(2, draft.constant(scalar_of(draft.dtype_or_float(0), value)));
}

void modernize_topk(NodeDraft& draft) {
  if (draft.opset >= 10) return;
  const auto k = draft.take<int64_t>("k");
  if (!k) fail(ErrorKind::InvalidModel, "attribute 'k' is missing");
  draft.set_input(1, draft.ints({*k}));
}

void modernize_clip(NodeDraft& draft) {
  if (draft.opset >= 11) return;
  // The attributes' defaults are the ends of float32, which clip nothing but infinities; an absent input clips nothing.
  const auto low = draft.take<float>("min");
  const auto high = draft.take<float>("max");
  const DType dtype = draft.dtype_or_float(0);
  if (low) draft.set_input(1, draft.constant(scalar_of(dtype, *low)));
  if (high) draft.set_input(2, draft.constant(scalar_of(dtype, *high)));
}

void modernize_reshape(NodeDraft& draft) {
  if (draft.opset >= 5) return;
  if (auto shape = draft.take<Ints>("shape")) draft.set_input(1, draft.ints(std::move(*shape)));
}

void modernize_dft(NodeDraft& draft) {
  if (draft.opset >= 20) return;
  const auto axis = draft.take<int64_t>("axis", 1);
  draft.set_input(2, draft.constant(Tensor::scalar(axis)));
}

// An operator of the time before opset 5 that opset 10 dropped.
void modernize_constant_fill(NodeDraft& draft) {
  const auto dtype = dtype_numbered(draft.take<int64_t>("dtype", 1));
  if (!dtype) fail(ErrorKind::InvalidModel, "attribute 'dtype' is no element type");
  Tensor value(TensorType{*dtype, Shape{1}});
  const double number = draft.take<float>("value", 0.0F);
  store(value, std::span<const double>(&number, 1));
  const bool holds_shape = draft.take<int64_t>("input_as_shape", 0) != 0;
  Ints given = draft.take<Ints>("shape", {});
  const Ints more = draft.take<Ints>("extra_shape", {});
  ValueId shape = draft.input(0);
  if (shape == no_value) {
    given.insert(given.end(), more.begin(), more.end());
    shape = draft.ints(std::move(given));
  } else {
    shape = holds_shape ? draft.add("Cast", {shape}, {{"to", onnx_number(DType::I64)}}) : draft.add("Shape", {shape});
    if (!more.empty()) shape = draft.add("Concat", {shape, draft.ints(more)}, {{"axis", int64_t{0}}});
  }
  draft.node.op = "ConstantOfShape";
  draft.node.inputs = {shape};
  draft.node.attributes = {{"value", std::move(value)}};
}

}  // namespace unmoor::onnx
