#include "unmoor/workbench/machine_facts.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_output = 16U << 20U;

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

std::vector<std::string> mapped_libraries() {
  std::ifstream lines("/proc/self/maps");
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

}  // namespace unmoor
