#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "unmoor/workbench/lock.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

using nlohmann::json;
using ByName = std::map<std::string, const LockComponent*>;

ByName by_name(const Lock& lock) {
  ByName names;
  for (const LockComponent& component : lock.components) names[component.name] = &component;
  return names;
}

// "package" of "package numpy".
std::string kind_of(const std::string& name) { return name.substr(0, name.find(' ')); }
std::string rest_of(const std::string& name) { return name.substr(std::min(name.size(), name.find(' ') + 1)); }

constexpr const char* instruction_sets = "instruction sets";

// How bad another version is.
std::string severity_of(const std::string& name) {
  const std::string kind = kind_of(name);
  if (name == instruction_sets || name == "unmoor" || kind == "device" || kind == "engine") return "high";
  return name == "cpu" || name == "os" || name == "kernel" ? "low" : "medium";
}

// Words of the first text that the second lacks.
std::string lacking(const std::string& wanted, const std::string& given) {
  std::istringstream given_words(given);
  const std::set<std::string> have{std::istream_iterator<std::string>(given_words), {}};
  std::istringstream words(wanted);
  std::string result;
  for (std::string word; words >> word;) {
    if (!have.contains(word)) result += fmt::format(" {}", word);
  }
  return result;
}

// What would mend a difference, or why there is no command that would.
struct Remedy {
  std::string command = {};
  std::string why_none = {};
};

bool is_letter_or_digit(char each) { return std::isalnum(static_cast<unsigned char>(each)) != 0; }

// Letters, digits and characters of `others`, which do not begin or end it.
bool is_plain(std::string_view text, std::string_view others) {
  const auto allowed = [&](char each) { return is_letter_or_digit(each) || others.find(each) != std::string_view::npos; };
  return !text.empty() && is_letter_or_digit(text.front()) && is_letter_or_digit(text.back()) && std::ranges::all_of(text, allowed);
}

bool is_version(std::string_view text, std::string_view others) {
  return is_plain(text, others) && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
}

// A lock may be anybody's file, and its commands are copied into shells. So a name is one as PEP 508 has it and a version as PEP 440:
// no option, no address, and nothing that ends as an archive does, which pip would take for a file.
bool is_pip_package(std::string_view name, std::string_view version) {
  constexpr std::array<std::string_view, 11> archives{".zip", ".whl", ".tar", ".gz",  ".tgz", ".bz2",
                                                      ".tbz", ".xz",  ".txz", ".lz", ".lzma"};
  const bool archive = std::ranges::any_of(archives, [&](std::string_view each) { return version.ends_with(each); });
  return is_plain(name, ".-_") && is_version(version, ".+!-_") && !archive;
}

// "libpocl2=3.1-3", as Debian's policy has names (5.6.1) and versions (5.6.12). What ends in a minus sign apt-get would remove.
bool is_debian_package(std::string_view package) {
  const size_t equals = package.find('=');
  if (equals == std::string_view::npos) return false;
  std::string_view name = package.substr(0, equals);
  if (name.ends_with("++")) name.remove_suffix(2);  // libstdc++
  const bool small = std::ranges::none_of(name, [](unsigned char each) { return std::isupper(each) != 0; });
  return small && is_plain(name, "+.-") && is_version(package.substr(equals + 1), "+.~:-");
}

// `again`: the same version is here, with other content.
Remedy pip_remedy(const std::string& package, const std::string& version, const ByName& here, bool again) {
  if (!is_pip_package(package, version))
    return {"", fmt::format("no command: '{}=={}' is no package and version as pip installs them from an index", package, version)};
  const auto python = here.find("python");
  const std::string program = python == here.end() || python->second->path.empty() ? "python3" : python->second->path;
  return {fmt::format("{} -m pip install {}{}=={}", shell_word(program), again ? "--force-reinstall --no-deps " : "", package,
                      version)};
}

Remedy apt_remedy(const std::string& package, bool again) {
  if (package.empty()) return {};
  if (!is_debian_package(package)) return {"", fmt::format("no command: '{}' is no Debian package and version", package)};
  return {fmt::format("sudo apt-get install {}{}", again ? "--reinstall " : "", package)};
}

// The locked package that brings an engine: of its version, and called so.
const LockComponent* package_of_engine(const LockComponent& engine, const Lock& locked) {
  const std::string head = engine.name == "engine ort" ? "package onnxruntime" : "package torch";
  const auto found = std::ranges::find_if(locked.components, [&](const LockComponent& each) {
    return each.name.starts_with(head) && each.version == engine.version;
  });
  return found == locked.components.end() ? nullptr : &*found;
}

