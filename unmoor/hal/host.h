#pragma once

#include <memory>

#include "unmoor/hal/device.h"

namespace unmoor {

// Host memory, aligned to 64 bytes. Big ones ask for huge pages.
std::shared_ptr<Buffer> make_host_buffer(size_t bytes);  // Shared as Device::allocate's is.

// A stream whose work is done when each call returns.
std::unique_ptr<Stream> make_host_stream();

}  // namespace unmoor
