#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unmoor/hal/device.h"

namespace unmoor::cli {

// A platform that Unmoor knows by name, whether or not it has a backend for it.
struct Platform {
  std::string name;     // "cuda"
  std::string absent;   // Why it cannot be here; empty if there is a backend.
};
const std::vector<Platform>& platforms();

// The backend of that name. Fails with InvalidArgument on an unknown name, with Device on a platform without a backend.
std::unique_ptr<Backend> make_backend(const std::string& name);

// "opencl" or "opencl:1". Fails with InvalidArgument on text that is neither.
struct DeviceName {
  std::string backend;
  size_t index = 0;
  std::string text() const;  // "opencl:1", "cpu": the first host device has no index.
};
DeviceName parse_device(const std::string& text);
bool is_device(const std::string& text);  // Its backend is a platform that Unmoor knows, here or not, or it is an engine's name.
// The name of a device or an engine in its usual spelling. Fails as make_backend does on what nobody knows or is not here.
std::string runner_name(const std::string& text);
bool needs_worker(const DeviceName& device);  // Its driver may abort.

using Settings = std::map<std::string, std::string>;  // Option and value.
Settings parse_settings(const char* const* texts, int count);  // KEY=VALUE each.

// The device and, if its memory is not the host's, the cpu for what it refuses. `threads` 0: one a core.
std::vector<std::shared_ptr<Device>> open_devices(const DeviceName& wanted, const Settings& settings, const Settings& cpu_settings);

}  // namespace unmoor::cli
