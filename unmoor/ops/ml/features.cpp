#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor::ml {
namespace {

std::vector<Type> infer_extractor(const OpCall& call) {
  const TensorType& data = call.input(0);
  const Shape& places = call.input(1).shape;
  if (!data.shape.has_rank()) return {data};
  if (data.shape.rank() == 0) fail(ErrorKind::InvalidModel, title(call), ": input 0 is a scalar, which has no features");
  Shape shape;
  // A vector gives a matrix of one row: the text is silent, both evaluators do so.
  if (data.shape.rank() == 1) shape.push_back(1);
  for (size_t axis = 0; axis + 1 < data.shape.rank(); ++axis) shape.push_back(data.shape, axis);
  if (places.has_rank()) {
    push_product(shape, places, 0, places.rank());
  } else {
    shape.push_back(Shape::unknown);
  }
  return {TensorType{data.dtype, std::move(shape)}};
}

void check_places(const OpCall& call, std::span<const int64_t> places, int64_t width) {
  for (const int64_t place : places) {
    if (place < 0 || place >= width) {
      fail(ErrorKind::InvalidArgument, title(call), ": index ", place, " is outside of [0,", width, ")");
    }
  }
}

void run_extractor(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const std::vector<int64_t> places = integers(in[1].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_extractor);
  const Split split = split_at(data.shape(), data.shape().rank() - 1);
  const auto width = static_cast<int64_t>(split.length);
  check_places(call, places, width);
  const ElementCopy copy(data, result);
  int64_t to = 0;
  for (int64_t row = 0; row < static_cast<int64_t>(split.outer) && !places.empty(); ++row) {
    for (const int64_t place : places) copy(row * width + place, to++);
  }
}

void expand_extractor(GraphBuilder& b) {
  const OpCall& call = b.call();
  const Shape& shape = call.input(0).shape;
  const auto places = constant_integers(call, 1);
  if (!places || !shape.has_rank() || shape.rank() == 0 || shape[shape.rank() - 1] < 0) {
    fail(ErrorKind::Unsupported, title(call), " cannot be expanded: its indices are not known");
  }
  check_places(call, *places, shape[shape.rank() - 1]);
  ValueId picked = b.add("Gather", {b.input(0), b.ints(*places)}, {{"axis", int64_t{-1}}});
  if (shape.rank() == 1) picked = b.add("Unsqueeze", {picked, b.ints({0})});
  b.output(0, picked);
}

// The sizes that the inputs take in the output, by input; unknown ones -1.
std::vector<int64_t> widths_of(const OpCall& call) {
  const std::vector<int64_t> given = call.integers("inputdimensions");
  if (!given.empty()) require_length(call, "inputdimensions", given.size(), call.input_count());
  std::vector<int64_t> widths;
  int64_t sum = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    widths.push_back(given.empty() ? rows_of(call, call.input(i).shape).width : given[i]);
    if (!given.empty() && (given[i] < 0 || given[i] > std::numeric_limits<int64_t>::max() - sum)) {
      fail(ErrorKind::InvalidModel, title(call), ": inputdimensions has ", given[i], ", which is no size");
    }
    sum += std::max<int64_t>(widths.back(), 0);
  }
  return widths;
}

std::vector<Type> infer_vectorizer(const OpCall& call) {
  if (call.input_count() == 0 || !call.has(0)) fail(ErrorKind::InvalidModel, title(call), ": there is no input");
  require_same_dtype(call);
  Shape shape = per_row(call, call.input(0).shape);
  int64_t width = 0;
  for (const int64_t each : widths_of(call)) width = each < 0 || width < 0 ? Shape::unknown : width + each;
  for (size_t i = 1; i < call.input_count(); ++i) {
    const int64_t count = same_dim(call, shape[0], rows_of(call, call.input(i).shape).count, "the number of rows");
    if (count != shape[0]) shape.set(0, count);
  }
  shape.push_back(width);
  return {TensorType{float_output(call), std::move(shape)}};
}

// Features beyond the size that `inputdimensions` gives are left out, missing ones are 0, as both evaluators do.
void run_vectorizer(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const OpCall known = with_data(call, in);
  Tensor& result = allocate_inferred(call, in, out, infer_vectorizer);
  const std::vector<int64_t> widths = widths_of(known);
  const auto count = static_cast<size_t>(result.shape()[0]);
  const auto width = static_cast<size_t>(result.shape()[1]);
  check_memory(result.elements() * sizeof(double));
  std::vector<double> y(result.elements());
  size_t start = 0;
  for (size_t i = 0; i < in.size() && width > 0; ++i) {
    const std::vector<double> x = doubles(in[i].tensor());
    const auto from = static_cast<size_t>(rows_of(call, in[i].tensor().shape()).width);
    const size_t taken = std::min(from, static_cast<size_t>(widths[i]));
    for (size_t row = 0; row < count; ++row) std::copy_n(x.data() + row * from, taken, y.data() + row * width + start);
    start += static_cast<size_t>(widths[i]);
  }
  store(result, std::span<const double>(y));
}

