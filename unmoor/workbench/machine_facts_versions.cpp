#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/json.h"
#include "unmoor/workbench/machine_facts.h"

namespace unmoor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double tool_patience_s = 20;       // nvidia-smi takes seconds where no daemon keeps the driver awake.
constexpr uintmax_t most_bytes = 1U << 20U;  // Of what a driver says of itself.

// A machine to read: this one, or a folder tree in a test, where `outputs/TOOL` is what the tool would print.
class Machine {
 public:
  explicit Machine(std::string python) : python_(std::move(python)) {
    if (const char* const root = std::getenv("UNMOOR_MACHINE"); root != nullptr) root_ = root;
  }

  std::string path(std::string_view of) const { return cat(root_, of); }
  // Empty where there is no such file, or none that can be read.
  std::string text(std::string_view of) const {
    std::error_code problem;
    const std::string file = path(of);
    if (!fs::is_regular_file(file, problem) || fs::file_size(file, problem) > most_bytes || problem) return "";
    try {
      return read_file(file);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      return "";
    }
  }
  // Names in a folder, sorted; none where there is no such folder.
  std::vector<std::string> names(std::string_view folder) const {
    std::error_code problem;
    std::vector<std::string> found;
    for (fs::directory_iterator each(path(folder), problem), end; !problem && each != end; each.increment(problem))
      found.push_back(each->path().filename().string());
    std::ranges::sort(found);
    return found;
  }
  std::string output(const std::vector<std::string>& command) const {
    if (!root_.empty()) return text(cat("/outputs/", command[0]));
    std::string end;
    std::string printed = output_of(command, {"LC_ALL=C"}, tool_patience_s, end);
    return end.empty() ? printed : std::string();
  }
  // What its Python says; null where it says nothing.
  json python() const {
    if (!root_.empty()) return read_json(text("/outputs/python"));
    try {
      return python_facts(python_);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Stopped) throw;
      return {};
    }
  }

 private:
  std::string root_;
  std::string python_;
};

// The first word after `mark` that starts as a version does: "535.104.05". Empty if there is none.
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
  explicit Facts(const Machine& machine) : machine_(machine) {}

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
    const json facts = machine_.python();
    if (!facts.is_object() || !facts.contains("packages") || !facts["packages"].is_array()) return;
    for (const json& each : facts["packages"]) {
      if (!each.is_object() || !each.contains("name") || !each["name"].is_string() || !each.contains("version") ||
          !each["version"].is_string())
        continue;
      add_package(each["name"], each["version"]);
    }
    // A Python matters where something runs in it.
    if (!found.empty() && facts.contains("python") && facts["python"].is_string())
      add("python", facts["python"], "the interpreter");
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
    std::istringstream lines(machine_.output({"nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"}));
    for (std::string line; std::getline(lines, line);) add("nvidia gpu", version_after(line, ""), "nvidia-smi");
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
    if (!has("ascend driver")) add("ascend driver", version_after(machine_.output({"npu-smi", "info"}), "Version:"), "npu-smi");
    for (const char* const machine : {"x86_64-linux", "aarch64-linux"}) {
      const std::string file = fmt::format("/usr/local/Ascend/ascend-toolkit/latest/{}/ascend_toolkit_install.info", machine);
      add("cann", value_of(machine_.text(file), "version="), file);
    }
  }

  void read_others() {
    const std::string cards = "/sys/class/drm";
    for (const std::string& card : machine_.names(cards)) {
      if (!card.starts_with("card") || card.find('-') != std::string::npos) continue;
      const std::string vendor = machine_.text(cat(cards, "/", card, "/device/vendor"));
      const std::string device = value_of(machine_.text(cat(cards, "/", card, "/device/device")), "0x");
      if (vendor.starts_with("0x8086")) add("intel gpu", device, cards);
    }
  }

  const Machine& machine_;
};

}  // namespace

std::vector<VersionFact> version_facts(const std::string& python) {
  const Machine machine(python);
  Facts facts(machine);
  facts.read();
  return facts.found;
}

}  // namespace unmoor
