#include <algorithm>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/formula.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/ml/post_transform.h"
#include "unmoor/ops/moving.h"

namespace unmoor::ml {
namespace {

// Rows of weights, one a score, and what is added to each score.
struct Weights {
  std::vector<double> coefficients;  // [count, width]
  std::vector<double> intercepts;    // [count], or empty.
  size_t count = 0;
  size_t width = 0;
};

// `count` scores from the attributes. Fails with InvalidModel where sizes do not fit; `width`, the input's features, may be
// unknown.
Weights weights_of(const OpCall& call, size_t count, int64_t width) {
  Weights weights{real_list(call, "coefficients"), real_list(call, "intercepts"), count, 0};
  if (weights.coefficients.empty()) fail(ErrorKind::InvalidModel, title(call), ": the attribute 'coefficients' is missing");
  if (!weights.intercepts.empty()) require_length(call, "intercepts", weights.intercepts.size(), count);
  if (weights.coefficients.size() % count != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": ", weights.coefficients.size(), " coefficients are no rows for ", count,
         " scores");
  }
  weights.width = weights.coefficients.size() / count;
  if (width >= 0 && static_cast<size_t>(width) != weights.width) {
    fail(ErrorKind::InvalidModel, title(call), ": there are ", weights.coefficients.size(), " coefficients for ", count,
         " scores of ", width, " features");
  }
  return weights;
}

// Scores [rows, count].
std::vector<double> scores_of(const Weights& weights, std::span<const double> x, size_t rows) {
  std::vector<double> scores(rows * weights.count);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t k = 0; k < weights.count; ++k) {
      double sum = 0;
      for (size_t i = 0; i < weights.width; ++i) sum += x[row * weights.width + i] * weights.coefficients[k * weights.width + i];
      scores[row * weights.count + k] = sum + (weights.intercepts.empty() ? 0 : weights.intercepts[k]);
    }
  }
  return scores;
}

Cost linear_cost(const OpCall& call, size_t count) {
  const double weights = static_cast<double>(call.reals("coefficients").size());
  const Shape& shape = call.input(0).shape;
  const double rows =
      shape.is_known() && shape.rank() > 0 ? static_cast<double>(std::max<int64_t>(rows_of(call, shape).count, 0)) : 0;
  return {rows * (2 * weights + static_cast<double>(count)), bytes_moved(call) + 4 * weights};
}

