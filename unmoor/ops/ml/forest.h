#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor::ml {

// What a node asks of its feature. The values are TreeEnsemble's numbers.
enum class Test : uint8_t { Leq, Lt, Gte, Gt, Eq, Neq, Member };
// How the votes for one target are put together. The values are TreeEnsemble's numbers.
enum class Aggregate : uint8_t { Average, Sum, Min, Max };

// Decision trees. Once built and checked it is only read, from any thread.
struct Forest {
  // A branch: `yes` and `no` are places of nodes, or ~leaf.
  struct Node {
    double split = 0;
    uint32_t feature = 0;
    uint32_t set = 0;  // Of Member: its place in `sets`.
    int32_t yes = 0;
    int32_t no = 0;
    Test test = Test::Leq;
    bool missing_is_yes = false;  // Where NaN goes; without it to `no`, whatever the test.
  };
  struct Vote {
    uint32_t target = 0;
    double weight = 0;
  };

  std::vector<Node> nodes = {};
  std::vector<int32_t> roots = {};             // A tree each; as `yes` and `no`.
  std::vector<uint32_t> first_votes = {};      // By leaf, and the end.
  std::vector<Vote> votes = {};                // Those of a leaf together.
  std::vector<std::vector<double>> sets = {};  // Sorted, without NaN.
  size_t targets = 0;
  size_t features = 0;  // That a row must have at least.

  size_t leaf_of(int32_t root, std::span<const double> row) const;
  // Replaces `scores`, [rows, targets]: 0 where no leaf that the row comes to votes. `rows` are [rows, width].
  void score(std::span<const double> rows, size_t width, Aggregate how, std::span<double> scores) const;
};

// Sorts votes by leaf. `leaves` names the leaf of each vote.
void set_votes(Forest& forest, std::span<const uint32_t> leaves, std::span<const Forest::Vote> votes, size_t leaf_count);

// Fails with InvalidModel on a cycle, and on a node that no root leads to; `name` says which one it is. Nodes may share a branch:
// converters write a set as a chain of tests for equality with one end. Linear in the nodes.
void require_trees(const OpCall& call, std::span<const Forest::Node> nodes, std::span<const int32_t> roots,
                   const std::function<std::string(size_t)>& name);
// Fails with InvalidModel if the input has fewer features than the trees ask for. Unknown ones are taken to be enough.
void require_features(const OpCall& call, const Forest& forest);

// Comparisons on the way to the leaves of balanced trees, and a vote at each.
Cost forest_cost(const OpCall& call, size_t nodes, size_t trees);

// Numbers of the attributes, checked. All fail with InvalidModel.
void require_place_count(const OpCall& call, size_t count);  // Of nodes or leaves: places are 32 bits wide.
uint32_t feature_of(const OpCall& call, int64_t feature);
size_t targets_of(const OpCall& call,
                  std::span<const int64_t> used);  // The attribute n_targets or, for want of it, as many as are used.
uint32_t target_place(const OpCall& call, std::string_view key, int64_t target, size_t targets);

// A list attribute without a copy; empty if it is absent. Fails with InvalidModel if it has another type.
template <class T>
const std::vector<T>& list_attribute(const OpCall& call, std::string_view key);

}  // namespace unmoor::ml
