#include "unmoor/workbench/machine_lock.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/sha256.h"
#include "unmoor/workbench/machine_facts.h"

namespace unmoor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double dpkg_patience_s = 60;

std::string file_hash(const std::string& path) {
  Sha256 hash;
  hash.add(MappedFile::open(path)->bytes());
  return hash.finish();
}

// The text of a file of the system; empty where there is none.
std::string system_text(const char* path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? read_file(path) : std::string();
}

// The value of KEY="VALUE" in /etc/os-release.
std::string system_name() {
  std::istringstream lines(system_text("/etc/os-release"));
  constexpr std::string_view key = "PRETTY_NAME=";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::string value = line.substr(key.size());
    std::erase(value, '"');
    return value;
  }
  return "unknown";
}

// Of the processor's flags those that kernels and libraries choose by, sorted.
std::string instruction_sets() {
  constexpr std::array<std::string_view, 17> heads{"sse4",  "ssse3", "avx", "fma",  "f16c", "bmi",  "amx",  "popcnt",    "vaes",
                                                   "asimd", "sve",   "sme", "bf16", "i8mm", "fphp", "neon", "vpclmulqdq"};
  std::istringstream lines(system_text("/proc/cpuinfo"));
  std::set<std::string> sets;
  for (std::string line; std::getline(lines, line) && sets.empty();) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(std::min(line.size(), line.find(':') + 1)));
    for (std::string word; words >> word;) {
      const bool chosen_by = std::ranges::any_of(heads, [&](std::string_view head) { return word.starts_with(head); });
      if (chosen_by && word != "smep") sets.insert(word);  // smep guards the kernel's memory.
    }
  }
  std::string text;
  for (const std::string& each : sets) text += fmt::format("{}{}", text.empty() ? "" : " ", each);
  return text;
}

void add_system(Lock& lock, const std::string& version) {
  utsname system{};
  ::uname(&system);
  const std::string program = own_program();
  lock.components.push_back({"unmoor", version, program, file_hash(program), ""});
  lock.components.push_back({"os", system_name(), "", "", ""});
  lock.components.push_back({"kernel", fmt::format("{} {} {}", system.sysname, system.release, system.machine), "", "", ""});
  lock.components.push_back({"cpu", host_json().at("processor").get<std::string>(), "", "", ""});
  lock.components.push_back({"instruction sets", instruction_sets(), "", "", ""});
}

void add_devices(Lock& lock, const DoctorResult& found) {
  for (const DoctorResult::Found& device : found.devices) {
    if (device.state != "ready") continue;
    lock.components.push_back({fmt::format("device {}", device.name), device.hardware, "", "", ""});
    for (const auto& [what, version] : device.versions)
      lock.components.push_back({fmt::format("device {} {}", device.name, what), version, "", "", ""});
  }
}

// Debian's packages by file, as `package=version`. Empty where dpkg is not used.
std::map<std::string, std::string> packages_of(const std::set<std::string>& files) {
  std::vector<std::string> command{"dpkg-query", "-S"};
  for (const std::string& file : files) {
    command.push_back(file);
    if (file.starts_with("/usr/lib")) command.push_back(file.substr(4));  // Packages older than the merged /usr name it so.
  }
  std::string end;
  std::istringstream owners(
      output_of(command, {"LC_ALL=C"}, dpkg_patience_s, end));  // Its status tells only that some file has no owner.
  std::map<std::string, std::string> package_of_file;
  command = {"dpkg-query", "-W", "-f", "${binary:Package} ${Version}\n"};
  for (std::string line; std::getline(owners, line);) {
    const size_t colon = line.find(": /");
    if (colon == std::string::npos || line.find(',') < colon) continue;
    const std::string file = line.substr(colon + 2);
    package_of_file[files.contains(file) ? file : "/usr" + file] = line.substr(0, colon);
    command.push_back(line.substr(0, colon));
  }
  if (package_of_file.empty()) return {};
  std::istringstream versions(output_of(command, {"LC_ALL=C"}, dpkg_patience_s, end));
  std::map<std::string, std::string> version_of;
  for (std::string name, version; versions >> name >> version;) version_of[name.substr(0, name.find(':'))] = version;
  for (auto& [file, package] : package_of_file) {
    const auto version = version_of.find(package.substr(0, package.find(':')));
    package = version == version_of.end() ? "" : fmt::format("{}={}", version->first, version->second);
  }
  return package_of_file;
}

void add_libraries(Lock& lock, const DoctorResult& found) {
  std::map<std::string, std::string> real_of;  // By what it was opened as.
  std::set<std::string> real;
  for (const auto& paths : {found.mapped, [&] {
                              std::vector<std::string> opened;
                              for (const auto& library : found.libraries) opened.push_back(library.used);
                              return opened;
                            }()}) {
    for (const std::string& path : paths) {
      std::error_code problem;
      const fs::path file = fs::canonical(path, problem);
      if (!problem && real.insert(file.string()).second) real_of[path] = file.string();
    }
  }
  const auto packages = packages_of(real);
  std::map<std::string, size_t> copies;
  for (const auto& [path, file] : real_of) {
    std::string name = fs::path(file).filename().string();
    const std::string version = version_in_name(name);
    name = name.substr(0, name.find(".so") + 3);
    const size_t copy = ++copies[name];
    const auto package = packages.find(file);
    lock.components.push_back({copy == 1 ? fmt::format("library {}", name) : fmt::format("library {} copy {}", name, copy),
                               version, file, file_hash(file), package == packages.end() ? "" : package->second});
  }
}

void add_engines(Lock& lock, const DoctorResult& found) {
  bool any = false;
  for (const FoundEngine& engine : found.engines) {
    if (engine.state != "ready") continue;
    any = true;
    lock.components.push_back({fmt::format("engine {}", engine.name), engine.version, "", "", ""});
    for (const auto& [what, version] : engine.versions) {
      if (what != "python" && what != "numpy")
        lock.components.push_back({fmt::format("engine {} {}", engine.name, what), version, "", "", ""});
    }
  }
  if (!any) return;
  const PythonFacts& python = found.python;
  if (!python.problem.empty()) fail(ErrorKind::Device, python.problem, "; a lock without its packages says too little");
  lock.components.push_back({"python", python.version, python.path, "", ""});
  for (const PythonFacts::Package& each : python.packages)
    lock.components.push_back({fmt::format("package {}", each.name), each.version, each.path, each.sha256, ""});
}

}  // namespace

Lock lock_of_machine(const DoctorResult& found, const std::string& version) {
  Lock lock{now_text(), {}};
  add_system(lock, version);
  add_devices(lock, found);
  add_libraries(lock, found);
  add_engines(lock, found);
  return lock;
}

std::map<std::string, std::string> absent_reasons(const DoctorResult& found, const Lock& locked) {
  std::map<std::string, std::string> reasons;
  for (const LockComponent& component : locked.components) {
    for (const DoctorResult::Found& device : found.devices) {
      if (device.state == "ready") continue;
      if (component.name.starts_with(fmt::format("device {}", device.backend)))
        reasons[component.name] = fmt::format("{}: {}", device.state, device.reason);
    }
    for (const FoundEngine& engine : found.engines) {
      if (engine.state != "ready" && component.name.starts_with(fmt::format("engine {}", engine.name)))
        reasons[component.name] = fmt::format("{}: {}", engine.state, engine.reason);
    }
  }
  return reasons;
}

}  // namespace unmoor