void expand_vectorizer(GraphBuilder& b) {
  const OpCall& call = b.call();
  const std::vector<int64_t> widths = widths_of(call);
  std::vector<ValueId> parts;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const Shape& shape = call.input(i).shape;
    const Rows rows = rows_of(call, shape);
    if (rows.width < 0) fail(ErrorKind::Unsupported, title(call), " cannot be expanded: the width of input ", i, " is not known");
    ValueId part = b.add("Cast", {b.input(i)}, {{"to", onnx_number(float_output(call))}});
    if (shape.rank() == 1) part = b.add("Unsqueeze", {part, b.ints({0})});
    if (widths[i] != rows.width) part = b.add("Pad", {part, b.ints({0, 0, 0, widths[i] - rows.width})});
    parts.push_back(part);
  }
  b.output(0, b.add("Concat", std::move(parts), {{"axis", int64_t{1}}}));
}

std::vector<Type> infer_binarizer(const OpCall& call) {
  call.real("threshold", 0);
  return like_first(call);
}

// Whether each element is above the threshold, exactly for every integer.
std::vector<int64_t> above(const Tensor& data, double threshold) {
  std::vector<int64_t> result;
  if (is_float(data.dtype())) {
    for (const double x : doubles(data)) result.push_back(x > threshold ? 1 : 0);
    return result;
  }
  const double floor = std::floor(threshold);
  for (const int64_t x : integers(data)) {
    const bool is_above = floor < -0x1p63 || (floor < 0x1p63 && x > static_cast<int64_t>(floor));
    result.push_back(is_above ? 1 : 0);
  }
  return result;
}

void run_binarizer(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  store(out.allocate(0, data.type()), std::span<const int64_t>(above(data, call.real("threshold", 0))));
}

void expand_binarizer(GraphBuilder& b) {
  const OpCall& call = b.call();
  const DType dtype = call.input(0).dtype;
  if (!is_float(dtype))
    fail(ErrorKind::Unsupported, title(call), " of integers is not expanded: its threshold may have a fraction");
  const ValueId is_above = b.add("Greater", {b.input(0), b.scalar(call.real("threshold", 0), dtype)});
  b.output(0, b.add("Cast", {is_above}, {{"to", onnx_number(dtype)}}));
}

Op array_feature_extractor() {
  Op op = ml_op("ArrayFeatureExtractor", "The features at the given places of the last dimension.");
  std::vector<DType> types = feature_types();
  types.push_back(DType::String);
  op.inputs = {required("X", types), required("Y", {DType::I64})};
  op.outputs = {required("Z", types)};
  op.infer = infer_extractor;
  op.reference = run_extractor;
  op.expand = expand_extractor;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {"T[3,4] i64[2]{0,1}",      "T[3,4] i64[1,3]{3,0,3}",   "T[4] i64[2]{3,1}", "T[2,3,4] i64[2]{1,0}",
              "T[3,4] i64[]{2}",         "T[3,4] i64[2,2]{0,1,2,3}", "T[3,4] i64[0]",    "T[0,4] i64[2]{1,1}",
              "string[2,3] i64[2]{2,0}", "T[3,4] i64[5]~index:4",    "T[1,1] i64[1]{0}", "string[3] i64[1]{1}",
              "T[5] i64[3]~index:5"};
  return op;
}

Op feature_vectorizer() {
  Op op = ml_op("FeatureVectorizer", "All inputs beside each other, as floats.");
  op.inputs = {variadic("X", feature_types())};
  op.outputs = {required("Y", {DType::F32})};
  op.attributes = {{"inputdimensions", std::vector<int64_t>()}};
  op.infer = infer_vectorizer;
  op.reference = run_vectorizer;
  op.expand = expand_vectorizer;
  op.category = Category::Layout;
  op.cases = {"T[3,2]~small T[3,4]~small inputdimensions=[2,4]",
              "T[3,2]~small T[3,4]~small",
              "T[3,2]~small T[3,1]~small T[3,3]~small inputdimensions=[2,1,3]",
              "T[3]~small T[2]~small inputdimensions=[3,2]",
              "T[3]~small T[1,2]~small",
              "T[2,3]~small T[2,2]~small inputdimensions=[2,4]",
              "T[2,3]~small inputdimensions=[0]",
              "T[0,3] T[0,2] inputdimensions=[3,2]",
              "T[2,3]~small",
              "f64[1,2]{1e40,1e-50} f64[1,1]{0.1}",
              "i64[1,2]{16777217,-3} inputdimensions=[2]"};
  return op;
}

Op binarizer() {
  Op op = ml_op("Binarizer", "1 where an element is above the threshold, else 0.");
  op.inputs = {required("X", feature_types())};
  op.outputs = {required("Y", feature_types())};
  op.attributes = {{"threshold", 0.0F}};
  op.infer = infer_binarizer;
  op.reference = run_binarizer;
  op.expand = expand_binarizer;
  op.cost = cost_per_output(1);
  op.rounding = Rounding::Quantise;
  op.cases = {"T[3,4,5]~small threshold=0,1,-0.5",
              "T[7]~small",
              "T[] threshold=-1",
              "T[0,3] threshold=1",
              "T[2,2]{1,1.5,2,-1} threshold=1",
              "i32[4]{1,2,-1,-2} threshold=1.5,-1.5",
              "f32[5]{nan,inf,-inf,0,-0} threshold=0",
              "f32[2]{1,inf} threshold=inf,nan",
              "i64[3]{9223372036854775807,-9223372036854775808,0} threshold=9.3e18,-9.3e18,9.2e18",
              "f64[2]{1.00000001,1} threshold=1",
              "f32[3,4] threshold=60000"};
  return op;
}

}  // namespace

void add_feature_ops(OpSet& ops) {
  ops.add(array_feature_extractor());
  ops.add(feature_vectorizer());
  ops.add(binarizer());
}

}  // namespace unmoor::ml
