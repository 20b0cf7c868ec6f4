#include "unmoor/workbench/machine.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/engines/engine.h"
#include "unmoor/workbench/machine_facts.h"

namespace embedded {
extern const std::string_view unmoor_workbench_collect_sh;
extern const std::string_view unmoor_workbench_machine_facts_py;
}  // namespace embedded

namespace unmoor {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_bytes = size_t{64} << 20U;
constexpr size_t most_files = 20'000;
constexpr double patience_s = 600;  // A dozen tools may use up their time, one after the other.
constexpr std::string_view mark = "/outputs/collected";

// Every regular file below a folder that can be read; links are left out, as they may lead anywhere.
std::map<std::string, std::string, std::less<>> read_folder(const std::string& folder) {
  std::map<std::string, std::string, std::less<>> files;
  size_t bytes = 0;
  std::error_code problem;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator each(folder, skip, problem), end; !problem && each != end; each.increment(problem)) {
    if (each->symlink_status(problem).type() != fs::file_type::regular) continue;
    bytes += each->file_size(problem);
    if (bytes > most_bytes || files.size() == most_files)
      fail(ErrorKind::InvalidArgument, "'", folder, "' holds more than a machine's files: ", most_bytes >> 20U, " MiB or ", most_files,
           " files at most");
    files.emplace(cat("/", each->path().lexically_relative(folder).string()), read_file(each->path().string()));
  }
  if (problem) fail(ErrorKind::Io, "cannot read the folder '", folder, "': ", problem.message());
  return files;
}

void fill(std::string& text, std::string_view hole, std::string_view content) {
  text.replace(text.find(hole), hole.size(), content);
}

}  // namespace

std::string collector_script() {
  std::string script(embedded::unmoor_workbench_collect_sh);
  fill(script, "@FACTS@", embedded::unmoor_workbench_machine_facts_py);
  fill(script, "@PROBE@", engine_probe_program());
  return script;
}

Machine Machine::here(const std::string& python) {
  const TemporaryFolder folder;
  std::string end;
  const std::string target = cat(folder.path(), "/machine");
  const std::vector<std::string> environment{cat("PYTHON=", python), "ENGINES=no", "QUIET=yes", cat("TMPDIR=", folder.path())};
  (void)output_of({"/bin/sh", "-c", collector_script(), "collect", target}, environment, patience_s, end);
  std::error_code ignored;
  if (fs::exists(target + std::string(mark), ignored)) return Machine(read_folder(target));
  fail(ErrorKind::Device, "this machine could not be read: its shell says: ", end.empty() ? "nothing" : end);
}

Machine Machine::read(const std::string& path) {
  std::error_code ignored;
  auto files = fs::is_directory(path, ignored) ? read_folder(path) : read_tar(path, most_bytes, most_files);
  const auto found = files.find(mark);
  if (found != files.end() && !found->second.starts_with("unmoor-machine 1 ")) {
    fail(ErrorKind::InvalidArgument, "'", path, "' was collected for another version of Unmoor: its outputs/collected does not begin with ",
         "'unmoor-machine 1'; collect it anew with this version's 'unmoor doctor --collector'");
  }
  if (found == files.end()) {
    fail(ErrorKind::InvalidArgument, "'", path, "' was not collected from a machine: it has no outputs/collected; collect one with ",
         "'unmoor doctor --collector > collect.sh', and 'sh collect.sh' there");
  }
  return Machine(std::move(files));
}

const std::string& Machine::text(std::string_view path) const {
  static const std::string nothing;
  const auto found = files_.find(path);
  return found == files_.end() ? nothing : found->second;
}

std::vector<std::string> Machine::lines(std::string_view path) const {
  std::istringstream text_lines(text(path));
  std::vector<std::string> found;
  for (std::string line; std::getline(text_lines, line);) {
    if (!line.empty()) found.push_back(std::move(line));
  }
  return found;
}

std::vector<std::string> Machine::names(std::string_view folder) const {
  const std::string head = cat(folder, "/");
  std::vector<std::string> found;
  for (auto each = files_.lower_bound(head); each != files_.end() && each->first.starts_with(head); ++each) {
    std::string name = each->first.substr(head.size());
    name.resize(std::min(name.size(), name.find('/')));
    if (found.empty() || found.back() != name) found.push_back(std::move(name));
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool Machine::has_variable(std::string_view name) const {
  return std::ranges::any_of(lines("/outputs/variables"), [&](const std::string& line) { return line.starts_with(cat(name, "=")); });
}

std::string Machine::variable(std::string_view name) const {
  for (const std::string& line : lines("/outputs/variables")) {
    if (line.starts_with(cat(name, "="))) return line.substr(name.size() + 1);
  }
  return {};
}

const std::string& Machine::failure(std::string_view tool) const { return text(cat("/outputs/", tool, ".failed")); }

}  // namespace unmoor
