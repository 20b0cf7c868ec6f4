#pragma once

#include <string>

#include "unmoor/formats/onnx/tensors.h"

namespace unmoor::onnx {

// SHA-256 over file size, everything that is no weight, and the first and last 4 KiB of each weight, external ones included.
std::string fingerprint(const TensorReader& tensors);

}  // namespace unmoor::onnx
