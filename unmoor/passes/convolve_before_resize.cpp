#include <algorithm>
#include <cstring>

#include "unmoor/base/error.h"
#include "unmoor/passes/derived.h"
#include "unmoor/passes/passes.h"
#include "unmoor/passes/pattern.h"
#include "unmoor/tensor/convert.h"

// A 1×1 convolution mixes channels and a Resize mixes places, both linearly: they may change places, up to rounding. Small images
// are cheaper to convolve. Where a Concat lies between, the weights are cut by its inputs and the results are added.
namespace unmoor {
namespace {

constexpr size_t residual_input = 3;
constexpr int64_t worthwhile = 2;  // So many times more places after the Resize.

bool all_equal(const std::vector<int64_t>& list, int64_t value) {
  return std::ranges::all_of(list, [value](int64_t each) { return each == value; });
}

// A convolution of one place by constant weights of a dtype whose elements are bytes.
bool mixes_channels(const Rewriter& r, const Node& conv) {
  if (conv.op != "Conv" && conv.op != "unmoor:FusedConv") return false;
  const Tensor* const weights = r.constant(input_of(conv, 1));
  if (weights == nullptr || bits_of(weights->dtype()) < 8 || weights->shape().rank() < 3) return false;
  if (weights->shape().elements(2, weights->shape().rank()) != 1 || integer_of(conv, "group", 1) != 1) return false;
  return all_equal(integers_of(conv, "strides"), 1) && all_equal(integers_of(conv, "pads"), 0) &&
         text_of(conv, "layout", "NCHW") == "NCHW" && r.known_shape(input_of(conv, 0)) != nullptr &&
         r.known_shape(output_of(conv)) != nullptr && is_float_tensor(r, output_of(conv));
}

// Whether the Resize mixes nothing but places, adds nothing, and makes images worth convolving before.
bool mixes_places(const Rewriter& r, const Node& resize, int64_t outputs) {
  if (!integers_of(resize, "axes").empty() ||
      text_of(resize, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return false;
  const Shape* const from = r.known_shape(input_of(resize, 0));
  const Shape* const to = r.known_shape(output_of(resize));
  if (from == nullptr || to == nullptr || from->rank() < 3 || (*from)[0] != (*to)[0] || (*from)[1] != (*to)[1]) return false;
  if (const ValueId scales = input_of(resize, 2);
      scales != no_value && r.known_shape(scales) != nullptr && r.known_shape(scales)->elements() != 0) {
    const Tensor* const values = r.constant(scales);
    if (values == nullptr || doubles(*values).at(0) != 1 || doubles(*values).at(1) != 1) return false;
  } else if (r.constant(input_of(resize, 3)) == nullptr) {
    return false;
  }
  const int64_t small = from->elements(2, from->rank());
  return small > 0 && outputs <= (*from)[1] && to->elements(2, to->rank()) >= worthwhile * small;
}

// A part of what is convolved, and the weights' columns for it.
struct Part {
  ValueId value;
  int64_t first;
  int64_t channels;
  NodeId resize;  // no_node where it stays as it is.
};

class Exchange {
 public:
  Exchange(Rewriter& r, NodeId id) : r_(r), id_(id), conv_(r.node(id)) {}

  bool run() {
    if (!mixes_channels(r_, conv_) || !find_parts()) return false;
    if (std::ranges::none_of(parts_, [](const Part& part) { return part.resize != no_node; })) return false;
    if (!leave_one() || !r_.spend(r_.constant(conv_.inputs[1])->bytes().size())) return false;
    ValueId sum = input_of(conv_, residual_input);
    for (const Part& part : parts_) {
      if (part.resize == no_node) continue;
      const ValueId enlarged = resized(part, convolved(part));
      sum = sum == no_value ? enlarged : added(sum, enlarged);
    }
    replace_conv(sum);
    return true;
  }

 private:
  bool find_parts() {
    const ValueId input = conv_.inputs[0];
    const Node* const concat = r_.made_by(input, "Concat");
    if (concat == nullptr || r_.only_user(input) != id_ || integer_of(*concat, "axis", 0) != 1) return false;
    int64_t first = 0;
    for (const ValueId value : concat->inputs) {
      const Shape* const shape = value == no_value ? nullptr : r_.known_shape(value);
      if (shape == nullptr) return false;
      parts_.push_back({value, first, (*shape)[1], no_node});
      first += (*shape)[1];
      const Node* const resize = r_.made_by(value, "Resize");
      if (resize != nullptr && r_.uses(value) == 1 && mixes_places(r_, *resize, outputs()))
        parts_.back().resize = r_.maker(value);
    }
    return true;
  }

  // Bias and activation need a convolution at full size: of what is not resized, or else of the largest image that is.
  bool leave_one() {
    if (std::ranges::any_of(parts_, [](const Part& part) { return part.resize == no_node; })) return true;
    const auto places = [this](const Part& part) {
      const Shape& shape = *r_.known_shape(input_of(r_.node(part.resize), 0));
      return shape.elements(2, shape.rank());
    };
    std::ranges::max_element(parts_, {}, places)->resize = no_node;
    return parts_.size() > 1;
  }

  int64_t outputs() const { return (*r_.known_shape(output_of(conv_)))[1]; }
  DType dtype() const { return r_.tensor_type(output_of(conv_))->dtype; }

  ValueId new_value(const std::string& label, Shape shape) {
    Value value;
    value.name = cat(r_.value(output_of(conv_)).name, "/", label, "_", r_.graph().values().size());
    value.type = TensorType{dtype(), std::move(shape)};
    return r_.add_value(std::move(value));
  }

  ValueId add(Node node, const std::string& label, Shape shape) {
    node.name = cat(conv_.name, "/", label, "_", r_.graph().values().size());
    node.origin = conv_.origin;
    const ValueId made = new_value(label, std::move(shape));
    node.outputs = {made};
    r_.insert_before(id_, std::move(node));
    return made;
  }

  // Columns of the weights for some channels of the input.
  Tensor cut(const std::vector<Part>& parts) const {
    const Tensor& all = *r_.constant(conv_.inputs[1]);
    std::vector<int64_t> dims = all.shape().dims();
    const size_t size = bits_of(all.dtype()) / 8;
    const auto row = static_cast<size_t>(dims[1]) * size;
    dims[1] = 0;
    for (const Part& part : parts) dims[1] += part.channels;
    Tensor cut(TensorType{all.dtype(), Shape(dims)});
    std::byte* to = cut.writable_bytes().data();
    for (size_t m = 0; m < static_cast<size_t>(dims[0]); ++m) {
      for (const Part& part : parts) {
        const size_t bytes = static_cast<size_t>(part.channels) * size;
        std::memcpy(to, all.bytes().data() + m * row + static_cast<size_t>(part.first) * size, bytes);
        to += bytes;
      }
    }
    return cut;
  }

  ValueId weights_of(const std::vector<Part>& parts) {
    const Tensor& all = *r_.constant(conv_.inputs[1]);
    std::string kind = cat("columns of ", name(all.dtype()), all.shape());
    for (const Part& part : parts) kind += cat(" ", part.first, "+", part.channels);
    return r_.add_constant(cat(r_.value(conv_.inputs[1]).name, "/", parts[0].first),
                           derived(all, kind, [&] { return cut(parts); }));
  }

  ValueId convolved(const Part& part) {
    const ValueId image = r_.node(part.resize).inputs[0];
    Node node = conv_;
    node.op = "Conv";
    node.inputs = {image, weights_of({part})};
    for (const char* const own : {"activation", "activation_params"}) node.attributes.erase(own);
    std::vector<int64_t> dims = r_.known_shape(image)->dims();
    dims[1] = outputs();
    return add(std::move(node), "Conv", Shape(dims));
  }

  ValueId resized(const Part& part, ValueId image) {
    Node node = r_.node(part.resize);
    node.inputs[0] = image;
    if (const ValueId sizes = input_of(node, 3); sizes != no_value) {
      std::vector<int64_t> values = *integers_of(r_, sizes);
      if (!values.empty()) values.at(1) = outputs();
      node.inputs[3] = r_.add_constant("", Tensor::from<int64_t>(Shape{static_cast<int64_t>(values.size())}, values));
    }
    return add(std::move(node), "Resize", *r_.known_shape(output_of(conv_)));
  }

  ValueId added(ValueId a, ValueId b) {
    Node node;
    node.op = "Add";
    node.inputs = {a, b};
    return add(std::move(node), "Add", *r_.known_shape(output_of(conv_)));
  }

  void replace_conv(ValueId sum) {
    std::vector<Part> rest;
    std::ranges::copy_if(parts_, std::back_inserter(rest), [](const Part& part) { return part.resize == no_node; });
    ValueId input = rest[0].value;
    if (rest.size() > 1) {
      Node concat;
      concat.op = "Concat";
      concat.attributes["axis"] = int64_t{1};
      std::vector<int64_t> dims = r_.known_shape(input)->dims();
      dims[1] = 0;
      for (const Part& part : rest) {
        concat.inputs.push_back(part.value);
        dims[1] += part.channels;
      }
      input = add(std::move(concat), "Concat", Shape(dims));
    }
    Node node = conv_;
    node.op = "unmoor:FusedConv";
    node.inputs.resize(residual_input + 1, no_value);
    node.inputs[0] = input;
    node.inputs[1] = weights_of(rest);
    node.inputs[residual_input] = sum;
    r_.replace(id_, std::move(node));
  }

  Rewriter& r_;
  NodeId id_;
  Node conv_;  // As it was.
  std::vector<Part> parts_;
};

}  // namespace

bool convolve_before_resize(Rewriter& r) {
  bool changed = false;
  for (const NodeId id : r.nodes()) {
    if (r.is_alive(id)) changed |= Exchange(r, id).run();
  }
  if (changed) r.remove_dead();
  return changed;
}

}  // namespace unmoor
