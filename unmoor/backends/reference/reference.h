#pragma once

#include <memory>

#include "unmoor/hal/device.h"

namespace unmoor {

// The oracle: every operator's reference function, on host memory. One device, always there.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace unmoor
