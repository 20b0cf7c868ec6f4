#pragma once

#include <memory>

#include "unmoor/hal/device.h"

namespace unmoor {

// This machine's processor: SIMD kernels chosen at run time, a thread pool, and operators' reference functions as cpu.generic where there is no kernel.
// One device, always there. Options: threads.
std::unique_ptr<Backend> make_cpu_backend();

}  // namespace unmoor
