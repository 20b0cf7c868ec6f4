#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "unmoor/base/error.h"
#include "unmoor/base/json.h"
#include "unmoor/workbench/machine_facts.h"

namespace unmoor {
namespace {

using nlohmann::json;

// The value behind KEY= at the start of a line.
std::string value_of(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    line.erase(0, key.size());
    return line.substr(0, line.find_last_not_of(" \r\t") + 1);
  }
  return "";
}

class Facts {
 public:
  Facts(const Machine& machine, const PythonFacts& python) : machine_(machine), python_(python) {}

  void read() {
    read_python();
    read_nvidia();
    read_amd();
    read_ascend();
    read_others();
  }
  std::vector<VersionFact> found;

 private:
  void add(const std::string& component, const std::string& version, const std::string& from) {
    const bool again = std::ranges::any_of(
        found, [&](const VersionFact& each) { return each.component == component && each.version == version; });
    if (!version.empty() && !again) found.push_back({component, version, from});
  }
  bool has(std::string_view component) const {
    return std::ranges::find(found, component, &VersionFact::component) != found.end();
  }
  void add_from(const char* component, const char* file, std::string_view mark) {
    add(component, version_after(machine_.text(file), mark), file);
  }

  void read_python() {
    for (const PythonFacts::Package& each : python_.packages) add_package(each.name, each.version);
    if (!found.empty()) add("python", python_.version, "the interpreter");  // It matters where something runs in it.
  }

  void add_package(const std::string& name, const std::string& version) {
    constexpr std::array<std::string_view, 5> same{"torch", "torch-npu", "torch-mlu", "torch-musa", "onnxruntime-gpu"};
    const std::string from = fmt::format("the Python package {}", name);
    if (std::ranges::find(same, name) != same.end()) add(name, version, from);
    if (name.starts_with("nvidia-cuda-runtime")) add("cuda runtime", version, from);
    if (name.starts_with("nvidia-cudnn")) add("cudnn", version, from);
    if (name != "torch") return;
    const std::string build = version.substr(std::min(version.size(), version.find('+') + 1));
    if (version.find('+') == std::string::npos) return;
    if (build.starts_with("rocm")) add("rocm of torch", build.substr(4), from);
    // cu126 is 12.6.
    if (!has("cuda runtime") && build.starts_with("cu") && build.size() >= 5)
      add("cuda runtime", fmt::format("{}.{}", build.substr(2, build.size() - 3), build.back()), from);
  }

  void read_nvidia() {
    const char* const file = "/proc/driver/nvidia/version";
    add("nvidia driver", version_after(machine_.text(file), "Kernel Module"), file);
    if (!has("nvidia driver")) return;
    for (const std::string& line : machine_.lines("/outputs/nvidia-smi")) add("nvidia gpu", version_after(line, ""), "nvidia-smi");
    const char* const toolkit = "/usr/local/cuda/version.json";
    const json versions = read_json(machine_.text(toolkit));
    if (!versions.is_object() || !versions.contains("cuda") || !versions["cuda"].is_object()) return;
    const json version = versions["cuda"].value("version", json());
    if (!version.is_string()) return;
    add("cuda toolkit", version, toolkit);
    if (!has("cuda runtime")) add("cuda runtime", version, toolkit);
  }

  void read_amd() {
    const char* const file = "/opt/rocm/.info/version";
    const std::string version = version_after(machine_.text(file), "");
    add("rocm", version.substr(0, version.find('-')), file);
    const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
    for (const std::string& node : machine_.names(nodes)) {
      const std::string target = value_of(machine_.text(cat(nodes, "/", node, "/properties")), "gfx_target_version ");
      if (target.empty() || target.size() > 8 || target.find_first_not_of("0123456789") != std::string::npos) continue;
      // 90010 is gfx90a: two digits each for minor and step, the last in hexadecimal.
      const int number = std::atoi(target.c_str());
      if (number > 0) add("amd gpu", fmt::format("gfx{}{}{:x}", number / 10000, number / 100 % 100, number % 100), nodes);
    }
  }

  void read_ascend() {
    const char* const driver = "/usr/local/Ascend/driver/version.info";
    add("ascend driver", value_of(machine_.text(driver), "Version="), driver);
    if (!has("ascend driver")) add("ascend driver", version_after(machine_.text("/outputs/npu-smi"), "Version:"), "npu-smi");
    for (const char* const machine : {"x86_64-linux", "aarch64-linux"}) {
      const std::string file = fmt::format("/usr/local/Ascend/ascend-toolkit/latest/{}/ascend_toolkit_install.info", machine);
      add("cann", value_of(machine_.text(file), "version="), file);
    }
  }

  void read_others() {
    for (const std::string& line : machine_.lines("/outputs/pci")) {
      std::istringstream words(line);
      std::string address;
      std::string vendor;
      std::string chip;
      std::string kind;
      words >> address >> vendor >> chip >> kind;
      if (vendor == "0x8086" && kind.starts_with("0x03") && chip.starts_with("0x")) add("intel gpu", chip.substr(2), "the PCI bus");
    }
  }

  const Machine& machine_;
  const PythonFacts& python_;
};

}  // namespace

std::string version_after(const std::string& text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  std::istringstream words(text.substr(at + mark.size()));
  for (std::string word; words >> word;) {
    if (word[0] == 'v') word.erase(0, 1);
    if (!word.empty() && word[0] >= '0' && word[0] <= '9' && word.find('.') != std::string::npos)
      return word.substr(0, word.find_first_of(",;|\""));
  }
  return "";
}

std::vector<VersionFact> version_facts(const Machine& machine, const PythonFacts& python) {
  Facts facts(machine, python);
  facts.read();
  return facts.found;
}

}  // namespace unmoor
