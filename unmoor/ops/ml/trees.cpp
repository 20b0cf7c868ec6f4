#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/listed_forest.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/ml/post_transform.h"
#include "unmoor/ops/moving.h"

namespace unmoor::ml {
namespace {

// What a row's votes become in a TreeEnsembleClassifier. Where all votes of two labels are for one of them, and there is no base value for each,
// the sum s decides: the second label is the top class if s is above 0, or above one half where no weight is negative and no transform
// follows, since then s is a probability. Votes for the first label alone are the second one's, as converters write them: the scores are
// 1-s and s, or -s and s. This is what ONNX's evaluator and ONNX Runtime share. The text says nothing of it, but wants the top class of all
// others and the transform of every score: ONNX Runtime gives label 1 for any positive vote where both labels are voted for, and leaves the
// transform out where no weight is negative.
struct Verdict {
  Labels labels;
  Forest forest;
  std::vector<double> base;
  PostTransform how = PostTransform::None;
  bool one_sided = false;
  bool for_first = false;
  bool probability = false;

  // Replaces the votes of a row by its scores before the transform. Returns the place of its label.
  int64_t apply(std::span<double> scores) const {
    for (size_t k = 0; k < base.size(); ++k) scores[one_sided && !for_first ? 1 : k] += base[k];
    if (scores.size() == 1) return scores[0] > 0 ? 0 : -1;
    if (!one_sided) return top_class(scores);
    const double sum = scores[for_first ? 0 : 1];
    if (for_first) {
      scores[0] = probability ? 1 - sum : -sum;
      scores[1] = sum;
    }
    return sum > (probability ? 0.5 : 0) ? 1 : 0;
  }
};

Verdict verdict_of(const OpCall& call) {
  Verdict verdict{labels_of(call, "classlabels_int64s", "classlabels_strings"), {}, reals_or_tensor(call, "base_values")};
  const size_t classes = verdict.labels.size();
  verdict.how = post_transform_of(call);
  verdict.forest = listed_forest(call, "class", classes);
  const auto& votes = verdict.forest.votes;
  const auto is_for = [](uint32_t target) { return [target](const Forest::Vote& vote) { return vote.target == target; }; };
  if (classes == 2 && verdict.base.size() < 2 && !votes.empty()) {
    verdict.for_first = std::ranges::all_of(votes, is_for(0));
    verdict.one_sided = verdict.for_first || std::ranges::all_of(votes, is_for(1));
    const bool plain = verdict.how == PostTransform::None || verdict.how == PostTransform::Probit;
    verdict.probability = plain && std::ranges::none_of(votes, [](const Forest::Vote& vote) { return vote.weight < 0; });
  }
  const bool one_base = verdict.one_sided && verdict.base.size() == 1;
  if (!verdict.base.empty() && !one_base) require_length(call, "base_values", verdict.base.size(), classes);
  return verdict;
}

Shape batch_of(const OpCall& call) {
  return call.input(0).shape.has_rank() ? per_row(call, call.input(0).shape) : unknown_shape(1);
}

std::vector<Type> infer_classifier(const OpCall& call) {
  const Verdict verdict = verdict_of(call);
  Shape scores = batch_of(call);
  scores.push_back(static_cast<int64_t>(verdict.labels.size()));
  return {TensorType{verdict.labels.dtype(), batch_of(call)}, TensorType{float_output(call), std::move(scores)}};
}

void run_classifier(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const Verdict verdict = verdict_of(with_data(call, in));
  const size_t classes = verdict.labels.size();
  std::vector<double> scores = forest_scores(verdict.forest, x, Aggregate::Sum);
  std::vector<int64_t> places;
  for (size_t i = 0; i < scores.size(); i += classes) places.push_back(verdict.apply(std::span(scores).subspan(i, classes)));
  transform_rows(verdict.how, scores, classes);
  put_labels(call, out, verdict.labels, places);
  if (!call.wants_output(1)) return;
  store(out.allocate(1, {float_output(call), Shape{x.shape()[0], static_cast<int64_t>(classes)}}), std::span<const double>(scores));
}

Aggregate aggregate_of(const OpCall& call) {
  const std::string wanted = call.text("aggregate_function", "SUM");
  if (wanted == "AVERAGE") return Aggregate::Average;
  if (wanted == "SUM") return Aggregate::Sum;
  if (wanted == "MIN") return Aggregate::Min;
  if (wanted == "MAX") return Aggregate::Max;
  fail(ErrorKind::InvalidModel, title(call), ": aggregate_function is '", wanted, "', not AVERAGE, SUM, MIN or MAX");
}

struct Regression {
  Forest forest;
  std::vector<double> base;
};

Regression regression_of(const OpCall& call) {
  const size_t targets = targets_of(call, list_attribute<int64_t>(call, "target_ids"));
  Regression regression{listed_forest(call, "target", targets), reals_or_tensor(call, "base_values")};
  if (!regression.base.empty()) require_length(call, "base_values", regression.base.size(), targets);
  return regression;
}

std::vector<Type> infer_regressor(const OpCall& call) {
  post_transform_of(call);
  aggregate_of(call);
  Shape shape = batch_of(call);
  shape.push_back(static_cast<int64_t>(regression_of(call).forest.targets));
  return {TensorType{float_output(call), std::move(shape)}};
}

// Base values come after the aggregate function and before the transform, which the text wants for one target too; ONNX Runtime leaves
// it out there.
void run_regressor(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const Regression regression = regression_of(with_data(call, in));
  const size_t targets = regression.forest.targets;
  Tensor& result = out.allocate(0, {float_output(call), Shape{x.shape()[0], static_cast<int64_t>(targets)}});
  std::vector<double> scores = forest_scores(regression.forest, x, aggregate_of(call));
  for (size_t i = 0; i < scores.size() && !regression.base.empty(); ++i) scores[i] += regression.base[i % targets];
  transform_rows(post_transform_of(call), scores, targets);
  store(result, std::span<const double>(scores));
}

Op listed_op(std::string_view name, std::string summary) {
  Op op = ml_op(name, std::move(summary));
  op.inputs = {required("X", feature_types())};
  op.attributes = {{"nodes_treeids", std::vector<int64_t>()},
                   {"nodes_nodeids", std::vector<int64_t>()},
                   {"nodes_featureids", std::vector<int64_t>()},
                   {"nodes_values", std::vector<float>()},
                   {"nodes_hitrates", std::vector<float>()},
                   {"nodes_modes", std::vector<std::string>()},
                   {"nodes_truenodeids", std::vector<int64_t>()},
                   {"nodes_falsenodeids", std::vector<int64_t>()},
                   {"nodes_missing_value_tracks_true", std::vector<int64_t>()},
                   {"post_transform", std::string("NONE")},
                   {"base_values", std::vector<float>()}};
  op.cost = [](const OpCall& call) {
    const auto& trees = list_attribute<int64_t>(call, "nodes_treeids");
    size_t changes = trees.empty() ? 0 : 1;
    for (size_t i = 1; i < trees.size(); ++i) changes += trees[i] != trees[i - 1] ? 1U : 0U;
    return forest_cost(call, trees.size(), changes);
  };
  op.rounding = Rounding::Quantise;
  op.category = Category::Trees;
  return op;
}

// Two trees over two features: (x0 <= 0.5 ? a : (x1 > -1 ? b : c)) and (x1 < 0 ? d : e), in one line for the cases.
constexpr std::string_view two_trees =
    " nodes_treeids=[0,0,0,0,0,1,1,1] nodes_nodeids=[0,1,2,3,4,0,1,2] nodes_featureids=[0,0,1,0,0,1,0,0] "
    "nodes_modes=[BRANCH_LEQ,LEAF,BRANCH_GT,LEAF,LEAF,BRANCH_LT,LEAF,LEAF] nodes_truenodeids=[1,0,3,0,0,1,0,0] "
    "nodes_falsenodeids=[2,0,4,0,0,2,0,0]";
constexpr std::string_view floats = " nodes_values=[0.5,0,-1,0,0,0,0,0]";

Op tree_classifier() {
  Op op = listed_op("TreeEnsembleClassifier", "The label that decision trees vote for, and the sum of votes for each.");
  op.outputs = {required("Y", {DType::String, DType::I64}), optional("Z", {DType::F32})};
  op.attributes.insert({{"class_treeids", std::vector<int64_t>()},
                        {"class_nodeids", std::vector<int64_t>()},
                        {"class_ids", std::vector<int64_t>()},
                        {"class_weights", std::vector<float>()},
                        {"classlabels_strings", std::vector<std::string>()},
                        {"classlabels_int64s", std::vector<int64_t>()}});
  op.infer = infer_classifier;
  op.reference = run_classifier;
  const std::string leaves = " class_treeids=[0,0,0,1,1] class_nodeids=[1,3,4,1,2]";
  const std::string three = cat(two_trees, floats, leaves, " class_ids=[0,1,2,0,1] class_weights=[0.75,0.5,1,0.25,-0.5]");
  const std::string mixed = cat(two_trees, floats, leaves, " class_weights=[0.75,-0.5,-1,0.25,-0.5]");
  const std::string likely = cat(two_trees, floats, leaves, " class_weights=[0.25,0.5,0.1,0.4,0.1]");
  const std::string all = " post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT";
  op.cases = {cat("T[6,2]~small outputs=2 classlabels_int64s=[7,-8,9]", all, three),
              cat("T[6,2]~small outputs=2 classlabels_strings=[a,\"b c\",d] base_values=[0.1,0.2,-0.3]", three),
              cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,0,0,0,0]", all, mixed),
              cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,0,0,0,0]", all, likely),
              cat("T[6,2]~small outputs=2 classlabels_strings=[no,yes] class_ids=[1,1,1,1,1] post_transform=NONE,LOGISTIC", likely),
              cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,0,0,0,0] base_values=[0.5],[0.5,-0.25]", mixed),
              cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,1,0,1,0] base_values=[0.5,-0.25]", likely),
              cat("T[6,2]~small outputs=2 classlabels_int64s=[1] class_ids=[0,0,0,0,0] post_transform=NONE,LOGISTIC", mixed),
              cat("f32[4,2]{nan,0,1,nan,0.5,-0,inf,-1} outputs=2 classlabels_int64s=[7,8,9] nodes_missing_value_tracks_true=[0,0,1,0,0,1,0,0],"
              "[1,0,0,0,0,0,0,0]", three),
              cat("f64[3,2]{0.5,0,0.5000000001,1,0,-1} outputs=2 classlabels_int64s=[7,8,9] nodes_values_as_tensor=f64[8]{0.5,0,-1,0,0,0,0,0} "
              "class_ids=[0,1,2,0,1] class_weights_as_tensor=f64[5]{0.1,0.2,0.3,0.4,0.5} base_values_as_tensor=f64[3]{0,1,2}", two_trees, leaves),
              cat("T[0,2] outputs=2 classlabels_int64s=[7,8,9]", three),
              cat("T[1,4]~small classlabels_strings=[x,y,z]", three)};
  return op;
}

