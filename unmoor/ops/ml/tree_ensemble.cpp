#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/forest.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/ml/post_transform.h"
#include "unmoor/ops/moving.h"

namespace unmoor::ml {
namespace {

const std::vector<DType>& ensemble_types() {
  static const std::vector<DType> list{DType::F32, DType::F64, DType::F16};
  return list;
}

// A one-dimensional tensor attribute of the input's dtype.
const Tensor& tensor_of(const OpCall& call, std::string_view key, DType dtype) {
  const Tensor* found = call.tensor(key);
  if (found == nullptr) fail(ErrorKind::InvalidModel, title(call), ": the attribute '", key, "' is missing");
  if (found->dtype() != dtype || found->shape().rank() != 1) {
    fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' is ", found->type(), ", not ", dtype, "[n]");
  }
  return *found;
}

const std::vector<int64_t>& places_of(const OpCall& call, std::string_view key, size_t count) {
  const auto& list = list_attribute<int64_t>(call, key);
  require_length(call, key, list.size(), count);
  return list;
}

// Where a branch of node `i` leads.
int32_t target(const OpCall& call, std::string_view key, size_t i, int64_t place, bool is_leaf, size_t count) {
  if (place < 0 || static_cast<size_t>(place) >= count) {
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " of node ", i, " is ", place, "; there are ", count, is_leaf ? " leaves" : " nodes");
  }
  return is_leaf ? ~static_cast<int32_t>(place) : static_cast<int32_t>(place);
}

// The sets of the Member nodes, in the order of the nodes; each ends with a NaN or with the list.
void read_sets(const OpCall& call, Forest& forest) {
  size_t wanted = 0;
  for (Forest::Node& node : forest.nodes) {
    if (node.test == Test::Member) node.set = static_cast<uint32_t>(wanted++);
  }
  forest.sets.resize(wanted);
  const Tensor* given = call.tensor("membership_values");
  const std::vector<double> members =
      given == nullptr ? std::vector<double>() : doubles(tensor_of(call, "membership_values", call.input(0).dtype));
  size_t ended = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    if (std::isnan(members[i])) {
      ++ended;
      continue;
    }
    if (ended < wanted) forest.sets[ended].push_back(members[i]);
  }
  if (!members.empty() && !std::isnan(members.back())) ++ended;
  if (ended != wanted) fail(ErrorKind::InvalidModel, title(call), ": membership_values has ", ended, " sets for ", wanted, " nodes that test for one");
  for (auto& set : forest.sets) std::ranges::sort(set);
}

void read_nodes(const OpCall& call, Forest& forest, size_t leaves) {
  const std::vector<double> splits = doubles(tensor_of(call, "nodes_splits", call.input(0).dtype));
  const size_t count = splits.size();
  require_place_count(call, count);
  const Tensor& modes = tensor_of(call, "nodes_modes", DType::U8);
  require_length(call, "nodes_modes", modes.elements(), count);
  const auto numbers = modes.span<uint8_t>();
  const auto& features = places_of(call, "nodes_featureids", count);
  const auto& yes = places_of(call, "nodes_truenodeids", count);
  const auto& no = places_of(call, "nodes_falsenodeids", count);
  const auto& yes_leaf = places_of(call, "nodes_trueleafs", count);
  const auto& no_leaf = places_of(call, "nodes_falseleafs", count);
  const auto& missing = list_attribute<int64_t>(call, "nodes_missing_value_tracks_true");
  if (!missing.empty()) require_length(call, "nodes_missing_value_tracks_true", missing.size(), count);
  forest.nodes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] > static_cast<uint8_t>(Test::Member)) fail(ErrorKind::InvalidModel, title(call), ": nodes_modes of node ", i, " is ", int{numbers[i]});
    Forest::Node& node = forest.nodes[i];
    node.test = static_cast<Test>(numbers[i]);
    node.split = splits[i];
    node.feature = feature_of(call, features[i]);
    forest.features = std::max<size_t>(forest.features, size_t{node.feature} + 1);
    node.yes = target(call, "nodes_truenodeids", i, yes[i], yes_leaf[i] != 0, yes_leaf[i] != 0 ? leaves : count);
    node.no = target(call, "nodes_falsenodeids", i, no[i], no_leaf[i] != 0, no_leaf[i] != 0 ? leaves : count);
    node.missing_is_yes = !missing.empty() && missing[i] != 0;
  }
}

void read_leaves(const OpCall& call, Forest& forest) {
  const std::vector<double> weights = doubles(tensor_of(call, "leaf_weights", call.input(0).dtype));
  const auto& targets = places_of(call, "leaf_targetids", weights.size());
  require_place_count(call, weights.size());
  forest.targets = targets_of(call, targets);
  std::vector<Forest::Vote> votes(weights.size());
  std::vector<uint32_t> leaves(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    votes[i] = {target_place(call, "leaf_targetids", targets[i], forest.targets), weights[i]};
    leaves[i] = static_cast<uint32_t>(i);
  }
  set_votes(forest, leaves, votes, weights.size());
}

