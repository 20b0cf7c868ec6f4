#include "unmoor/ops/selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

std::vector<Type> infer_non_zero(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  return {TensorType{DType::I64, Shape{shape.has_rank() ? static_cast<int64_t>(shape.rank()) : Shape::unknown, Shape::unknown}}};
}

void run_non_zero(const OpCall&, std::span<const Data> in, Outputs& out) {
  const Shape& shape = in[0].tensor().shape();
  const auto values = doubles(in[0].tensor());
  const auto strides = shape.strides();
  std::vector<size_t> found;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) found.push_back(i);
  }
  std::vector<int64_t> places;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    for (const size_t i : found) places.push_back(static_cast<int64_t>(i) / strides[axis] % shape[axis]);
  }
  Tensor& result = out.allocate(0, {DType::I64, Shape{static_cast<int64_t>(shape.rank()), static_cast<int64_t>(found.size())}});
  store(result, std::span<const int64_t>(places));
}

std::vector<Type> infer_compress(const OpCall& call) {
  const TensorType& data = call.input(0);
  if (!call.has_attribute("axis")) return {TensorType{data.dtype, unknown_shape(1)}};
  if (!data.shape.has_rank()) return {data};
  Shape shape = data.shape;
  shape.set(axis_of(call, call.integer("axis", 0), shape.rank()), Shape::unknown);
  return {TensorType{data.dtype, std::move(shape)}};
}

void run_compress(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const bool flat = !call.has_attribute("axis");
  const Tensor data = flat ? in[0].tensor().reshaped(Shape{in[0].tensor().shape().elements()}) : in[0].tensor();
  const size_t axis = flat ? 0 : axis_of(call, call.integer("axis", 0), data.shape().rank());
  const auto split = split_at(data.shape(), axis);
  const auto condition = integers(in[1].tensor());
  if (condition.size() > split.length) {
    fail(ErrorKind::InvalidArgument, title(call), ": a condition of ", condition.size(), " elements for an axis of ",
         split.length);
  }
  Shape shape = data.shape();
  shape.set(axis, static_cast<int64_t>(condition.size()) - std::ranges::count(condition, 0));
  Tensor& result = out.allocate(0, {data.dtype(), std::move(shape)});
  const ElementCopy copy(data, result);
  int64_t to = 0;
  for (size_t outer = 0; outer < split.outer; ++outer) {
    for (size_t i = 0; i < condition.size(); ++i) {
      const size_t from = (outer * split.length + i) * split.inner;
      for (size_t inner = 0; inner < split.inner && condition[i] != 0; ++inner) copy(static_cast<int64_t>(from + inner), to++);
    }
  }
}

// Corners, the lower ones first.
struct Box {
  double y1 = 0, x1 = 0, y2 = 0, x2 = 0;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_at(const std::vector<double>& boxes, size_t i, bool centered) {
  const double* const at = boxes.data() + i * 4;
  if (centered) return {at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2};
  return {std::min(at[0], at[2]), std::min(at[1], at[3]), std::max(at[0], at[2]), std::max(at[1], at[3])};
}

// Intersection over union. Boxes without area overlap nothing.
double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0 && width > 0) || a.area() <= 0 || b.area() <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

struct SuppressionRule {
  size_t most = 0;  // Boxes a class.
  double overlap = 0;
  double score = -std::numeric_limits<double>::infinity();
};

// The best-scored boxes that do not overlap a better one, best first; equal scores in the order given.
std::vector<size_t> kept_boxes(std::span<const Box> boxes, std::span<const double> scores, const SuppressionRule& rule) {
  std::vector<size_t> order;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (scores[i] > rule.score) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<size_t> kept;
  for (const size_t i : order) {
    if (kept.size() >= rule.most) break;
    if (std::ranges::none_of(kept, [&](size_t k) { return overlap(boxes[i], boxes[k]) > rule.overlap; })) kept.push_back(i);
  }
  return kept;
}

