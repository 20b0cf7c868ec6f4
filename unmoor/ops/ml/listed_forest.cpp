#include "unmoor/ops/ml/listed_forest.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/ml.h"

namespace unmoor::ml {
namespace {

using Ids = std::vector<int64_t>;

// Finds nodes by the ids of tree and node. Trees whose node ids have no gaps, which are nearly all, are looked up directly.
class NodeTable {
 public:
  NodeTable(const OpCall& call, const Ids& trees, const Ids& nodes) : nodes_(nodes), order_(nodes.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    const auto before = [&](size_t a, size_t b) { return trees[a] != trees[b] ? trees[a] < trees[b] : nodes[a] < nodes[b]; };
    if (!std::ranges::is_sorted(order_, before)) std::ranges::sort(order_, before);
    for (size_t i = 0; i < order_.size(); ++i) {
      const size_t node = order_[i];
      const bool goes_on = i > 0 && trees[order_[i - 1]] == trees[node];
      if (goes_on && nodes[order_[i - 1]] == nodes[node]) {
        fail(ErrorKind::InvalidModel, title(call), ": tree ", trees[node], " has node ", nodes[node], " twice");
      }
      if (!goes_on) trees_.push_back({trees[node], i, 0});
      ++trees_.back().count;
    }
  }

  struct Tree {
    int64_t id = 0;
    size_t start = 0;  // In the order.
    size_t count = 0;
  };
  const std::vector<Tree>& trees() const { return trees_; }
  // The nodes of a tree, by rising id.
  std::span<const size_t> nodes_of(const Tree& tree) const { return std::span(order_).subspan(tree.start, tree.count); }

  const Tree* tree(int64_t id) const {
    if (last_ < trees_.size() && trees_[last_].id == id) return &trees_[last_];
    const auto found = std::ranges::lower_bound(trees_, id, {}, &Tree::id);
    if (found == trees_.end() || found->id != id) return nullptr;
    last_ = static_cast<size_t>(found - trees_.begin());
    return &*found;
  }

  std::optional<size_t> find(const Tree& tree, int64_t id) const {
    const auto members = nodes_of(tree);
    const int64_t first = nodes_[members.front()];
    const int64_t last = nodes_[members.back()];
    if (id < first || id > last) return std::nullopt;
    const uint64_t offset = static_cast<uint64_t>(id) - static_cast<uint64_t>(first);
    if (static_cast<uint64_t>(last) - static_cast<uint64_t>(first) == members.size() - 1) return members[offset];
    const auto found = std::ranges::lower_bound(members, id, {}, [this](size_t node) { return nodes_[node]; });
    return nodes_[*found] == id ? std::optional(*found) : std::nullopt;
  }

