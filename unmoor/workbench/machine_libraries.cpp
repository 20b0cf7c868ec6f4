#include <algorithm>
#include <filesystem>
#include <set>

#include "unmoor/base/demangle.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/machine_faults.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string origin;  // path, cache, default: where the loader looks, in its order; home: where it does not.
  std::string path;
  std::string real;  // Behind its links.
  std::string name() const { return fs::path(path).filename().string(); }
  std::string folder() const { return fs::path(path).parent_path().string(); }
};

std::vector<Entry> entries_of(const Machine& machine) {
  std::vector<Entry> entries;
  for (const std::string& line : machine.lines("/outputs/libraries")) {
    const size_t first = line.find('\t');
    const size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
    if (second == std::string::npos) continue;
    Entry entry{line.substr(0, first), line.substr(first + 1, second - first - 1), line.substr(second + 1)};
    if (entry.real.empty()) entry.real = entry.path;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Of the names of one file in a folder (libx.so, libx.so.1, libx.so.1.2.3) the one that programs ask for: the shortest with a
// version, else the one without.
std::map<std::pair<std::string, std::string>, std::string> asked_names(const std::vector<Entry>& entries) {
  std::map<std::pair<std::string, std::string>, std::string> names;
  const auto rank = [](const std::string& name) { return std::pair(name.find(".so.") == std::string::npos, name.size()); };
  for (const Entry& entry : entries) {
    std::string& best = names[{entry.folder(), entry.real}];
    if (best.empty() || rank(entry.name()) < rank(best)) best = entry.name();
  }
  return names;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(text);
}

// "9.1.0", "of 8.0.RC3" where only a folder tells, or nothing.
std::string version_of(const std::string& real) {
  const std::string version = version_in_name(real);
  if (version.find('.') != std::string::npos) return version;
  std::string in_folder;
  for (const fs::path& part : fs::path(real).parent_path()) {
    const std::string text = part.string();
    const size_t digit = text.find_first_of("0123456789");
    if (digit != std::string::npos && text.find('.', digit) != std::string::npos) in_folder = text;
  }
  return in_folder;
}

std::string listed(const LibraryCopies& library) {
  std::string text;
  for (size_t i = 0; i < library.paths.size(); ++i) {
    const std::string version = version_of(library.real[i]);
    text += cat(i == 0 ? "" : ", ", library.paths[i], version.empty() ? "" : cat(" (", version, ")"));
  }
  return text;
}

// What a loader's message is about: "libx.so.1 => not found", or the words behind "undefined symbol: ".
MachineFault missing_fault(const std::string& file, std::string line) {
  line.erase(0, line.find_first_not_of(" \t"));
  if (const size_t arrow = line.find(" => not found"); arrow != std::string::npos) {
    const std::string wanted = line.substr(0, arrow);
    return {cat(file, " needs ", wanted, ", which the loader does not find"),
            cat("install what brings ", wanted, ", of the version that ", file, " was built for, or add its folder to LD_LIBRARY_PATH"), "high", ""};
  }
  constexpr std::string_view mark = "undefined symbol: ";
  if (const size_t at = line.find(mark); at != std::string::npos) {
    std::string symbol = line.substr(at + mark.size());
    symbol.resize(std::min(symbol.size(), symbol.find_first_of("\t (,")));
    return {cat(file, " needs the symbol ", demangled(symbol), ", which no library here has"),
            "its libraries are of different versions: install all of them from one release, and look which copy wins below", "high", ""};
  }
  return {cat(file, ": ", demangled(line)), "a newer copy of that library has it: let that one win, or install it", "high", ""};
}

}  // namespace

std::string version_in_name(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  const size_t so = name.find(".so.");
  return so == std::string::npos ? std::string() : name.substr(so + 4);
}

std::string LibraryCopies::real_used() const {
  const auto found = std::ranges::find(paths, used);
  return found == paths.end() ? used : real[static_cast<size_t>(found - paths.begin())];
}

std::vector<LibraryCopies> library_copies(const Machine& machine) {
  const std::vector<Entry> entries = entries_of(machine);
  const auto asked = asked_names(entries);
  std::map<std::string, LibraryCopies> copies;
  for (const Entry& entry : entries) {
    if (asked.at({entry.folder(), entry.real}) != entry.name()) continue;
    LibraryCopies& library = copies[entry.name()];
    library.name = entry.name();
    if (entry.origin == "home") {
      add_once(library.elsewhere, entry.path);
      continue;
    }
    if (library.used.empty()) library.used = entry.path;
    if (std::ranges::find(library.real, entry.real) != library.real.end()) continue;
    library.paths.push_back(entry.path);
    library.real.push_back(entry.real);
  }
  std::vector<LibraryCopies> list;
  for (auto& [name, library] : copies) list.push_back(std::move(library));
  return list;
}

std::vector<MachineFault> library_faults(const Machine& machine, const std::vector<LibraryCopies>& libraries) {
  std::vector<MachineFault> found;
  std::set<std::string> told;  // One fault a file: further ones follow from it.
  for (const std::string& line : machine.lines("/outputs/missing")) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos && told.insert(line.substr(0, tab)).second)
      found.push_back(missing_fault(line.substr(0, tab), line.substr(tab + 1)));
  }
  for (const LibraryCopies& library : libraries) {
    std::set<std::string> versions;
    for (const std::string& real : library.real) versions.insert(version_of(real));
    if (versions.size() < 2 || library.name == "libcuda.so.1") continue;  // Of that one the module decides.
    found.push_back({cat("there are ", library.paths.size(), " copies of ", library.name, " of different versions, and the first wins: ", listed(library)),
                     "keep the one that the programs were built for, and take the folders of the others out of LD_LIBRARY_PATH or uninstall them",
                     "medium", ""});
  }
  return found;
}

}  // namespace unmoor
