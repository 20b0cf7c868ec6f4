#pragma once

#include <memory>

#include "unmoor/hal/device.h"

namespace unmoor {

// Devices behind libOpenCL, opened at run time.
std::unique_ptr<Backend> make_opencl_backend();

}  // namespace unmoor
