#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "unmoor/formats/onnx/parts.h"
#include "unmoor/graph/graph.h"

namespace unmoor {

// The places at which a model can be cut on the way to one of its outputs: between nodes that take part in it, in the order of the
// file. Cut i has i of them before it. Values that are constant for the types of the graph cross no cut. Immutable: any thread.
class Cuts {
 public:
  // `typed` is the model's graph with inferred types; both must outlive it. Fails with InvalidArgument where no node makes `output`.
  Cuts(const OnnxParts& parts, const Graph& typed, const std::string& output);

  size_t nodes() const { return nodes_.size(); }
  // The values made before the cut that are read behind it, in order of the run; at the last cut the output.
  std::vector<std::string> crossing(size_t cut) const;
  // With their types. Nothing where one is no tensor, or its type is not known.
  std::optional<std::vector<RimValue>> rim(const std::vector<std::string>& values) const;
  // What the file calls the node just behind a cut, and its operator.
  const std::string& node_behind(size_t cut) const;
  const std::string& op_behind(size_t cut) const;
  // Names of values that the node behind a cut reads of others' and that it makes and others read.
  std::vector<std::string> read_behind(size_t cut) const;
  std::vector<std::string> made_behind(size_t cut) const;
  // The value's node, if the file's graph has it.
  const Node* maker(const std::string& value) const;
  std::optional<DType> stored(const std::string& value) const;
  // Between two cuts, the one to try next: of those in the middle half that `usable` takes, one that the fewest values cross; else
  // the nearest to the middle. Nothing if there is none.
  template <class Usable>
  std::optional<size_t> best_between(size_t low, size_t high, Usable usable) const;
  std::vector<std::string> all_values() const;  // That nodes make on the way to the output, in order.

 private:
  struct Span {
    std::string name;
    size_t made = 0, last_read = 0;  // By place in nodes_; the output is read at nodes().
  };
  void find_spans(const std::string& output);

  const OnnxParts& parts_;
  std::map<std::string, const Value*, std::less<>> values_;  // By the file's name.
  std::map<std::string, const Node*, std::less<>> makers_;
  std::vector<size_t> nodes_;   // Places in parts_.nodes().
  std::vector<Span> spans_;     // In order of the run.
  std::vector<size_t> counts_;  // By cut: the values that cross it.
};

template <class Usable>
std::optional<size_t> Cuts::best_between(size_t low, size_t high, Usable usable) const {
  const size_t middle = low + (high - low) / 2;
  const size_t quarter = (high - low) / 4;
  std::optional<size_t> best;
  const auto far = [middle](size_t cut) { return cut > middle ? cut - middle : middle - cut; };
  const auto is_inner = [&](size_t cut) { return far(cut) <= quarter; };
  const auto is_better = [&](size_t a, size_t b) {
    if (is_inner(a) != is_inner(b)) return is_inner(a);
    if (is_inner(a) && counts_[a] != counts_[b]) return counts_[a] < counts_[b];
    return far(a) < far(b);
  };
  for (size_t cut = low + 1; cut < high; ++cut) {
    if (usable(cut) && (!best || is_better(cut, *best))) best = cut;
  }
  return best;
}

}  // namespace unmoor
