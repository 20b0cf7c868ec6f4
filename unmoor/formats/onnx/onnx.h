#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unmoor/graph/graph.h"

namespace unmoor {

// A model read from a file.
struct Model {
  std::string path;
  Graph graph;
  std::string fingerprint;  // SHA-256, in hex, over file size, structure and the first and last 4 KiB of each tensor.
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t, std::less<>> opsets;  // By domain; "ai.onnx" for the default.
  std::map<std::string, std::string, std::less<>> metadata;
};

// Reads an ONNX model over a mapped file: weights stay in the file (external data too). All opset history ends here: old forms
// become the newest ones; Constant nodes become constants; model-local functions are inlined; captured values become explicit.
// Types are as declared, not yet inferred. Fails with Io, InvalidModel or, for what has no meaning here, Unsupported, naming the place.
// The functions here may be called from any thread.
Model read_onnx(const std::string& path);

// Writes the graph as ONNX of opset 23, or later where an operator needs it, weights inside. For reproductions, tests and examples.
// Fails with Io, with Unsupported over 2 GiB and on constants that ONNX cannot hold.
void write_onnx(const Graph& graph, const std::string& path);

// One TensorProto in a file (.pb), as ONNX's test data has it, or a SequenceProto, MapProto or OptionalProto if `type` says so.
// Without a type, what is no tensor is read as a sequence. Fails with Io, InvalidModel or Unsupported.
Data read_onnx_tensor(const std::string& path, const Type* type = nullptr);
// A tensor, or a sequence. Fails with Unsupported on others.
void write_onnx_tensor(const Data& data, const std::string& name, const std::string& path);

}  // namespace unmoor
