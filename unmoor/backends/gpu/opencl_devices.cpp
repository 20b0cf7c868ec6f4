#include "unmoor/backends/gpu/opencl_devices.h"

#include <algorithm>

#include "unmoor/backends/gpu/driver.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

// PoCL needs a folder to write to and does not say so.
constexpr const char* cache_hint = "; if its cache folder cannot be written, set HOME or POCL_CACHE_DIR to one that can";

void add_reason(std::string& reason, const std::string& more) { reason += reason.empty() ? more : cat("; ", more); }

// A text that a driver gives in two calls. Empty if it refuses; `code` then says why.
template <class Ask>
std::string text_of(const Ask& ask, cl_int& code) {
  size_t size = 0;
  code = ask(0, nullptr, &size);
  if (code != CL_SUCCESS || size == 0 || size > (size_t{1} << 20)) return {};
  std::string text(size, '\0');
  code = ask(size, text.data(), nullptr);
  if (code != CL_SUCCESS) return {};
  text.resize(std::char_traits<char>::length(text.c_str()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string text_of(cl_device_id id, cl_device_info what, cl_int& code) {
  return text_of([&](size_t size, void* to, size_t* wanted) { return opencl().clGetDeviceInfo(id, what, size, to, wanted); }, code);
}

template <class T>
T number_of(cl_device_id id, cl_device_info what) {
  T value{};
  return opencl().clGetDeviceInfo(id, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

std::string type_name(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return "gpu";
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return "cpu";
  return "accelerator";
}

OpenClDevice describe(cl_device_id id, const std::string& platform, std::string& reason) {
  OpenClDevice device;
  device.id = id;
  cl_int name_code = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  device.info.name = text_of(id, CL_DEVICE_NAME, name_code);
  device.type = number_of<cl_device_type>(id, CL_DEVICE_TYPE);
  const auto version = text_of(id, CL_DEVICE_VERSION, code);
  if (device.info.name.empty() || code != CL_SUCCESS) {
    add_reason(reason, cat("a device of ", platform, " does not tell its name and version: clGetDeviceInfo gives ",
                           opencl_error(name_code != CL_SUCCESS ? name_code : code), cache_hint));
    device.usable = false;
  } else if (version.starts_with("OpenCL 1.0") || version.starts_with("OpenCL 1.1")) {
    add_reason(reason, cat(device.info.name, " has ", version, ", but 1.2 is needed"));
    device.usable = false;
  } else if (number_of<cl_bool>(id, CL_DEVICE_AVAILABLE) == CL_FALSE || number_of<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE) == CL_FALSE) {
    add_reason(reason, cat(device.info.name, " is not available, or has no compiler"));
    device.usable = false;
  } else if (const auto most = number_of<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE); most < group_size) {
    add_reason(reason, cat(device.info.name, " runs work-groups of at most ", most, " work-items, and ", group_size, " are needed"));
    device.usable = false;
  }
  device.info.versions = {{"driver", text_of(id, CL_DRIVER_VERSION, code)},
                          {"opencl", version},
                          {"platform", platform},
                          {"type", type_name(device.type)}};
  device.info.memory_bytes = number_of<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  device.largest_allocation = number_of<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device.info.separate_process = true;
  device.float64 = text_of(id, CL_DEVICE_EXTENSIONS, code).find("cl_khr_fp64") != std::string::npos;
  return device;
}

void add_devices(cl_platform_id platform, OpenClDevices& result) {
  const auto& cl = opencl();
  cl_int code = CL_SUCCESS;
  const auto label = text_of(
      [&](size_t size, void* to, size_t* wanted) { return cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, to, wanted); }, code);
  cl_uint count = 0;
  code = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  std::vector<cl_device_id> ids(code == CL_SUCCESS ? count : 0);
  if (!ids.empty()) code = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
  if (code != CL_SUCCESS) {
    add_reason(result.reason, cat("platform ", label, " gives no device: clGetDeviceIDs gives ", opencl_error(code), cache_hint));
    return;
  }
  for (const auto id : ids) {
    auto device = describe(id, label, result.reason);
    if (device.usable) result.found.push_back(std::move(device));
  }
}

}  // namespace

OpenClDevices find_opencl_devices() {
  OpenClDevices result;
  const auto& cl = opencl();
  if (!cl.problem.empty()) {
    result.reason = cl.problem;
    return result;
  }
  cl_uint count = 0;
  cl_int code = cl.clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(code == CL_SUCCESS ? count : 0);
  if (!platforms.empty()) code = cl.clGetPlatformIDs(count, platforms.data(), nullptr);
  if (code != CL_SUCCESS || platforms.empty()) {
    result.reason = cat("libOpenCL has no platform: clGetPlatformIDs gives ", opencl_error(code), "; no driver is installed for it");
    return result;
  }
  for (const auto platform : platforms) add_devices(platform, result);
  std::stable_partition(result.found.begin(), result.found.end(),
                        [](const OpenClDevice& device) { return (device.type & CL_DEVICE_TYPE_CPU) == 0; });
  for (size_t i = 0; i < result.found.size(); ++i) result.found[i].info.id = cat("opencl:", i);
  if (result.found.empty() && result.reason.empty()) result.reason = "no OpenCL platform has a device";
  return result;
}

}  // namespace unmoor::gpu
