#include "unmoor/workbench/machine_facts.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/json.h"
#include "unmoor/base/sha256.h"

namespace embedded {
extern const std::string_view unmoor_workbench_machine_facts_py;
}  // namespace embedded

namespace unmoor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t most_output = 16U << 20U;
constexpr double python_patience_s = 120;  // A cold network disk with thousands of packages.
constexpr double dpkg_patience_s = 60;
constexpr std::string_view packages_mark = "\nunmoor-packages ";

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

// "1.0.0" of libOpenCL.so.1.0.0, "1" of libLLVM-15.so.1; empty if nothing stands behind .so.
std::string version_in_name(const std::string& file) {
  const size_t so = file.find(".so.");
  return so == std::string::npos ? std::string() : file.substr(so + 4);
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
  std::optional<std::string> python;
  for (const FoundEngine& engine : found.engines) {
    if (engine.state != "ready") continue;
    lock.components.push_back({fmt::format("engine {}", engine.name), engine.version, "", "", ""});
    for (const auto& [what, version] : engine.versions) {
      if (what != "python" && what != "numpy")
        lock.components.push_back({fmt::format("engine {} {}", engine.name, what), version, "", "", ""});
    }
    python = engine.python;  // One for all.
  }
  if (!python) return;
  const json facts = python_facts(*python);
  lock.components.push_back({"python", facts["python"], facts["path"], "", ""});
  for (const json& each : facts["packages"]) {
    lock.components.push_back(
        {fmt::format("package {}", each["name"].get<std::string>()), each["version"], each["path"], each["sha256"], ""});
  }
}

}  // namespace

std::string output_of(const std::vector<std::string>& command, const std::vector<std::string>& environment, double patience,
                      std::string& end) {
  std::string text;
  try {
    Child child(command, environment);
    child.close_input();
    std::array<std::byte, 65536> part{};
    while (text.size() < most_output) {
      const size_t got = child.read_some(part, patience);
      if (got == 0) break;
      text.append(reinterpret_cast<const char*>(part.data()), got);
    }
    const ChildEnd ended = child.finish(1);
    end = ended.status == 0 && ended.signal == 0 ? "" : cat(ended.text(), "; it said: ", child.errors());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw;
    end = error.what();
  }
  return text;
}

json python_facts(const std::string& python) {
  std::string end;
  const std::string output =
      output_of({python, "-c", std::string(embedded::unmoor_workbench_machine_facts_py)}, {}, python_patience_s, end);
  const size_t mark = output.rfind(packages_mark);
  const json facts = mark == std::string::npos ? json() : read_json(std::string_view(output).substr(mark + packages_mark.size()));
  const auto is_text = [](const json& object, const char* key) { return object.contains(key) && object[key].is_string(); };
  const bool whole =
      facts.is_object() && is_text(facts, "python") && is_text(facts, "path") && facts.contains("packages") &&
      facts["packages"].is_array() && std::ranges::all_of(facts["packages"], [&](const json& each) {
        return is_text(each, "name") && is_text(each, "version") && is_text(each, "path") && is_text(each, "sha256");
      });
  if (!whole)
    fail(ErrorKind::Device, "'", python,
         "' does not list its packages, and a lock without them says too little: ", end.empty() ? "it gave no list" : end);
  return facts;
}

std::vector<std::string> mapped_libraries() {
  std::istringstream lines(system_text("/proc/self/maps"));
  std::set<std::string> files;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find('/');
    if (at == std::string::npos || line.ends_with(" (deleted)")) continue;
    const std::string file = line.substr(at);
    const std::string name = fs::path(file).filename().string();
    if (name.starts_with("lib") && name.find(".so") != std::string::npos) files.insert(file);
  }
  return {files.begin(), files.end()};
}

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
