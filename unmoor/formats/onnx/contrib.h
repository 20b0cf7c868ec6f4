#pragma once

#include "unmoor/formats/onnx/draft.h"

namespace unmoor::onnx {

// Turns a node of com.microsoft into the operator of ai.onnx that means the same, where there is one.
void modernize_contrib(NodeDraft& draft);

}  // namespace unmoor::onnx
