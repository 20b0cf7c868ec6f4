#include "cli/devices.h"

#include <algorithm>
#include <charconv>

#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/backends/gpu/gpu.h"
#include "unmoor/backends/reference/reference.h"
#include "unmoor/base/error.h"
#include "unmoor/engines/engine.h"

namespace unmoor::cli {

const std::vector<Platform>& platforms() {
  static const std::string none = "this version of Unmoor has no backend for it";
  static const std::vector<Platform> all{{"cpu", ""},   {"reference", ""}, {"opencl", ""}, {"cuda", none}, {"hip", none},
                                         {"ascend", none}, {"mlu", none},  {"musa", none}, {"xpu", none}};
  return all;
}

std::unique_ptr<Backend> make_backend(const std::string& name) {
  if (name == "cpu") return make_cpu_backend();
  if (name == "reference") return make_reference_backend();
  if (name == "opencl") return make_opencl_backend();
  std::string names;
  for (const Platform& platform : platforms()) {
    if (platform.name == name) fail(ErrorKind::Device, name, ": ", platform.absent);
    names += cat(names.empty() ? "" : ", ", platform.name);
  }
  fail(ErrorKind::InvalidArgument, "no device is called '", name, "'; known are: ", names, ", and the engines ort:DEVICE, torch:DEVICE and py:FILE");
}

std::string DeviceName::text() const {
  const bool host = backend == "cpu" || backend == "reference";
  return host && index == 0 ? backend : cat(backend, ":", index);
}

DeviceName parse_device(const std::string& text) {
  if (is_engine(text)) fail(ErrorKind::InvalidArgument, "'", text, "' is an engine; here, only Unmoor's devices may stand");
  DeviceName name;
  const size_t colon = text.find(':');
  name.backend = text.substr(0, colon);
  if (colon == std::string::npos) return name;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data() + colon + 1, end, name.index);
  if (problem != std::errc() || at != end) fail(ErrorKind::InvalidArgument, "'", text, "' is no device; write it as backend or backend:index");
  return name;
}

bool is_device(const std::string& text) {
  const std::string backend = text.substr(0, text.find(':'));
  return is_engine(text) || std::ranges::find(platforms(), backend, &Platform::name) != platforms().end();
}

std::string runner_name(const std::string& text) {
  if (const auto engine = parse_engine(text)) return engine->text();
  const DeviceName name = parse_device(text);
  (void)make_backend(name.backend);
  return name.text();
}

bool needs_worker(const DeviceName& device) { return device.backend != "cpu" && device.backend != "reference"; }

Settings parse_settings(const char* const* texts, int count) {
  Settings settings;
  for (int i = 0; i < count; ++i) {
    const std::string text = texts[i];
    settings[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  return settings;
}

std::vector<std::shared_ptr<Device>> open_devices(const DeviceName& wanted, const Settings& settings, const Settings& cpu_settings) {
  const auto open = [](const DeviceName& name, const Settings& options) {
    auto device = make_backend(name.backend)->open(name.index);
    for (const auto& [key, value] : options) device->set_option(key, value);
    return device;
  };
  std::vector<std::shared_ptr<Device>> devices;
  devices.reserve(2);
  devices.push_back(open(wanted, settings));
  if (!devices[0]->info().host) devices.push_back(open({"cpu", 0}, cpu_settings));
  return devices;
}

}  // namespace unmoor::cli