Forest forest_of(const OpCall& call) {
  Forest forest;
  read_leaves(call, forest);
  read_nodes(call, forest, forest.votes.size());
  read_sets(call, forest);
  for (const int64_t root : list_attribute<int64_t>(call, "tree_roots")) {
    if (root < 0 || static_cast<size_t>(root) >= forest.nodes.size()) {
      fail(ErrorKind::InvalidModel, title(call), ": tree_roots has ", root, "; there are ", forest.nodes.size(), " nodes");
    }
    forest.roots.push_back(static_cast<int32_t>(root));
  }
  require_trees(call, forest.nodes, forest.roots, [](size_t node) { return cat("node ", node); });
  require_features(call, forest);
  return forest;
}

Aggregate aggregate_of(const OpCall& call) {
  const int64_t number = call.integer("aggregate_function", 1);
  if (number < 0 || number > 3) fail(ErrorKind::InvalidModel, title(call), ": aggregate_function is ", number, ", not a number from 0 to 3");
  return static_cast<Aggregate>(number);
}

std::vector<Type> infer_ensemble(const OpCall& call) {
  aggregate_of(call);
  numbered_post_transform_of(call);
  const Forest forest = forest_of(call);
  Shape shape = call.input(0).shape.has_rank() ? per_row(call, call.input(0).shape) : unknown_shape(1);
  shape.push_back(static_cast<int64_t>(forest.targets));
  return {TensorType{call.input(0).dtype, std::move(shape)}};
}

void run_ensemble(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const Forest forest = forest_of(with_data(call, in));
  Tensor& result = out.allocate(0, {x.dtype(), Shape{x.shape()[0], static_cast<int64_t>(forest.targets)}});
  std::vector<double> scores = forest_scores(forest, x, aggregate_of(call));
  transform_rows(numbered_post_transform_of(call), scores, forest.targets);
  store(result, std::span<const double>(scores));
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
  op.infer = infer_ensemble;
  op.reference = run_ensemble;
  op.cost = [](const OpCall& call) {
    return forest_cost(call, list_attribute<int64_t>(call, "nodes_featureids").size(), list_attribute<int64_t>(call, "tree_roots").size());
  };
  op.rounding = Rounding::Quantise;
  op.category = Category::Trees;
  // Two trees over two features, with two targets.
  const std::string two_trees =
      " n_targets=2 tree_roots=[0,2] nodes_featureids=[0,1,1] nodes_splits=T[3]{0.5,-1,0} nodes_truenodeids=[0,1,3] nodes_trueleafs=[1,1,1] "
      "nodes_falsenodeids=[1,2,4] nodes_falseleafs=[0,1,1] leaf_targetids=[0,1,0,1,0] leaf_weights=T[5]{1,-2,0.25,0.5,3}";
  const std::string modes = " nodes_modes=u8[3]{0,0,0}";
  const std::string member =
      " n_targets=4 tree_roots=[0] nodes_featureids=[0,0,0] nodes_modes=u8[3]{0,6,6} nodes_truenodeids=[1,0,1] nodes_trueleafs=[0,1,1] "
      "nodes_falsenodeids=[2,2,3] nodes_falseleafs=[1,0,1] leaf_targetids=[0,1,2,3]";
  op.cases = {cat("T[6,2]~small aggregate_function=0,1,2,3", modes, two_trees),
              cat("T[6,2]~small post_transform=0,1,2,3", modes, two_trees),
              cat("f32[6,2]{0.5,0,0.25,-1,nan,-2,1,nan,-1,inf,0.5,-0} nodes_modes=u8[3]{0,1,2},u8[3]{3,4,5},u8[3]{5,5,5}", two_trees),
              cat("f32[4,2]{nan,0,nan,nan,0,nan,1,1} nodes_missing_value_tracks_true=[1,0,1],[0,1,0] nodes_modes=u8[3]{0,5,4}", two_trees),
              cat("f32[6,1]{1.2,3.4,-0.12,nan,12,7} nodes_splits=f32[3]{11,232344,nan} membership_values=f32[8]{1.2,3.7,8,9,nan,12,7,nan} "
              "leaf_weights=f32[4]{1,10,1000,100}", member),
              cat("f64[3,1]{8,7,0.1} nodes_splits=f64[3]{11,0,0} membership_values=f64[3]{nan,0.1,7} leaf_weights=f64[4]{1,10,1000,100}", member),
              "T[3,2]~small n_targets=1 tree_roots=[0] nodes_featureids=[0] nodes_modes=u8[1]{0} nodes_splits=T[1]{0} nodes_truenodeids=[0] "
              "nodes_trueleafs=[1] nodes_falsenodeids=[0] nodes_falseleafs=[1] leaf_targetids=[0] leaf_weights=T[1]{2.5}",
              cat("T[0,2]", modes, two_trees),
              cat("T[1,5]~small", modes, two_trees),
              "T[3,2]~small aggregate_function=2,3 n_targets=3 tree_roots=[0] nodes_featureids=[1] nodes_modes=u8[1]{3} nodes_splits=T[1]{0} "
              "nodes_truenodeids=[0] nodes_trueleafs=[1] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,2] "
              "leaf_weights=T[2]{-2.5,4}",
              "f32[2,1]{0.25,0.75} post_transform=4 tree_roots=[0] nodes_featureids=[0] nodes_modes=u8[1]{0} nodes_splits=f32[1]{0.5} "
              "nodes_truenodeids=[0] nodes_trueleafs=[1] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] "
              "leaf_weights=f32[2]{0.25,0.9}"};
  return op;
}

}  // namespace

void add_tree_ensemble(OpSet& ops) { ops.add(tree_ensemble()); }

}  // namespace unmoor::ml