// The scores of a row before the transform, as a graph.
ValueId scores_graph(Formula& f, GraphBuilder& b, const Weights& weights) {
  ValueId x = f.input(0);
  const Shape& shape = f.call().input(0).shape;
  if (!shape.has_rank()) fail(ErrorKind::Unsupported, title(f.call()), " cannot be expanded: the input's rank is not known");
  if (shape.rank() == 1) x = f.add("Unsqueeze", {x, f.ints({0})});
  Tensor rows(TensorType{f.dtype(), Shape{static_cast<int64_t>(weights.count), static_cast<int64_t>(weights.width)}});
  store(rows, std::span<const double>(weights.coefficients));
  std::vector<ValueId> inputs{x, b.constant(std::move(rows))};
  if (!weights.intercepts.empty()) inputs.push_back(list_constant(b, weights.intercepts, f.dtype()));
  return f.add("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
}

ValueId transformed(Formula& f, ValueId scores) {
  switch (post_transform_of(f.call())) {
    case PostTransform::None:
      return scores;
    case PostTransform::Softmax:
      return f.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
    case PostTransform::Logistic:
      return f.add("Sigmoid", {scores});
    default:
      fail(ErrorKind::Unsupported, title(f.call()), " is not expanded with post_transform ", f.call().text("post_transform", ""));
  }
}

// One row of weights serves two labels: its score decides for the second.
bool is_binary(const OpCall& call, const Labels& labels) {
  if (labels.size() != 2) return false;
  const size_t intercepts = call.reals("intercepts").size();
  if (intercepts > 0) return intercepts == 1;
  const int64_t width = rows_of(call, call.input(0).shape).width;
  return width >= 0 && call.reals("coefficients").size() == static_cast<size_t>(width);
}

struct Classifier {
  Labels labels;
  bool binary = false;
  Weights weights;
};

Classifier classifier_of(const OpCall& call) {
  Classifier found{labels_of(call, "classlabels_ints", "classlabels_strings"), false, {}};
  found.binary = is_binary(call, found.labels);
  found.weights = weights_of(call, found.binary ? 1 : found.labels.size(), rows_of(call, call.input(0).shape).width);
  return found;
}

std::vector<Type> infer_classifier(const OpCall& call) {
  post_transform_of(call);
  const Shape& shape = call.input(0).shape;
  const Labels labels = labels_of(call, "classlabels_ints", "classlabels_strings");
  if (rows_of(call, shape).width >= 0) classifier_of(call);
  return {TensorType{labels.dtype(), per_row(call, shape)},
          TensorType{float_output(call), per_row(call, shape, static_cast<int64_t>(labels.size()))}};
}

// The top class is that of the scores before the transform. With two labels and one row the scores are -s and s, as in ONNX's
// evaluator, so that the higher one is the label's; ONNX Runtime writes 1-s and s, and leaves out the transform, which the text
// does not allow. With one label the class is that label where the score is positive, else 0 or "".
void run_classifier(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const OpCall known = with_data(call, in);
  const Classifier classifier = classifier_of(known);
  const auto rows = static_cast<size_t>(rows_of(known, known.input(0).shape).count);
  const std::vector<double> sums = scores_of(classifier.weights, doubles(in[0].tensor()), rows);
  const PostTransform how = post_transform_of(call);
  const size_t columns = classifier.labels.size();
  std::vector<double> scores(rows * columns);
  std::vector<int64_t> places(rows);
  for (size_t row = 0; row < rows; ++row) {
    const auto line = std::span(scores).subspan(row * columns, columns);
    if (classifier.binary) {
      line[0] = -sums[row];
      line[1] = sums[row];
    } else {
      for (size_t k = 0; k < columns; ++k) line[k] = sums[row * columns + k];
    }
    places[row] = columns > 1 ? top_class(line) : line[0] > 0 ? 0 : -1;
    transform(how, line);
  }
  put_labels(call, out, classifier.labels, places);
  if (call.wants_output(1)) {
    const Shape shape{static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    store(out.allocate(1, {float_output(call), shape}), std::span<const double>(scores));
  }
}

void expand_classifier(GraphBuilder& b) {
  const OpCall& call = b.call();
  if (rows_of(call, call.input(0).shape).width < 0)
    fail(ErrorKind::Unsupported, title(call), " cannot be expanded: its features are not known");
  const Classifier classifier = classifier_of(call);
  if (!classifier.labels.texts.empty() || classifier.labels.size() < 2) {
    fail(ErrorKind::Unsupported, title(call), " is expanded only with two integer labels or more");
  }
  Formula f(b, arithmetic_type(call));
  ValueId scores = scores_graph(f, b, classifier.weights);
  if (classifier.binary) scores = f.add("Concat", {f.add("Neg", {scores}), scores}, {{"axis", int64_t{1}}});
  const ValueId place = f.add("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  b.output(0, f.add("Gather", {b.ints(classifier.labels.numbers), place}));
  if (call.wants_output(1)) f.output(1, transformed(f, scores));
}

size_t targets_of(const OpCall& call) {
  const int64_t targets = call.integer("targets", 1);
  if (targets < 1 || targets > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::InvalidModel, title(call), ": targets is ", targets);
  return static_cast<size_t>(targets);
}

std::vector<Type> infer_regressor(const OpCall& call) {
  post_transform_of(call);
  const size_t targets = targets_of(call);
  const Shape& shape = call.input(0).shape;
  weights_of(call, targets, rows_of(call, shape).width);
  return {TensorType{float_output(call), per_row(call, shape, static_cast<int64_t>(targets))}};
}

void run_regressor(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Rows rows = rows_of(call, in[0].tensor().shape());
  const Weights weights = weights_of(call, targets_of(call), rows.width);
  std::vector<double> scores = scores_of(weights, doubles(in[0].tensor()), static_cast<size_t>(rows.count));
  transform_rows(post_transform_of(call), scores, weights.count);
  store(allocate_inferred(call, in, out, infer_regressor), std::span<const double>(scores));
}

void expand_regressor(GraphBuilder& b) {
  const OpCall& call = b.call();
  Formula f(b, arithmetic_type(call));
  const Weights weights = weights_of(call, targets_of(call), rows_of(call, call.input(0).shape).width);
  f.output(0, transformed(f, scores_graph(f, b, weights)));
}

Op linear_classifier() {
  Op op = ml_op("LinearClassifier", "The label with the highest score, and the scores: features times weights, and a transform.");
  op.inputs = {required("X", feature_types())};
  op.outputs = {required("Y", {DType::String, DType::I64}), optional("Z", {DType::F32})};
  op.attributes = {{"coefficients", std::vector<float>()},
                   {"intercepts", std::vector<float>()},
                   {"multi_class", int64_t{0}},
                   {"classlabels_strings", std::vector<std::string>()},
                   {"classlabels_ints", std::vector<int64_t>()},
                   {"post_transform", std::string("NONE")}};
  op.infer = infer_classifier;
  op.reference = run_classifier;
  op.expand = expand_classifier;
  op.cost = [](const OpCall& call) {
    return linear_cost(call, std::max(call.texts("classlabels_strings").size(), call.integers("classlabels_ints").size()));
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Matrix;
  const std::string weights = " coefficients=[0.5,-1,2,1,0.25,-0.5] intercepts=[0.1,-0.2,0.3]";
  op.cases = {
      cat("T[5,2]~small classlabels_ints=[7,-8,9] outputs=2 post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT", weights),
      cat("T[5,2]~small classlabels_strings=[a,\"b c\",d] outputs=2 post_transform=NONE,SOFTMAX", weights),
      "T[5,3]~small coefficients=[1,-1,0.5] intercepts=[0.25] classlabels_ints=[3,4] outputs=2 "
      "post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT",
      "T[5,3]~small coefficients=[1,-1,0.5] intercepts=[0.25] classlabels_strings=[no,yes] outputs=2",
      "T[5,3]~small coefficients=[1,-1,0.5] classlabels_ints=[3,4] outputs=2 post_transform=NONE,LOGISTIC",
      "T[5,3]~small coefficients=[1,-1,0.5] intercepts=[0.25] classlabels_ints=[1] outputs=2 post_transform=NONE,LOGISTIC",
      "T[4,3]~small coefficients=[1,-1,0.5] classlabels_strings=[yes] outputs=2",
      cat("T[2]~small classlabels_ints=[0,1,2] outputs=2", weights),
      cat("T[0,2] classlabels_ints=[0,1,2] outputs=2", weights),
      cat("T[1,2]~small classlabels_ints=[0,1,2] multi_class=1", weights),
      "f32[2,2]{0,0,1,1} coefficients=[1,-1,1,-1,-1,1] classlabels_ints=[5,6,7] outputs=2 post_transform=SOFTMAX_ZERO",
      "f32[2,1]{1000,-1000} coefficients=[1,-1] classlabels_ints=[5,6] outputs=2 post_transform=SOFTMAX,LOGISTIC"};
  return op;
}

Op linear_regressor() {
  Op op = ml_op("LinearRegressor", "Features times weights for each target, and a transform.");
  op.inputs = {required("X", feature_types())};
  op.outputs = {required("Y", {DType::F32})};
  op.attributes = {{"post_transform", std::string("NONE")},
                   {"coefficients", std::vector<float>()},
                   {"intercepts", std::vector<float>()},
                   {"targets", int64_t{1}}};
  op.infer = infer_regressor;
  op.reference = run_regressor;
  op.expand = expand_regressor;
  op.cost = [](const OpCall& call) {
    return linear_cost(call, static_cast<size_t>(std::max<int64_t>(call.integer("targets", 1), 0)));
  };
  op.rounding = Rounding::Sum;
  op.category = Category::Matrix;
  op.cases = {
      "T[5,3]~small coefficients=[0.5,-1,2] intercepts=[0.1]",
      "T[5,3]~small coefficients=[0.5,-1,2]",
      "T[5,2]~small coefficients=[0.5,-1,2,1,0.25,-0.5] intercepts=[0.1,-0.2,0.3] targets=3 "
      "post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT",
      "T[5,2]~small coefficients=[0.5,-1] intercepts=[0.1] post_transform=LOGISTIC,SOFTMAX",
      "T[4,1]~unit coefficients=[0.5] intercepts=[0.25] post_transform=PROBIT",
      "T[3]~small coefficients=[1,2,3]",
      "T[0,3] coefficients=[1,2,3]",
      "T[1,3]~small coefficients=[1,2,3,4,5,6] targets=2",
      "f32[2,2]{1e30,-1e30,1,2} coefficients=[1,1] intercepts=[1]",
      "f64[1,1]{1.23456789012} coefficients=[1]",
      "f32[7,33]~small coefficients=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33]"};
  return op;
}

}  // namespace

void add_linear_ops(OpSet& ops) {
  ops.add(linear_classifier());
  ops.add(linear_regressor());
}

}  // namespace unmoor::ml
