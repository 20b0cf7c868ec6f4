#include "unmoor/ops/optional.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/type_union.h"

namespace unmoor {
namespace {

std::vector<Type> infer_optional(const OpCall& call) {
  if (call.has(0)) return {optional_of(*call.inputs[0])};
  const auto found = call.node.attributes.find("type");
  const Type* type = found == call.node.attributes.end() ? nullptr : std::get_if<Type>(&found->second);
  if (type == nullptr) fail(ErrorKind::InvalidModel, title(call), ": it has neither an input nor a type");
  return {optional_of(*type)};
}

void run_optional(const OpCall&, std::span<const Data> in, Outputs& out) {
  if (!in.empty()) out.set(0, owned(in[0]));
}

std::vector<Type> infer_has_element(const OpCall&) { return {TensorType{DType::Bool, Shape()}}; }

void run_has_element(const OpCall&, std::span<const Data> in, Outputs& out) {
  const int64_t has = !in.empty() && in[0] ? 1 : 0;
  store(out.allocate(0, {DType::Bool, Shape()}), std::span<const int64_t>(&has, 1));
}

// ONNX also allows what is no optional, and passes it on.
std::vector<Type> infer_get_element(const OpCall& call) {
  if (!call.has(0)) fail(ErrorKind::InvalidModel, title(call), ": its input is absent");
  const auto* optional = std::get_if<OptionalType>(&*call.inputs[0]);
  if (optional == nullptr) return {*call.inputs[0]};
  if (!optional->element) return {TensorType{DType::F32, Shape::of_unknown_rank()}};
  return {*optional->element};
}

void run_get_element(const OpCall& call, std::span<const Data> in, Outputs& out) {
  if (in.empty() || !in[0]) fail(ErrorKind::InvalidArgument, title(call), ": the optional is empty");
  out.set(0, owned(in[0]));
}

Op optional_op(std::string name, std::string summary, Port input) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {std::move(input)};
  op.outputs = {required("output", {})};
  op.rounding = Rounding::MoveBits;
  op.category = Category::Sequence;
  return op;
}

}  // namespace

void add_optional_ops(OpSet& ops) {
  Op make = optional_op("Optional", "Its input as an optional, or an empty one.", optional("input", {}));
  make.infer = infer_optional;
  make.reference = run_optional;
  ops.add(std::move(make));

  Op has = optional_op("OptionalHasElement", "Whether an optional holds something.", optional("input", {}));
  has.infer = infer_has_element;
  has.reference = run_has_element;
  has.cases = {"f32[2]", "-"};
  ops.add(std::move(has));

  Op get = optional_op("OptionalGetElement", "What an optional holds.", required("input", {}));
  get.infer = infer_get_element;
  get.reference = run_get_element;
  get.cases = {"T[2,3]"};
  ops.add(std::move(get));
}

}  // namespace unmoor
