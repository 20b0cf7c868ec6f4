#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"
#include "unmoor/formats/onnx/opsets.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Opset 1 had a list of labels: numbers are places in it.
void from_classes(NodeDraft& draft) {
  auto classes = draft.take<std::vector<std::string>>("classes_strings");
  if (!classes || classes->empty()) fail(ErrorKind::InvalidModel, "attribute 'classes_strings' is missing");
  const auto type = draft.type(0);
  const bool wants_texts = draft.has("default_string");
  if (!type && wants_texts == draft.has("default_int64")) {
    fail(ErrorKind::Unsupported,
         "the type of its input is not known, and its defaults do not tell whether it makes texts or numbers");
  }
  Ints places(classes->size());
  std::iota(places.begin(), places.end(), int64_t{0});
  const bool to_texts = type ? type->dtype != DType::String : wants_texts;
  draft.set(to_texts ? "values_strings" : "keys_strings", std::move(*classes));
  draft.set(to_texts ? "keys_int64s" : "values_int64s", std::move(places));
}

// Before opset 4 floats were compared bit by bit, which matters for zeros and NaN: as integers they still are.
void compare_bits(NodeDraft& draft) {
  const auto found = draft.node.attributes.find("keys_floats");
  const auto* keys = found == draft.node.attributes.end() ? nullptr : std::get_if<std::vector<float>>(&found->second);
  if (keys == nullptr || std::ranges::none_of(*keys, [](float key) { return key == 0 || std::isnan(key); })) return;
  std::vector<int32_t> bits;
  for (const float key : *keys) bits.push_back(std::bit_cast<int32_t>(key));
  draft.set_input(0, draft.add("BitCast", {draft.input(0)}, {{"to", onnx_number(DType::I32)}}));
  draft.node.attributes.erase(found);
  draft.set("keys_tensor", Tensor::from<int32_t>({static_cast<int64_t>(bits.size())}, std::span<const int32_t>(bits)));
}

}  // namespace

void modernize_ml(NodeDraft& draft) {
  if (draft.opset == 0) fail(ErrorKind::InvalidModel, "the model uses operators of ai.onnx.ml but imports no opset of it");
  if (draft.node.op != "ai.onnx.ml:LabelEncoder") return;
  if (draft.opset < 2) from_classes(draft);
  if (draft.opset >= 2 && draft.opset < 4) compare_bits(draft);
}

}  // namespace unmoor::onnx
