#pragma once

#include "unmoor/formats/onnx/draft.h"

namespace unmoor::onnx {

constexpr int64_t newest_opset = 28;
constexpr int64_t newest_ml_opset = 5;

// Turns a node of ai.onnx into its newest form; helper nodes and constants go into the graph before it. An operator that has not
// changed, or that nobody knows, stays as it is. Fails with Unsupported where an old form has no new one, with InvalidModel where
// the node makes no sense.
void modernize(NodeDraft& draft);
void modernize_ml(NodeDraft& draft);  // A node of ai.onnx.ml.

}  // namespace unmoor::onnx