Op tree_regressor() {
  Op op = listed_op("TreeEnsembleRegressor", "The votes of decision trees for each target, put together.");
  op.outputs = {required("Y", {DType::F32})};
  op.attributes.insert({{"target_treeids", std::vector<int64_t>()},
                        {"target_nodeids", std::vector<int64_t>()},
                        {"target_ids", std::vector<int64_t>()},
                        {"target_weights", std::vector<float>()},
                        {"n_targets", int64_t{1}},
                        {"aggregate_function", std::string("SUM")}});
  op.infer = infer_regressor;
  op.reference = run_regressor;
  const std::string leaves = " target_treeids=[0,0,0,1,1] target_nodeids=[1,3,4,1,2]";
  const std::string one = cat(two_trees, floats, leaves, " target_ids=[0,0,0,0,0] target_weights=[0.75,-0.5,-1,0.25,0.5] n_targets=1");
  const std::string two = cat(two_trees, floats, leaves, " target_ids=[0,1,0,1,1] target_weights=[0.75,-0.5,-1,0.25,0.5] n_targets=2");
  op.cases = {cat("T[6,2]~small aggregate_function=SUM,AVERAGE,MIN,MAX", one),
              cat("T[6,2]~small aggregate_function=SUM,AVERAGE,MIN,MAX base_values=[10,-20]", two),
              cat("T[6,2]~small post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO", one),
              cat("T[6,2]~small post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT base_values=[0.5,0.5]", two),
              cat("T[6,2]~small base_values=[10] aggregate_function=SUM,AVERAGE,MAX", one),
              cat("f32[4,2]{nan,0,1,nan,0.5,-0,inf,-1} nodes_missing_value_tracks_true=[0,0,1,0,0,1,0,0],[1,0,0,0,0,0,0,0]", one),
              cat("f64[3,2]{0.5,0,0.5000000001,1,0,-1} nodes_values_as_tensor=f64[8]{0.5,0,-1,0,0,0,0,0} target_ids=[0,0,0,0,0] "
              "target_weights_as_tensor=f64[5]{0.1,0.2,0.3,0.4,0.5} base_values_as_tensor=f64[1]{0.125} n_targets=1", two_trees, leaves),
              "f32[5,1]{1,2,3,nan,-1} nodes_treeids=[5,5,5] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] nodes_values=[2,0,0] "
              "nodes_modes=[BRANCH_EQ,LEAF,LEAF],[BRANCH_NEQ,LEAF,LEAF],[BRANCH_GTE,LEAF,LEAF] nodes_truenodeids=[1,0,0] "
              "nodes_falsenodeids=[2,0,0] target_treeids=[5,5] target_nodeids=[1,2] target_ids=[0,0] target_weights=[1,-1]",
              "T[3,2]~small nodes_treeids=[0] nodes_nodeids=[0] nodes_featureids=[0] nodes_values=[0] nodes_modes=[LEAF] nodes_truenodeids=[0] "
              "nodes_falsenodeids=[0] target_treeids=[0] target_nodeids=[0] target_ids=[0] target_weights=[1.5]",
              "T[4,2]~small nodes_treeids=[1,1,1,0,0,0] nodes_nodeids=[7,3,5,9,2,4] nodes_featureids=[0,0,0,1,0,0] nodes_values=[0,0,0,0.5,0,0] "
              "nodes_modes=[BRANCH_LT,LEAF,LEAF,BRANCH_GTE,LEAF,LEAF] nodes_truenodeids=[3,0,0,4,0,0] nodes_falsenodeids=[5,0,0,2,0,0] "
              "target_treeids=[0,0,1,1] target_nodeids=[2,4,3,5] target_ids=[0,0,0,0] target_weights=[1,2,30,40] n_targets=1",
              cat("T[0,2]", one),
              cat("T[1,3]~small", one)};
  return op;
}

}  // namespace

void add_tree_ops(OpSet& ops) {
  ops.add(tree_classifier());
  ops.add(tree_regressor());
}

}  // namespace unmoor::ml
