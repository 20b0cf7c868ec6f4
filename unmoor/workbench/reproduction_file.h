#pragma once

#include <span>
#include <string>
#include <vector>

#include "unmoor/workbench/reproduction.h"

namespace unmoor {

// The file's node as a model of its own.
struct FileModel {
  std::string bytes;                // A ModelProto.
  std::vector<std::string> inputs;  // Those of its graph, in order.
  std::vector<std::string> outputs;
};

// Finds the node that `call` stands for in its file and copies it, with the file's opsets and format version. Values that the
// file holds are held by the model as well. Fails with InvalidArgument, saying why, where that cannot be: the node stands for
// several, lies in a subgraph or a function, or reads a value that is not given.
FileModel copied_from_file(const OpCall& call, std::span<const Data> outputs, const FileNode& file);

}  // namespace unmoor
