#pragma once

#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "unmoor/formats/onnx/model_file.h"

namespace unmoor::onnx {

// The names that graphs use and do not define, in order of first use. Remembers them by graph. One thread at a time.
class FreeNames {
 public:
  const std::vector<std::string_view>& of(const GraphDef& graph);
  // Of all bodies of a node.
  std::vector<std::string_view> of(const NodeDef& node);

 private:
  std::unordered_map<const GraphDef*, std::vector<std::string_view>> known_;
};

// The nodes' places in an order where each comes after what it uses; as it is if that holds already. `is_given` tells which names
// are there from the start. Fails with InvalidModel on a missing value, one that is made twice, and a cycle, naming node and
// value.
using Given = std::unordered_map<std::string_view, ValueId>;
std::vector<size_t> sorted_order(const std::vector<NodeDef>& nodes, const Given& given, FreeNames& free_names);

}  // namespace unmoor::onnx
