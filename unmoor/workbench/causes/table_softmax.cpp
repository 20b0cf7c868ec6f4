#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/workbench/causes/table.h"

namespace unmoor::causes {
namespace {

int64_t axis_of(const Situation& at) {
  const auto rank = static_cast<int64_t>(at.tensor(0).shape().rank());
  const int64_t axis = at.call.integer("axis", -1);
  return axis < 0 ? axis + rank : axis;
}

// What the target's dtype makes of e^x: infinite or 0 beyond its range.
ValueId limited(GraphBuilder& builder, ValueId power, const Format& format) {
  const DType dtype = std::get<TensorType>(builder.type(power)).dtype;
  const ValueId infinite = builder.scalar(std::numeric_limits<double>::infinity(), dtype);
  const ValueId large = builder.add("Greater", {power, builder.scalar(format.largest, dtype)});
  const ValueId small = builder.add("Less", {power, builder.scalar(step_at(format, 0) / 2, dtype)});
  const ValueId rest = builder.add("Where", {small, builder.scalar(0, dtype), power});
  return builder.add("Where", {large, infinite, rest});
}

std::vector<Change> unstable(const Situation& at) {
  std::vector<Change> changes;
  for (const Format& format : {float32_format, float16_format}) {
    if (format == float16_format && at.stored != DType::F16) continue;
    auto change = with_edit(at, [&format](const Copied& node) -> std::optional<ValueId> {
      if (node.node.op == "Exp" || node.node.op == "ReduceSum") {
        const ValueId made = node.builder.add(node.node.op, {node.inputs.begin(), node.inputs.end()}, node.node.attributes);
        return limited(node.builder, made, format);
      }
      if (node.node.op != "Sub") return std::nullopt;
      const Node* const most = node.producer(node.node.inputs[1]);
      return most != nullptr && most->op == "ReduceMax" ? std::optional(node.inputs[0]) : std::nullopt;
    });
    if (!change) continue;
    change->same_values = true;
    changes.push_back(std::move(*change));
  }
  return changes;
}

std::vector<Change> other_axis(const Situation& at) {
  std::vector<Change> changes;
  const auto rank = static_cast<int64_t>(at.tensor(0).shape().rank());
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    if (axis != axis_of(at)) changes.push_back(with_attribute(at, "axis", axis, cat("axis ", axis)));
  }
  return changes;
}

// Before opset 13 Softmax ran over all axes from its own on, taken as one.
std::vector<Change> flattened(const Situation& at) {
  std::vector<Change> changes;
  const Shape& shape = at.tensor(0).shape();
  const size_t rank = shape.rank();
  std::vector<size_t> firsts{1};
  if (axis_of(at) != 1) firsts.push_back(static_cast<size_t>(axis_of(at)));
  for (const size_t first : firsts) {
    if (first + 1 >= rank) continue;  // One axis alone is the same as ever.
    Change change = with_attribute(at, "axis", int64_t{-1}, cat("from axis ", first, " on"));
    change.inputs[0] = at.tensor(0).reshaped(Shape{shape.elements(0, first), shape.elements(first, rank)});
    change.shape = shape;
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

void add_softmax_causes(std::vector<Entry>& table) {
  const std::vector<std::string_view> ops{"Softmax", "LogSoftmax"};
  table.push_back({"softmax-unstable", "computes the softmax without subtracting the maximum",
                   "Use the target's stable softmax, or subtract the maximum before it.", 2, true, ops, unstable});
  table.push_back(
      {"softmax-axis", "runs the softmax over another axis", "Set the axis of the target's softmax.", 1, true, ops, other_axis});
  table.push_back({"softmax-flattened", "runs the softmax over all the last axes at once, as opsets before 13 did",
                   "Convert the model to opset 13 or later, or reshape around the operator.", 1, true, ops, flattened});
}

}  // namespace unmoor::causes
