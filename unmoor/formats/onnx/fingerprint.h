#pragma once

#include <string>

#include "unmoor/formats/onnx/tensors.h"

namespace unmoor::onnx {

// Has the system start to read a part of a mapped file. A hint: a failure is no matter.
void will_read(std::span<const std::byte> bytes);

// SHA-256 over file size, everything that is no weight, and the first and last 4 KiB of each weight, external ones included.
std::string fingerprint(const TensorReader& tensors);

}  // namespace unmoor::onnx
