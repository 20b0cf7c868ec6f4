#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "unmoor/catalog/question.h"
#include "unmoor/ops/op.h"

namespace unmoor {

// A node of the file with what its place in the graph says about it.
struct FileNode {
  std::string name;  // As in the file, with the nodes and bodies around it: "loop/body/square".
  std::string op;
  std::string category;
  bool heavy = false;
  bool small_integers = false;  // Makes a few integers, mostly of shapes: the host does that beside the work.
  bool shape_only = false;      // Makes integers only: no part of a path.
  bool after_heavy = false;
  bool before_heavy = false;
  double flop = 0;               // 0 where shapes are not known.
  const Node* node = nullptr;    // In the file's graph.
  const Graph* graph = nullptr;  // That holds it.
  const Graph* typed = nullptr;  // The same with inferred types; null where there is none.
};

// The nodes of a file, those of bodies behind the node around them, each file node once; and what lies before and after them.
// `file` and `typed`, the file with its types inferred, must outlive it; `typed` is `file` itself where no types could be inferred.
// Immutable.
class FileNodes {
 public:
  FileNodes(const Graph& file, const Graph& typed);

  const std::vector<FileNode>& all() const { return nodes_; }
  double total_flop() const { return total_; }
  bool any_heavy() const;
  // The value as far as its type is known; the file's own one where inference has no other.
  const Value& typed_value(const FileNode& node, ValueId id) const;
  // What a platform is asked about a node. Captured values are no inputs.
  CatalogQuestion question(const FileNode& node) const;

 private:
  using Flops = std::map<std::string, double, std::less<>>;
  using Names = std::unordered_map<std::string_view, const Value*>;

  bool is_heavy(const Node& node, const std::string& prefix) const;
  void list(const Graph& graph, const Graph* typed, const std::string& prefix, bool after, bool before);
  void mark_paths(const Graph& graph, size_t first, bool after_outside, bool before_outside);

  Flops flops_;  // By node.
  double total_ = 0;
  std::vector<FileNode> nodes_;
  std::unordered_map<const Graph*, Names> values_;  // Of typed graphs, by name in the file.
};

// The question for one call, its types as they stand in `graph`.
CatalogQuestion question_of(const Graph& graph, const Node& node, const std::string& op, int64_t opset);
// Everything of a question that an answer may depend on, as a key.
std::string signature(const CatalogQuestion& question);

// What is to be done first: P0, P1, P2, or empty. `has_form`: there is a form of it that the platform takes.
std::string priority_of(const FileNode& node, std::string_view state, bool any_heavy, bool has_form);

}  // namespace unmoor
