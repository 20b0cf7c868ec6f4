#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"

namespace unmoor::onnx {
namespace {

// As before opset 11: output pixel i comes from i / scale.
void set_old_coordinates(NodeDraft& draft) {
  draft.set("coordinate_transformation_mode", std::string("asymmetric"));
  draft.set("nearest_mode", std::string("floor"));
  if (const auto mode = draft.take<std::string>("mode")) draft.set("mode", *mode == "bilinear" ? std::string("linear") : *mode);
}

// To shrink, the nearest pixel was rounded up, to grow, down; to do both takes two steps.
void resize_twice(NodeDraft& draft, ValueId growing, ValueId shrinking) {
  draft.set_input(0, draft.add("Resize", {draft.input(0), no_value, growing}, draft.node.attributes));
  draft.set_input(2, shrinking);
  draft.set("nearest_mode", std::string("ceil"));
}

// (X, scales) becomes (X, roi, scales). `may_shrink`: where nobody knows the scales, either may be.
void move_scales(NodeDraft& draft, ValueId scales, bool may_shrink) {
  draft.node.inputs.resize(1, no_value);
  draft.set_input(2, scales);
  const Tensor* const held = draft.constant_input(2);
  const auto mode = draft.node.attributes.find("mode");
  const bool is_nearest = mode == draft.node.attributes.end() || std::get<std::string>(mode->second) == "nearest";
  if (!is_nearest || (held == nullptr && !may_shrink) || (held != nullptr && held->dtype() != DType::F32)) return;
  if (held == nullptr) {
    const ValueId one = draft.constant(Tensor::from<float>({1}, {1.0F}));
    const ValueId growing = draft.add("Max", {scales, one});
    resize_twice(draft, growing, draft.add("Min", {scales, one}));
    return;
  }
  std::vector<float> growing, shrinking;
  for (const float scale : held->span<float>()) {
    growing.push_back(std::max(scale, 1.0F));
    shrinking.push_back(std::min(scale, 1.0F));
  }
  const auto is_one = [](float scale) { return scale == 1; };
  if (std::ranges::all_of(shrinking, is_one)) return;
  const auto count = static_cast<int64_t>(growing.size());
  if (!std::ranges::all_of(growing, is_one)) {
    const ValueId first = draft.constant(Tensor::from<float>({count}, std::span<const float>(growing)));
    resize_twice(draft, first, draft.constant(Tensor::from<float>({count}, std::span<const float>(shrinking))));
    return;
  }
  draft.set("nearest_mode", std::string("ceil"));
}

// The coordinate for nearest neighbors that opset 13 dropped, (i + 0.5) / scale, is that of half_pixel plus 0.5: what is rounded down of
// it is half_pixel's rounded with halves up, and what is rounded with halves down is half_pixel's rounded up.
void modernize_old_half_pixel(NodeDraft& draft) {
  const auto found = draft.node.attributes.find("coordinate_transformation_mode");
  const auto* const coordinates = found == draft.node.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (coordinates == nullptr || *coordinates != "tf_half_pixel_for_nn") return;
  const auto mode = draft.take<std::string>("mode", "nearest");
  const auto nearest = draft.take<std::string>("nearest_mode", "round_prefer_floor");
  if (mode != "nearest" || (nearest != "floor" && nearest != "round_prefer_floor")) {
    fail(ErrorKind::Unsupported, "tf_half_pixel_for_nn with mode ", mode, " and nearest_mode ", nearest, " is not supported");
  }
  draft.set("coordinate_transformation_mode", std::string("half_pixel"));
  draft.set("nearest_mode", std::string(nearest == "floor" ? "round_prefer_ceil" : "ceil"));
}

}  // namespace

void modernize_upsample(NodeDraft& draft) {
  ValueId scales = draft.input(1);
  if (auto values = draft.take<std::vector<float>>("scales")) {
    const auto count = static_cast<int64_t>(values->size());
    scales = draft.constant(Tensor::from<float>({count}, std::span<const float>(*values)));
  } else if (draft.has("height_scale") || draft.has("width_scale")) {
    const auto height = draft.take<float>("height_scale", 1.0F);
    scales = draft.constant(Tensor::from<float>({4}, {1.0F, 1.0F, height, draft.take<float>("width_scale", 1.0F)}));
  }
  if (scales == no_value) fail(ErrorKind::InvalidModel, "it has no scales");
  draft.node.op = "Resize";
  set_old_coordinates(draft);
  move_scales(draft, scales, false);
}

void modernize_resize(NodeDraft& draft) {
  if (draft.opset < 11) {
    if (draft.input(1) == no_value) fail(ErrorKind::InvalidModel, "it has no scales");
    set_old_coordinates(draft);
    move_scales(draft, draft.input(1), true);
    return;
  }
  // What is not given was once an empty tensor.
  for (size_t i = 1; i < draft.node.inputs.size(); ++i) {
    const Tensor* const held = draft.constant_input(i);
    if (held != nullptr && held->elements() == 0) draft.set_input(i, no_value);
  }
  while (!draft.node.inputs.empty() && draft.node.inputs.back() == no_value) draft.node.inputs.pop_back();
  modernize_old_half_pixel(draft);
}

}  // namespace unmoor::onnx
