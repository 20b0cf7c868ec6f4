#pragma once

#include <string>
#include <string_view>

namespace unmoor {

// What an engine's message says, as far as it can be read. Everything may be empty.
struct FailureReading {
  std::string op;     // As the engine spells it: "Conv", "aten::addmm".
  std::string layer;  // The node or module.
  std::string dtype;
  std::string shape;
  std::string remedy;  // What usually helps.
  // "operator Conv, node 'conv1', type tensor(double)"; empty if nothing was found.
  std::string where() const;
};

// Reads messages of ONNX Runtime, PyTorch and their vendors' plug-ins. Any text will do.
FailureReading read_failure(std::string_view message);

// The message in fewer words, what was read from it and the remedy, as one text.
std::string explained_failure(std::string_view message);

}  // namespace unmoor