std::vector<Type> infer_suppression(const OpCall& call) {
  require_rank(call, 0, 3);
  require_rank(call, 1, 3);
  const Shape& boxes = call.input(0).shape;
  const Shape& scores = call.input(1).shape;
  if (boxes.has_rank()) same_dim(call, boxes[2], 4, "the last dimension of the boxes");
  if (boxes.has_rank() && scores.has_rank()) {
    same_dim(call, boxes[0], scores[0], "the batch");
    same_dim(call, boxes[1], scores[2], "the number of boxes");
  }
  return {TensorType{DType::I64, Shape{Shape::unknown, 3}}};
}

SuppressionRule rule_of(std::span<const Data> in) {
  SuppressionRule rule;
  const auto most = integers_at(in, 2);
  if (!most.empty()) rule.most = static_cast<size_t>(std::max<int64_t>(most[0], 0));
  const auto overlap = doubles_at(in, 3);
  if (!overlap.empty()) rule.overlap = overlap[0];
  const auto score = doubles_at(in, 4);
  if (!score.empty()) rule.score = score[0];
  return rule;
}

void run_suppression(const OpCall& call, std::span<const Data> in, Outputs& out) {
  infer_suppression(with_data(call, in));
  const Shape& shape = in[1].tensor().shape();
  const auto batches = static_cast<size_t>(shape[0]);
  const auto classes = static_cast<size_t>(shape[1]);
  const auto count = static_cast<size_t>(shape[2]);
  const auto numbers = doubles(in[0].tensor());
  const auto scores = doubles(in[1].tensor());
  const SuppressionRule rule = rule_of(in);
  std::vector<Box> boxes;
  for (size_t i = 0; i < batches * count; ++i) boxes.push_back(box_at(numbers, i, call.integer("center_point_box", 0) != 0));
  std::vector<int64_t> selected;
  for (size_t batch = 0; batch < batches && count > 0; ++batch) {  // Without boxes there may be 2^40 batches or classes.
    for (size_t c = 0; c < classes && rule.most > 0; ++c) {
      const auto class_scores = std::span(scores).subspan((batch * classes + c) * count, count);
      for (const size_t i : kept_boxes(std::span(boxes).subspan(batch * count, count), class_scores, rule)) {
        for (const size_t part : {batch, c, i}) selected.push_back(static_cast<int64_t>(part));
      }
    }
  }
  store(out.allocate(0, {DType::I64, Shape{static_cast<int64_t>(selected.size() / 3), 3}}), std::span<const int64_t>(selected));
}

std::vector<Type> infer_reverse_sequence(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  const int64_t time = call.integer("time_axis", 0);
  const int64_t batch = call.integer("batch_axis", 1);
  if (time < 0 || time > 1 || batch != 1 - time) {
    fail(ErrorKind::InvalidModel, title(call), ": time_axis ", time, " and batch_axis ", batch, " are not 0 and 1");
  }
  require_rank(call, 1, 1);
  if (shape.has_rank() && shape.rank() < 2)
    fail(ErrorKind::InvalidModel, title(call), ": shape ", shape, " has no time and batch");
  if (shape.has_rank() && call.input(1).shape.has_rank())
    same_dim(call, shape[static_cast<size_t>(batch)], call.input(1).shape[0], "the batch");
  return {call.input(0)};
}

void run_reverse_sequence(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  Tensor& result = allocate_inferred(call, in, out, infer_reverse_sequence);
  const auto time = static_cast<size_t>(call.integer("time_axis", 0));
  const auto lengths = integers(in[1].tensor());
  const auto strides = data.shape().strides();
  for (const int64_t length : lengths) {
    if (length < 0 || length > data.shape()[time]) {
      fail(ErrorKind::InvalidArgument, title(call), ": a length of ", length, " for ", data.shape()[time], " steps");
    }
  }
  const ElementCopy copy(data, result);
  for_each_index(data.shape(), [&](int64_t i, const std::vector<int64_t>& index) {
    const int64_t length = lengths[static_cast<size_t>(index[1 - time])];
    const int64_t from = index[time] < length ? length - 1 - index[time] : index[time];
    copy(i + (from - index[time]) * strides[time], i);
  });
}