Remedy remedy_for(const LockComponent& wanted, const Lock& locked, const ByName& here) {
  const std::string kind = kind_of(wanted.name);
  const auto found = here.find(wanted.name);
  const LockComponent* const ours = found == here.end() ? nullptr : found->second;
  if (kind == "package")
    return pip_remedy(rest_of(wanted.name), wanted.version, here, ours != nullptr && ours->version == wanted.version);
  if (kind == "engine") {
    const LockComponent* const package = package_of_engine(wanted, locked);
    return package == nullptr ? Remedy{} : pip_remedy(rest_of(package->name), package->version, here, false);
  }
  return apt_remedy(wanted.package, ours != nullptr && ours->package == wanted.package);
}

std::string detail_for(const LockComponent& wanted, const LockComponent& found) {
  if (wanted.name == instruction_sets) {
    const std::string less = lacking(wanted.version, found.version);
    const std::string more = lacking(found.version, wanted.version);
    return fmt::format("{}{}{}; other kernels are chosen, which add in another order",
                       less.empty() ? "" : fmt::format("here lacks{}", less), less.empty() || more.empty() ? "" : "; ",
                       more.empty() ? "" : fmt::format("here has also{}", more));
  }
  if (wanted.version == found.version) return "the same version with other content: another build, or a changed file";
  if (wanted.name == "unmoor") return fmt::format("install Unmoor {}", wanted.version);
  if (wanted.name == "kernel") return "in a container the kernel is the host's";
  if (wanted.name == "python") return fmt::format("install Python {} and name it with --python", wanted.version);
  if (kind_of(wanted.name) == "device") return "devices and their drivers are the machine's: install the driver's locked version";
  return "";
}

// "4.1"; with the start of its hash where that is what tells it apart.
std::string shown(const LockComponent& component, bool with_hash) {
  const std::string hash = component.sha256.empty() ? "" : fmt::format("sha256 {}", component.sha256.substr(0, 12));
  if (component.version.empty()) return hash.empty() ? "present" : hash;
  return with_hash ? fmt::format("{} ({})", component.version, hash) : component.version;
}

LockDifference missing(const LockComponent& wanted, const std::map<std::string, std::string>& absent) {
  const auto why = absent.find(wanted.name);
  const bool important = severity_of(wanted.name) != "low";
  return {wanted.name, important ? "high" : "low", shown(wanted, false), "", why == absent.end() ? "it is not here" : why->second,
          ""};
}

int rank(const std::string& severity) { return severity == "high" ? 0 : severity == "medium" ? 1 : 2; }

}  // namespace

std::vector<LockDifference> compare_locks(const Lock& locked, const Lock& here,
                                          const std::map<std::string, std::string>& absent) {
  const ByName wanted = by_name(locked);
  const ByName found = by_name(here);
  std::vector<LockDifference> differences;
  for (const LockComponent& each : locked.components) {
    const auto match = found.find(each.name);
    if (match == found.end()) {
      differences.push_back(missing(each, absent));
    } else {
      const LockComponent& ours = *match->second;
      const bool other_version = each.version != ours.version;
      const bool other_content = !each.sha256.empty() && !ours.sha256.empty() && each.sha256 != ours.sha256;
      if (!other_version && !other_content) continue;
      differences.push_back({each.name, other_version ? severity_of(each.name) : "medium", shown(each, !other_version),
                             shown(ours, !other_version), detail_for(each, ours), ""});
    }
    LockDifference& last = differences.back();
    Remedy remedy = remedy_for(each, locked, found);
    if (!remedy.why_none.empty()) last.detail += fmt::format("{}{}", last.detail.empty() ? "" : "; ", remedy.why_none);
    last.command = std::move(remedy.command);
  }
  for (const LockComponent& each : here.components) {
    if (!wanted.contains(each.name))
      differences.push_back({each.name, "low", "", shown(each, false), "only here: the lock has none", ""});
  }
  std::ranges::stable_sort(differences, {}, [](const LockDifference& each) { return rank(each.severity); });
  return differences;
}

json differences_json(const std::vector<LockDifference>& differences) {
  json list = json::array();
  for (const LockDifference& each : differences) {
    list.push_back({{"name", each.name},
                    {"severity", each.severity},
                    {"locked", each.locked},
                    {"here", each.here},
                    {"detail", each.detail},
                    {"command", each.command}});
  }
  return list;
}

std::string differences_text(const std::vector<LockDifference>& differences) {
  std::string text;
  for (const LockDifference& each : differences) {
    text += wrapped(fmt::format("{}: {}: locked {}, here {}{}{}", each.severity, each.name,
                                each.locked.empty() ? "none" : each.locked, each.here.empty() ? "none" : each.here,
                                each.detail.empty() ? "" : "; ", each.detail));
  }
  std::string commands;
  std::set<std::string> seen;
  for (const LockDifference& each : differences) {
    if (!each.command.empty() && seen.insert(each.command).second) commands += fmt::format("  {}\n", each.command);
  }
  if (!commands.empty()) text += fmt::format("What would mend it:\n{}", commands);
  return text;
}

}  // namespace unmoor
