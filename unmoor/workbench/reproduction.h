#pragma once

#include <optional>
#include <span>
#include <string>

#include "unmoor/ops/op.h"
#include "unmoor/runtime/runner.h"

namespace unmoor {

// Where the node of a reproduction comes from, so that it can be written just as the file has it.
struct FileNode {
  std::string model;      // The ONNX file.
  NamedData values = {};  // By the file's names: what the node reads, constants included.
};

struct Reproduction {
  bool as_in_file =
      false;            // The file's own node in the file's opset; else the operator as Unmoor knows it, in opset 23 or later.
  std::string why_not;  // Why not, if a file was given.
};

// Writes one node with its inputs and the outputs it should have in ONNX's test layout: FOLDER/model.onnx,
// test_data_set_0/input_k.pb and output_k.pb, and README.md with the commands that replay it here (on `device`) and under plain
// ONNX Runtime. Inputs that are constants are held in the model. A fused operator of Unmoor's own is written as the standard ones
// it stands for. `inputs` and `outputs` are as many as the call's, absent ones empty. Fails with Io, with Unsupported on what
// ONNX cannot hold, and with InvalidArgument if the folder exists and is not empty.
Reproduction write_reproduction(const OpCall& call, std::span<const Data> inputs, std::span<const Data> outputs,
                                const std::string& folder, const std::string& device,
                                const std::optional<FileNode>& file = std::nullopt);

}  // namespace unmoor
