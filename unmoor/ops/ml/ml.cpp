#include "unmoor/ops/ml/ml.h"

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {

void add_ml_ops(OpSet& ops) {
  ml::add_encoder_ops(ops);
  ml::add_feature_ops(ops);
  ml::add_scaling_ops(ops);
  ml::add_linear_ops(ops);
  ml::add_map_ops(ops);
  ml::add_svm_ops(ops);
  ml::add_tree_ops(ops);
}

namespace ml {

Op ml_op(std::string_view op_name, std::string summary) {
  Op op;
  op.name = cat("ai.onnx.ml:", op_name);
  op.summary = std::move(summary);
  return op;
}

const std::vector<DType>& feature_types() {
  static const std::vector<DType> list{DType::F32, DType::F64, DType::I64, DType::I32};
  return list;
}

DType float_output(const OpCall& call) {
  const int64_t number = call.integer("output_dtype", onnx_number(DType::F32));
  const auto dtype = dtype_numbered(number);
  if (!dtype || (*dtype != DType::F32 && *dtype != DType::F64)) {
    fail(ErrorKind::InvalidModel, title(call), ": output_dtype is ", number, ", which is neither float32 nor float64");
  }
  return *dtype;
}

Rows rows_of(const OpCall& call, const Shape& shape) {
  if (!shape.has_rank()) return {};
  if (shape.rank() == 1) return {1, shape[0]};
  if (shape.rank() == 2) return {shape[0], shape[1]};
  fail(ErrorKind::InvalidModel, title(call), ": the input has shape ", shape, ", not [N,C] or [C]");
}

Shape per_row(const OpCall& call, const Shape& input) {
  const Rows rows = rows_of(call, input);
  Shape shape;
  if (input.has_rank() && input.rank() == 2) {
    shape.push_back(input, 0);
  } else {
    shape.push_back(rows.count);
  }
  return shape;
}

Shape per_row(const OpCall& call, const Shape& input, int64_t columns) {
  Shape shape = per_row(call, input);
  shape.push_back(columns);
  return shape;
}

std::vector<double> real_list(const OpCall& call, std::string_view key) {
  const std::vector<float> values = call.reals(key);
  return {values.begin(), values.end()};
}

void require_length(const OpCall& call, std::string_view key, size_t found, size_t wanted) {
  if (found != wanted)
    fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' has ", found, " elements, not ", wanted);
}

DType arithmetic_type(const OpCall& call) { return call.input(0).dtype == DType::F32 ? DType::F32 : DType::F64; }

ValueId list_constant(GraphBuilder& builder, std::span<const double> values, DType dtype) {
  Tensor tensor(TensorType{dtype, Shape{static_cast<int64_t>(values.size())}});
  store(tensor, values);
  return builder.constant(std::move(tensor));
}

Labels labels_of(const OpCall& call, std::string_view numbers_key, std::string_view texts_key) {
  Labels labels{call.integers(numbers_key), call.texts(texts_key)};
  if (labels.numbers.empty() == labels.texts.empty()) {
    fail(ErrorKind::InvalidModel, title(call), ": one and only one of the attributes '", numbers_key, "' and '", texts_key,
         "' must have labels");
  }
  return labels;
}

void put_labels(const OpCall& call, Outputs& out, const Labels& labels, std::span<const int64_t> places) {
  if (!call.wants_output(0)) return;
  Tensor& result = out.allocate(0, {labels.dtype(), Shape{static_cast<int64_t>(places.size())}});
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) continue;
    const auto place = static_cast<size_t>(places[i]);
    if (labels.texts.empty()) {
      result.writable_span<int64_t>()[i] = labels.numbers.at(place);
    } else {
      result.writable_strings()[i] = labels.texts.at(place);
    }
  }
}

int64_t top_class(std::span<const double> scores) {
  size_t best = 0;
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return static_cast<int64_t>(best);
}

}  // namespace ml
}  // namespace unmoor
