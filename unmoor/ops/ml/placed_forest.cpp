#include "unmoor/ops/ml/placed_forest.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/ml.h"

namespace unmoor::ml {
namespace {

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
    fail(ErrorKind::InvalidModel, title(call), ": ", key, " of node ", i, " is ", place, "; there are ", count,
         is_leaf ? " leaves" : " nodes");
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
  if (ended != wanted)
    fail(ErrorKind::InvalidModel, title(call), ": membership_values has ", ended, " sets for ", wanted,
         " nodes that test for one");
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
    if (numbers[i] > static_cast<uint8_t>(Test::Member))
      fail(ErrorKind::InvalidModel, title(call), ": nodes_modes of node ", i, " is ", int{numbers[i]});
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

}  // namespace

Forest placed_forest(const OpCall& call) {
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

}  // namespace unmoor::ml