Op chooser(std::string name, std::string summary) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", plain_types())};
  op.outputs = {required("Y", every_type())};
  op.rounding = Rounding::MoveBits;
  op.category = Category::DynamicOutput;
  return op;
}

Op non_zero() {
  Op op = chooser("NonZero", "The places of the elements that are not zero, one row an axis.");
  op.outputs = {required("Y", {DType::I64})};
  op.infer = infer_non_zero;
  op.reference = run_non_zero;
  op.cases = {"T[3,4]", "i32[2,3]{1,0,0,-1,0,5}", "bool[2,3,2]", "T[0,4]", "T[]{3}", "T[]{0}", "f32[4]{0,-0,nan,1}"};
  return op;
}

Op compress() {
  Op op = chooser("Compress", "The slices along an axis, or the elements, whose condition is true.");
  op.inputs = {required("input", every_type()), required("condition", {DType::Bool})};
  op.infer = infer_compress;
  op.reference = run_compress;
  op.cases = {"T[3,2] bool[3]{0,1,1} axis=0", "T[3,2] bool[2]{0,1} axis=1,-1", "T[3,2] bool[5]{0,1,0,0,1}",
              "T[3,2] bool[2]{0,1} axis=0",   "T[0,2] bool[2]{1,0} axis=1",    "string[3] bool[3]{1,0,1}"};
  return op;
}

Op non_max_suppression() {
  Op op = chooser("NonMaxSuppression", "The boxes of each class that do not overlap a better scored one.");
  op.inputs = {required("boxes", {DType::F32}), required("scores", {DType::F32}),
               optional("max_output_boxes_per_class", {DType::I64}), optional("iou_threshold", {DType::F32}),
               optional("score_threshold", {DType::F32})};
  op.outputs = {required("selected_indices", {DType::I64})};
  op.attributes = {{"center_point_box", int64_t{0}}};
  op.infer = infer_suppression;
  op.reference = run_suppression;
  op.rounding = Rounding::Quantise;
  op.cases = {
      "f32[1,6,4]{0,0,1,1,0,0.1,1,1.1,0,-0.1,1,0.9,0,10,1,11,0,10.1,1,11.1,0,100,1,101} f32[1,1,6]{0.9,0.75,0.6,0.95,0.5,0.3} "
      "i64[1]{3} f32[1]{0.5} f32[1]{0}",
      "f32[2,20,4]~unit f32[2,3,20]~unit i64[1]{4} f32[1]{0.3} f32[1]{0.2} center_point_box=0,1",
      "f32[1,5,4]~unit f32[1,1,5]~unit",
      "f32[1,5,4]~unit f32[1,2,5]~unit i64[]{9}",
      "f32[1,0,4] f32[1,1,0] i64[]{9}",
      "f32[1,3,4]~unit f32[1,1,3]{0.5,0.5,0.5} i64[]{2} f32[]{1}"};
  return op;
}

Op reverse_sequence() {
  Op op = chooser("ReverseSequence", "The first steps of each sequence in reverse order.");
  op.inputs = {required("input", tensor_types()), required("sequence_lens", {DType::I64})};
  op.attributes = {{"batch_axis", int64_t{1}}, {"time_axis", int64_t{0}}};
  op.infer = infer_reverse_sequence;
  op.reference = run_reverse_sequence;
  op.category = Category::Layout;
  op.cases = {"T[4,4] i64[4]{4,3,2,1}", "T[3,5] i64[3]{5,0,2} time_axis=1 batch_axis=0", "T[4,2,3] i64[2]{3,1}",
              "T[0,2] i64[2]{0,0}", "string[2,1] i64[1]{2}"};
  return op;
}

}  // namespace

void add_selection_ops(OpSet& ops) {
  ops.add(non_zero());
  ops.add(compress());
  ops.add(non_max_suppression());
  ops.add(reverse_sequence());
}

}  // namespace unmoor
