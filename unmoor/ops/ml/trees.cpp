#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/ops/ml/tree_model.h"
#include "unmoor/ops/moving.h"

namespace unmoor::ml {
namespace {

const std::vector<DType>& ensemble_types() {
  static const std::vector<DType> list{DType::F32, DType::F64, DType::F16};
  return list;
}

bool is_classifier(const OpCall& call) { return call.node.op == "ai.onnx.ml:TreeEnsembleClassifier"; }

// Labels, if there are any, and scores. TreeEnsemble's are of its input's dtype.
std::vector<Type> types_of(const OpCall& call, const TreeModel& model) {
  const TensorType& x = call.input(0);
  const bool keeps_dtype = call.node.op == "ai.onnx.ml:TreeEnsemble";
  const Shape rows = x.shape.has_rank() ? per_row(call, x.shape) : unknown_shape(1);
  Shape shape = rows;
  shape.push_back(static_cast<int64_t>(model.forest.targets));
  TensorType scores{keeps_dtype ? x.dtype : float_output(call), std::move(shape)};
  if (!is_classifier(call)) return {std::move(scores)};
  return {TensorType{model.labels.dtype(), rows}, std::move(scores)};
}

std::vector<Type> infer_trees(const OpCall& call) { return types_of(call, tree_model(call)); }

void run_trees(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const OpCall known = with_data(call, in);
  const TreeModel model = tree_model(known);
  const std::vector<double> x = doubles(in[0].tensor());
  const auto rows = static_cast<size_t>(in[0].tensor().shape()[0]);
  const auto width = static_cast<size_t>(in[0].tensor().shape()[1]);
  Tensor scores(std::get<TensorType>(types_of(known, model).back()));
  check_memory(scores.elements() * sizeof(double));
  std::vector<double> values(scores.elements());
  std::vector<int64_t> places(rows);
  model.predict(x, width, values, places);
  store(scores, std::span<const double>(values));
  if (is_classifier(call)) put_labels(call, out, model.labels, places);
  const size_t last = is_classifier(call) ? 1 : 0;
  if (call.wants_output(last)) copy_all(scores, out.allocate(last, scores.type()));
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
  op.infer = infer_trees;
  op.reference = run_trees;
  const std::string leaves = " class_treeids=[0,0,0,1,1] class_nodeids=[1,3,4,1,2]";
  const std::string three = cat(two_trees, floats, leaves, " class_ids=[0,1,2,0,1] class_weights=[0.75,0.5,1,0.25,-0.5]");
  const std::string mixed = cat(two_trees, floats, leaves, " class_weights=[0.75,-0.5,-1,0.25,-0.5]");
  const std::string likely = cat(two_trees, floats, leaves, " class_weights=[0.25,0.5,0.1,0.4,0.1]");
  const std::string all = " post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT";
  op.cases = {
      cat("T[6,2]~small outputs=2 classlabels_int64s=[7,-8,9]", all, three),
      cat("T[6,2]~small outputs=2 classlabels_strings=[a,\"b c\",d] base_values=[0.1,0.2,-0.3]", three),
      cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,0,0,0,0]", all, mixed),
      cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,0,0,0,0]", all, likely),
      cat("T[6,2]~small outputs=2 classlabels_strings=[no,yes] class_ids=[1,1,1,1,1] post_transform=NONE,LOGISTIC", likely),
      cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,0,0,0,0] base_values=[0.5],[0.5,-0.25]", mixed),
      cat("T[6,2]~small outputs=2 classlabels_int64s=[3,4] class_ids=[0,1,0,1,0] base_values=[0.5,-0.25]", likely),
      cat("T[6,2]~small outputs=2 classlabels_int64s=[1] class_ids=[0,0,0,0,0] post_transform=NONE,LOGISTIC", mixed),
      cat("f32[4,2]{nan,0,1,nan,0.5,-0,inf,-1} outputs=2 classlabels_int64s=[7,8,9] "
          "nodes_missing_value_tracks_true=[0,0,1,0,0,1,0,0],"
          "[1,0,0,0,0,0,0,0]",
          three),
      cat("f64[3,2]{0.5,0,0.5000000001,1,0,-1} outputs=2 classlabels_int64s=[7,8,9] "
          "nodes_values_as_tensor=f64[8]{0.5,0,-1,0,0,0,0,0} "
          "class_ids=[0,1,2,0,1] class_weights_as_tensor=f64[5]{0.1,0.2,0.3,0.4,0.5} base_values_as_tensor=f64[3]{0,1,2}",
          two_trees, leaves),
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
  op.infer = infer_trees;
  op.reference = run_trees;
  const std::string leaves = " target_treeids=[0,0,0,1,1] target_nodeids=[1,3,4,1,2]";
  const std::string one =
      cat(two_trees, floats, leaves, " target_ids=[0,0,0,0,0] target_weights=[0.75,-0.5,-1,0.25,0.5] n_targets=1");
  const std::string two =
      cat(two_trees, floats, leaves, " target_ids=[0,1,0,1,1] target_weights=[0.75,-0.5,-1,0.25,0.5] n_targets=2");
  op.cases = {
      cat("T[6,2]~small aggregate_function=SUM,AVERAGE,MIN,MAX", one),
      cat("T[6,2]~small aggregate_function=SUM,AVERAGE,MIN,MAX base_values=[10,-20]", two),
      cat("T[6,2]~small post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO", one),
      cat("T[6,2]~small post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT base_values=[0.5,0.5]", two),
      cat("T[6,2]~small base_values=[10] aggregate_function=SUM,AVERAGE,MAX", one),
      cat("f32[4,2]{nan,0,1,nan,0.5,-0,inf,-1} nodes_missing_value_tracks_true=[0,0,1,0,0,1,0,0],[1,0,0,0,0,0,0,0]", one),
      cat("f64[3,2]{0.5,0,0.5000000001,1,0,-1} nodes_values_as_tensor=f64[8]{0.5,0,-1,0,0,0,0,0} target_ids=[0,0,0,0,0] "
          "target_weights_as_tensor=f64[5]{0.1,0.2,0.3,0.4,0.5} base_values_as_tensor=f64[1]{0.125} n_targets=1",
          two_trees, leaves),
      "f32[5,1]{1,2,3,nan,-1} nodes_treeids=[5,5,5] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] nodes_values=[2,0,0] "
      "nodes_modes=[BRANCH_EQ,LEAF,LEAF],[BRANCH_NEQ,LEAF,LEAF],[BRANCH_GTE,LEAF,LEAF] nodes_truenodeids=[1,0,0] "
      "nodes_falsenodeids=[2,0,0] target_treeids=[5,5] target_nodeids=[1,2] target_ids=[0,0] target_weights=[1,-1]",
      "T[3,2]~small nodes_treeids=[0] nodes_nodeids=[0] nodes_featureids=[0] nodes_values=[0] nodes_modes=[LEAF] "
      "nodes_truenodeids=[0] "
      "nodes_falsenodeids=[0] target_treeids=[0] target_nodeids=[0] target_ids=[0] target_weights=[1.5]",
      "T[4,2]~small nodes_treeids=[1,1,1,0,0,0] nodes_nodeids=[7,3,5,9,2,4] nodes_featureids=[0,0,0,1,0,0] "
      "nodes_values=[0,0,0,0.5,0,0] "
      "nodes_modes=[BRANCH_LT,LEAF,LEAF,BRANCH_GTE,LEAF,LEAF] nodes_truenodeids=[3,0,0,4,0,0] nodes_falsenodeids=[5,0,0,2,0,0] "
      "target_treeids=[0,0,1,1] target_nodeids=[2,4,3,5] target_ids=[0,0,0,0] target_weights=[1,2,30,40] n_targets=1",
      cat("T[0,2]", one),
      cat("T[1,3]~small", one)};
  return op;
}

