#include "unmoor/ops/ml/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/ml.h"

namespace unmoor::ml {
namespace {

bool holds(const Forest& forest, const Forest::Node& node, double x) {
  switch (node.test) {
    case Test::Leq:
      return x <= node.split;
    case Test::Lt:
      return x < node.split;
    case Test::Gte:
      return x >= node.split;
    case Test::Gt:
      return x > node.split;
    case Test::Eq:
      return x == node.split;
    case Test::Neq:
      return x != node.split;
    case Test::Member:
      return std::ranges::binary_search(forest.sets[node.set], x);
  }
  return false;
}

}  // namespace

size_t Forest::leaf_of(int32_t root, std::span<const double> row) const {
  int32_t at = root;
  while (at >= 0) {
    const Node& node = nodes[static_cast<size_t>(at)];
    const double x = row[node.feature];
    at = (std::isnan(x) ? node.missing_is_yes : holds(*this, node, x)) ? node.yes : node.no;
  }
  const int32_t leaf = ~at;
  return static_cast<size_t>(leaf);
}

void Forest::score(std::span<const double> rows, size_t width, Aggregate how, std::span<double> scores) const {
  std::ranges::fill(scores, 0);
  const size_t count = scores.size() / targets;
  std::vector<bool> voted(how == Aggregate::Min || how == Aggregate::Max ? scores.size() : 0);
  for (const int32_t root : roots) {  // Tree by tree, since a tree fits into a cache.
    for (size_t row = 0; row < count; ++row) {
      const size_t leaf = leaf_of(root, rows.subspan(row * width, width));
      for (size_t i = first_votes[leaf]; i < first_votes[leaf + 1]; ++i) {
        const size_t at = row * targets + votes[i].target;
        if (voted.empty()) {
          scores[at] += votes[i].weight;
        } else if (!voted[at]) {
          scores[at] = votes[i].weight;
          voted[at] = true;
        } else {
          scores[at] = how == Aggregate::Min ? std::min(scores[at], votes[i].weight) : std::max(scores[at], votes[i].weight);
        }
      }
    }
  }
  if (how != Aggregate::Average || roots.empty()) return;
  for (double& score : scores) score /= static_cast<double>(roots.size());
}

void set_votes(Forest& forest, std::span<const uint32_t> leaves, std::span<const Forest::Vote> votes, size_t leaf_count) {
  forest.first_votes.assign(leaf_count + 1, 0);
  for (const uint32_t leaf : leaves) ++forest.first_votes[leaf + 1];
  std::partial_sum(forest.first_votes.begin(), forest.first_votes.end(), forest.first_votes.begin());
  forest.votes.resize(votes.size());
  std::vector<uint32_t> next = forest.first_votes;
  for (size_t i = 0; i < votes.size(); ++i) forest.votes[next[leaves[i]]++] = votes[i];
}

void require_trees(const OpCall& call, std::span<const Forest::Node> nodes, std::span<const int32_t> roots,
                   const std::function<std::string(size_t)>& name) {
  enum class Mark : uint8_t { New, Open, Done };
  std::vector<Mark> marks(nodes.size(), Mark::New);
  std::vector<std::pair<size_t, int>> path;  // Open nodes from a root on, and how many of their branches were taken.
  const auto enter = [&](int32_t at) {
    if (at < 0) return;
    const auto node = static_cast<size_t>(at);
    if (marks[node] == Mark::Open) fail(ErrorKind::InvalidModel, title(call), ": the way from ", name(node), " leads back to it");
    if (marks[node] == Mark::Done) return;
    marks[node] = Mark::Open;
    path.emplace_back(node, 0);
  };
  for (const int32_t root : roots) {
    enter(root);
    while (!path.empty()) {
      auto& [node, taken] = path.back();
      if (taken == 2) {
        marks[node] = Mark::Done;
        path.pop_back();
      } else {
        ++taken;
        enter(taken == 1 ? nodes[node].yes : nodes[node].no);
      }
    }
  }
  for (size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] == Mark::New) fail(ErrorKind::InvalidModel, title(call), ": no way leads to ", name(i));
  }
}

void require_features(const OpCall& call, const Forest& forest) {
  require_rank(call, 0, 2);
  const Shape& shape = call.input(0).shape;
  if (shape.has_rank() && shape[1] >= 0 && static_cast<size_t>(shape[1]) < forest.features) {
    fail(ErrorKind::InvalidModel, title(call), ": the trees ask for feature ", forest.features - 1, ", but the input has ",
         shape[1], " features");
  }
}

Cost forest_cost(const OpCall& call, size_t nodes, size_t trees) {
  const Shape& shape = call.input(0).shape;
  const double rows = shape.has_rank() && shape.rank() > 0 && shape[0] > 0 ? static_cast<double>(shape[0]) : 0;
  const auto count = static_cast<double>(std::max<size_t>(trees, 1));
  const double steps = rows * count * (std::log2(static_cast<double>(nodes) / count + 1) + 1);
  return {steps, bytes_moved(call) + static_cast<double>(sizeof(Forest::Node)) * std::min(steps, static_cast<double>(nodes))};
}

void require_place_count(const OpCall& call, size_t count) {
  constexpr size_t most = std::numeric_limits<int32_t>::max();
  if (count >= most)
    fail(ErrorKind::Unsupported, title(call), ": ", count, " nodes or leaves are more than the ", most - 1, " supported");
}

uint32_t feature_of(const OpCall& call, int64_t feature) {
  if (feature < 0 || feature >= std::numeric_limits<int32_t>::max())
    fail(ErrorKind::InvalidModel, title(call), ": nodes_featureids has ", feature);
  return static_cast<uint32_t>(feature);
}

size_t targets_of(const OpCall& call, std::span<const int64_t> used) {
  const int64_t most = used.empty() ? -1 : *std::ranges::max_element(used);
  const int64_t targets = call.integer("n_targets", most < std::numeric_limits<int32_t>::max() ? most + 1 : most);
  if (targets < 1 || targets > std::numeric_limits<int32_t>::max())
    fail(ErrorKind::InvalidModel, title(call), ": there are ", targets, " targets");
  return static_cast<size_t>(targets);
}

uint32_t target_place(const OpCall& call, std::string_view key, int64_t target, size_t targets) {
  if (target < 0 || static_cast<size_t>(target) >= targets) {
    fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' has ", target, "; there are ", targets);
  }
  return static_cast<uint32_t>(target);
}

template <class T>
const std::vector<T>& list_attribute(const OpCall& call, std::string_view key) {
  static const std::vector<T> none;
  const auto found = call.node.attributes.find(key);
  if (found == call.node.attributes.end()) return none;
  if (const auto* held = std::get_if<std::vector<T>>(&found->second)) return *held;
  fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' has the wrong type: ", found->second);
}
template const std::vector<int64_t>& list_attribute(const OpCall&, std::string_view);
template const std::vector<float>& list_attribute(const OpCall&, std::string_view);
template const std::vector<std::string>& list_attribute(const OpCall&, std::string_view);

}  // namespace unmoor::ml
