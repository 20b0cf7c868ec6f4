#include "unmoor/ops/formula.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {

Formula::Formula(GraphBuilder& builder) : builder_(builder), dtype_(builder.call().input(0).dtype) {
  if (dtype_ != DType::F64 && is_float(dtype_)) dtype_ = DType::F32;
}

ValueId Formula::cast(ValueId value, DType dtype) {
  if (type(value).dtype == dtype) return value;
  return add("Cast", {value}, {{"to", onnx_number(dtype)}});
}

ValueId Formula::wide(ValueId value) { return cast(value, dtype_); }

ValueId Formula::reduce(std::string op, ValueId a, std::vector<int64_t> axes) {
  return add(std::move(op), {a, ints(std::move(axes))}, {{"keepdims", int64_t{1}}});
}

void Formula::output(size_t i, ValueId value) { builder_.output(i, cast(value, call().output(i).dtype)); }

const TensorType& Formula::type(ValueId value) const {
  if (const auto* tensor = std::get_if<TensorType>(&builder_.type(value))) return *tensor;
  fail(ErrorKind::Internal, "the expansion of ", call().node.op, " met a value that is no tensor");
}

}  // namespace unmoor
