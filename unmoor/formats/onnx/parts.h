#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/base/file.h"
#include "unmoor/tensor/tensor.h"

namespace unmoor {

// A value at the rim of a part of a model, by the file's name, and the type that it is declared with there.
struct RimValue {
  std::string name;
  TensorType type;
};

// An ONNX file that parts are cut out of: the file's very nodes in the file's opsets, with its functions and the weights they need.
// Immutable once opened: any thread.
class OnnxParts {
 public:
  struct Node {
    std::vector<std::string> reads;  // Names, those that its subgraphs capture too (and some that they only use inside).
    std::vector<std::string> makes;
  };

  // Fails with Io, InvalidModel, and with Unsupported where a node reads what only a later one makes.
  explicit OnnxParts(std::string path);

  const std::vector<Node>& nodes() const { return nodes_; }  // Of the main graph, in the file's order, which is that of a run.

  // Copies weights that lie outside of the model's file into the folder that parts will be in, so that a part refers to them as the
  // model does. No links: engines refuse weights that are some. Fails with Io, InvalidModel.
  void bring_weights(const std::string& folder) const;

  // Writes the part that makes `wanted` of `given`, of the model's inputs and of weights. Returns the inputs of the model that it
  // reads. Fails with InvalidArgument where no node makes a wanted value, or a node that is needed makes a given one; with Unsupported
  // over 2 GiB; with Io.
  std::vector<std::string> write(const std::vector<RimValue>& given, const std::vector<RimValue>& wanted, const std::string& path) const;

 private:
  struct Needed;
  Needed needed_for(const std::vector<RimValue>& given, const std::vector<RimValue>& wanted) const;
  void check_order() const;

  struct Named {
    std::string name;
    std::string_view bytes;  // Into the file.
  };
  std::string path_;
  std::shared_ptr<const MappedFile> file_;  // Shared as it is mapped once for all who open it.
  int64_t ir_version_ = 0;
  std::vector<std::string_view> opsets_, functions_, node_bytes_;
  std::vector<Named> inputs_, weights_, sparse_;
  std::vector<Node> nodes_;
};

}  // namespace unmoor
