#pragma once

#include "unmoor/graph/graph.h"

namespace unmoor::onnx {

// What a Constant node with these attributes holds. Fails with InvalidModel unless there is just one value of the right type.
Tensor constant_value(const Attributes& attributes);

}  // namespace unmoor::onnx
