#pragma once

#include <string>
#include <vector>

#include "unmoor/backends/gpu/opencl_functions.h"
#include "unmoor/hal/device.h"

namespace unmoor::gpu {

// A device that libOpenCL lists, with what it says about itself.
struct OpenClDevice {
  cl_device_id id = nullptr;
  cl_device_type type = 0;
  DeviceInfo info;
  bool float64 = false;
  size_t largest_allocation = 0;
  bool usable = true;
};

struct OpenClDevices {
  std::vector<OpenClDevice> found;  // Accelerators first, processors last.
  std::string reason;               // Why there are none, or what was left out.
};

// Asks every platform. Never fails: what goes wrong is in `reason`.
OpenClDevices find_opencl_devices();

}  // namespace unmoor::gpu
