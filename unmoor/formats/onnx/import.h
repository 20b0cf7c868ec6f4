#pragma once

#include "unmoor/formats/onnx/model_file.h"

namespace unmoor::onnx {

// The model as a graph: sorted, in the newest opset, functions inlined, captured values explicit. Fails with InvalidModel or
// Unsupported.
Graph import_graph(const ModelDef& model);

}  // namespace unmoor::onnx