Op tree_ensemble() {
  Op op = ml_op("TreeEnsemble", "The votes of the leaves that each row comes to in decision trees, put together by target.");
  op.inputs = {required("X", ensemble_types())};
  op.outputs = {required("Y", ensemble_types())};
  op.attributes = {{"aggregate_function", int64_t{1}},
                   {"leaf_targetids", std::vector<int64_t>()},
                   {"nodes_falseleafs", std::vector<int64_t>()},
                   {"nodes_falsenodeids", std::vector<int64_t>()},
                   {"nodes_featureids", std::vector<int64_t>()},
                   {"nodes_missing_value_tracks_true", std::vector<int64_t>()},
                   {"nodes_trueleafs", std::vector<int64_t>()},
                   {"nodes_truenodeids", std::vector<int64_t>()},
                   {"post_transform", int64_t{0}},
                   {"tree_roots", std::vector<int64_t>()}};
  op.infer = infer_trees;
  op.reference = run_trees;
  op.cost = [](const OpCall& call) {
    return forest_cost(call, list_attribute<int64_t>(call, "nodes_featureids").size(),
                       list_attribute<int64_t>(call, "tree_roots").size());
  };
  op.rounding = Rounding::Quantise;
  op.category = Category::Trees;
  // Two trees over two features, with two targets.
  const auto forest = [](std::string_view dtype) {
    return cat(
        " n_targets=2 tree_roots=[0,2] nodes_featureids=[0,1,1] nodes_truenodeids=[0,1,3] nodes_trueleafs=[1,1,1] "
        "nodes_falsenodeids=[1,2,4] "
        "nodes_falseleafs=[0,1,1] leaf_targetids=[0,1,0,1,0] nodes_splits=",
        dtype, "[3]{0.5,-1,0} leaf_weights=", dtype, "[5]{1,-2,0.25,0.5,3}");
  };
  const std::string trees = forest("T");
  const std::string modes = " nodes_modes=u8[3]{0,0,0}";
  const std::string member =
      " n_targets=4 tree_roots=[0] nodes_featureids=[0,0,0] nodes_modes=u8[3]{0,6,6} nodes_truenodeids=[1,0,1] "
      "nodes_trueleafs=[0,1,1] "
      "nodes_falsenodeids=[2,2,3] nodes_falseleafs=[1,0,1] leaf_targetids=[0,1,2,3]";
  op.cases = {
      cat("T[6,2]~small aggregate_function=0,1,2,3", modes, trees),
      cat("T[6,2]~small post_transform=0,1,2,3", modes, trees),
      cat("f32[6,2]{0.5,0,0.25,-1,nan,-2,1,nan,-1,inf,0.5,-0} nodes_modes=u8[3]{0,1,2},u8[3]{3,4,5},u8[3]{5,5,5}", forest("f32")),
      cat("f32[4,2]{nan,0,nan,nan,0,nan,1,1} nodes_missing_value_tracks_true=[1,0,1],[0,1,0] nodes_modes=u8[3]{0,5,4}",
          forest("f32")),
      cat("f32[6,1]{1.2,3.4,-0.12,nan,12,7} nodes_splits=f32[3]{11,232344,nan} "
          "membership_values=f32[8]{1.2,3.7,8,9,nan,12,7,nan} "
          "leaf_weights=f32[4]{1,10,1000,100}",
          member),
      cat("f64[3,1]{8,7,0.1} nodes_splits=f64[3]{11,0,0} membership_values=f64[3]{nan,0.1,7} leaf_weights=f64[4]{1,10,1000,100}",
          member),
      "T[3,2]~small n_targets=1 tree_roots=[0] nodes_featureids=[0] nodes_modes=u8[1]{0} nodes_splits=T[1]{0} "
      "nodes_truenodeids=[0] "
      "nodes_trueleafs=[1] nodes_falsenodeids=[0] nodes_falseleafs=[1] leaf_targetids=[0] leaf_weights=T[1]{2.5}",
      cat("T[0,2]", modes, trees),
      cat("T[1,5]~small", modes, trees),
      "T[3,2]~small aggregate_function=2,3 n_targets=3 tree_roots=[0] nodes_featureids=[1] nodes_modes=u8[1]{3} "
      "nodes_splits=T[1]{0} "
      "nodes_truenodeids=[0] nodes_trueleafs=[1] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,2] "
      "leaf_weights=T[2]{-2.5,4}",
      "f32[2,1]{0.25,0.75} post_transform=4 tree_roots=[0] nodes_featureids=[0] nodes_modes=u8[1]{0} nodes_splits=f32[1]{0.5} "
      "nodes_truenodeids=[0] nodes_trueleafs=[1] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] "
      "leaf_weights=f32[2]{0.25,0.9}"};
  return op;
}

}  // namespace

void add_tree_ops(OpSet& ops) {
  ops.add(tree_classifier());
  ops.add(tree_regressor());
  ops.add(tree_ensemble());
}

}  // namespace unmoor::ml