 private:
  const Ids& nodes_;
  std::vector<size_t> order_;
  std::vector<Tree> trees_;
  mutable size_t last_ = 0;  // Looked up last: votes come tree by tree.
};

constexpr std::array<std::string_view, 7> modes{"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                                "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
constexpr size_t leaf_mode = 6;

struct Lists {
  const Ids& trees;
  const Ids& ids;
  const Ids& features;
  const Ids& yes;
  const Ids& no;
  const Ids& missing;
  const std::vector<std::string>& modes;
  std::vector<double> splits;
};

Lists lists_of(const OpCall& call) {
  const auto ids = [&](std::string_view key) -> const Ids& { return list_attribute<int64_t>(call, key); };
  Lists lists{ids("nodes_treeids"),
              ids("nodes_nodeids"),
              ids("nodes_featureids"),
              ids("nodes_truenodeids"),
              ids("nodes_falsenodeids"),
              ids("nodes_missing_value_tracks_true"),
              list_attribute<std::string>(call, "nodes_modes"),
              reals_or_tensor(call, "nodes_values")};
  const size_t count = lists.ids.size();
  if (count == 0) fail(ErrorKind::InvalidModel, title(call), ": there are no nodes");
  require_place_count(call, count);
  require_length(call, "nodes_treeids", lists.trees.size(), count);
  require_length(call, "nodes_featureids", lists.features.size(), count);
  require_length(call, "nodes_truenodeids", lists.yes.size(), count);
  require_length(call, "nodes_falsenodeids", lists.no.size(), count);
  require_length(call, "nodes_modes", lists.modes.size(), count);
  require_length(call, "nodes_values", lists.splits.size(), count);
  if (!lists.missing.empty()) require_length(call, "nodes_missing_value_tracks_true", lists.missing.size(), count);
  return lists;
}

size_t mode_of(const OpCall& call, const Lists& lists, size_t node) {
  const auto found = std::ranges::find(modes, lists.modes[node]);
  if (found == modes.end()) fail(ErrorKind::InvalidModel, title(call), ": nodes_modes has '", lists.modes[node], "'");
  return static_cast<size_t>(found - modes.begin());
}

std::string node_name(const Lists& lists, size_t node) { return cat("node ", lists.ids[node], " of tree ", lists.trees[node]); }

// Fills in the branches. Returns by node whether another leads to it.
std::vector<bool> read_nodes(const OpCall& call, const Lists& lists, const NodeTable& table, Forest& forest) {
  std::vector<size_t> mode(lists.ids.size());
  for (size_t i = 0; i < mode.size(); ++i) mode[i] = mode_of(call, lists, i);
  std::vector<bool> is_child(mode.size());
  const auto branch = [&](size_t node, const NodeTable::Tree& tree, int64_t id) {
    const auto found = table.find(tree, id);
    if (!found)
      fail(ErrorKind::InvalidModel, title(call), ": ", node_name(lists, node), " leads to node ", id,
           ", which the tree does not have");
    is_child[*found] = true;
    const auto place = static_cast<int32_t>(*found);
    return mode[*found] == leaf_mode ? ~place : place;
  };
  forest.nodes.resize(mode.size());
  for (const NodeTable::Tree& tree : table.trees()) {
    for (const size_t i : table.nodes_of(tree)) {
      Forest::Node& node = forest.nodes[i];
      node.yes = node.no = -1;
      if (mode[i] == leaf_mode) continue;
      node.test = static_cast<Test>(mode[i]);
      node.split = lists.splits[i];
      node.feature = feature_of(call, lists.features[i]);
      forest.features = std::max<size_t>(forest.features, size_t{node.feature} + 1);
      node.missing_is_yes = !lists.missing.empty() && lists.missing[i] != 0;
      node.yes = branch(i, tree, lists.yes[i]);
      node.no = branch(i, tree, lists.no[i]);
    }
  }
  return is_child;
}

void read_roots(const OpCall& call, const Lists& lists, const NodeTable& table, const std::vector<bool>& is_child,
                Forest& forest) {
  for (const NodeTable::Tree& tree : table.trees()) {
    std::optional<size_t> root;
    for (const size_t i : table.nodes_of(tree)) {
      if (is_child[i]) continue;
      if (root) {
        fail(ErrorKind::InvalidModel, title(call), ": tree ", tree.id, " has two roots: no node leads to its nodes ",
             lists.ids[*root], " and ", lists.ids[i]);
      }
      root = i;
    }
    if (!root) fail(ErrorKind::InvalidModel, title(call), ": tree ", tree.id, " has no root: a node leads to each of its nodes");
    const auto place = static_cast<int32_t>(*root);
    forest.roots.push_back(lists.modes[*root] == modes[leaf_mode] ? ~place : place);
  }
}

// Leaves are among the nodes, but no branch leads to them as such: the check starts from each.
void check(const OpCall& call, const Lists& lists, const Forest& forest) {
  std::vector<int32_t> starts = forest.roots;
  for (size_t i = 0; i < lists.ids.size(); ++i) {
    if (lists.modes[i] == modes[leaf_mode]) starts.push_back(static_cast<int32_t>(i));
  }
  require_trees(call, forest.nodes, starts, [&](size_t node) { return node_name(lists, node); });
}

void read_votes(const OpCall& call, std::string_view prefix, const NodeTable& table, Forest& forest) {
  const auto key = [&](std::string_view part) { return cat(prefix, "_", part); };
  const Ids& ids = list_attribute<int64_t>(call, key("ids"));
  const Ids& trees = list_attribute<int64_t>(call, key("treeids"));
  const Ids& nodes = list_attribute<int64_t>(call, key("nodeids"));
  const std::vector<double> weights = reals_or_tensor(call, key("weights"));
  require_place_count(call, ids.size());
  require_length(call, key("treeids"), trees.size(), ids.size());
  require_length(call, key("nodeids"), nodes.size(), ids.size());
  require_length(call, key("weights"), weights.size(), ids.size());
  std::vector<Forest::Vote> votes(ids.size());
  std::vector<uint32_t> leaves(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const NodeTable::Tree* const tree = table.tree(trees[i]);
    const auto node = tree == nullptr ? std::nullopt : table.find(*tree, nodes[i]);
    if (!node)
      fail(ErrorKind::InvalidModel, title(call), ": a vote is for node ", nodes[i], " of tree ", trees[i],
           ", which does not exist");
    votes[i] = {target_place(call, key("ids"), ids[i], forest.targets), weights[i]};
    leaves[i] = static_cast<uint32_t>(*node);
  }
  set_votes(forest, leaves, votes, forest.nodes.size());
}

}  // namespace

Forest listed_forest(const OpCall& call, std::string_view prefix, size_t targets) {
  const Lists lists = lists_of(call);
  const NodeTable table(call, lists.trees, lists.ids);
  Forest forest;
  forest.targets = targets;
  const std::vector<bool> is_child = read_nodes(call, lists, table, forest);
  read_roots(call, lists, table, is_child, forest);
  check(call, lists, forest);
  read_votes(call, prefix, table, forest);
  require_features(call, forest);
  return forest;
}

std::vector<double> reals_or_tensor(const OpCall& call, std::string_view key) {
  const std::string tensor_key = cat(key, "_as_tensor");
  const Tensor* const given = call.tensor(tensor_key);
  const auto& list = list_attribute<float>(call, key);
  if (given == nullptr) return {list.begin(), list.end()};
  if (!list.empty()) fail(ErrorKind::InvalidModel, title(call), ": only one of '", key, "' and '", tensor_key, "' may be set");
  if (!is_float(given->dtype()))
    fail(ErrorKind::InvalidModel, title(call), ": attribute '", tensor_key, "' is ", given->type(), ", not of floats");
  return doubles(*given);
}

}  // namespace unmoor::ml
