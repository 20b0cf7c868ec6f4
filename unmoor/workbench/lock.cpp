#include "unmoor/workbench/lock.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/json.h"

namespace unmoor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view requirements_head = "# Written by unmoor doctor --lock";
constexpr uintmax_t most_bytes = 16U << 20U;  // A lock has some hundred components of some hundred bytes.
constexpr int lock_format = 1;

struct Field {
  const char* key;
  std::string LockComponent::*member;
  bool required;
};
constexpr std::array<Field, 5> fields{{{"name", &LockComponent::name, true},
                                       {"version", &LockComponent::version, true},
                                       {"path", &LockComponent::path, true},
                                       {"sha256", &LockComponent::sha256, true},
                                       {"package", &LockComponent::package, false}}};

template <class... Parts>
[[noreturn]] void broken(const std::string& path, const Parts&... parts) {
  fail(ErrorKind::InvalidModel, path, ": ", parts..., "; write the lock anew with 'unmoor doctor --lock'");
}

LockComponent read_component(const json& entry, const std::string& path, size_t number) {
  if (!entry.is_object()) broken(path, "component ", number, " is no object");
  LockComponent component;
  for (const auto& [key, member, required] : fields) {
    const auto found = entry.find(key);
    if (found == entry.end() && !required) continue;
    if (found == entry.end() || !found->is_string()) broken(path, "component ", number, " has no text '", key, "'");
    component.*member = found->get<std::string>();
  }
  const bool hash = component.sha256.size() == 64 && component.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!component.sha256.empty() && !hash) broken(path, "the sha256 of '", component.name, "' is no SHA-256");
  if (component.name.empty()) broken(path, "component ", number, " has an empty name");
  return component;
}

std::string text_of(const json& data) { return data.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

}  // namespace

json lock_json(const Lock& lock) {
  json data{{"lock", lock_format}, {"created", lock.created}, {"components", json::array()}};
  for (const LockComponent& component : lock.components) {
    json entry = json::object();
    for (const auto& [key, member, required] : fields) {
      if (required || !(component.*member).empty()) entry[key] = component.*member;
    }
    data["components"].push_back(std::move(entry));
  }
  return data;
}

std::string requirements_text(const Lock& lock) {
  std::string text = fmt::format("{}, {}; with:  python -m pip install -r requirements.txt\n", requirements_head, lock.created);
  std::string packages;
  for (const LockComponent& component : lock.components) {
    if (component.name == "python") text += fmt::format("# Python {}\n", component.version);
    constexpr std::string_view package = "package ";
    if (component.name.starts_with(package))
      packages += fmt::format("{}=={}\n", component.name.substr(package.size()), component.version);
  }
  return text + (packages.empty() ? "# No engine was here.\n" : packages);
}

std::string requirements_path(const std::string& lock_path) {
  return (fs::path(lock_path).parent_path() / "requirements.txt").string();
}

void check_lock_path(const std::string& path) {
  const std::string beside = requirements_path(path);
  std::error_code ignored;
  if (fs::exists(beside, ignored) && !read_file(beside).starts_with(requirements_head)) {
    fail(ErrorKind::InvalidArgument, beside, " is there and no lock wrote it; name a file in another folder with --lock");
  }
  if (fs::weakly_canonical(path, ignored) == fs::weakly_canonical(beside, ignored)) {
    fail(ErrorKind::InvalidArgument, "--lock ", path,
         ": the lock needs another name, since requirements.txt is written beside it");
  }
  const std::string folder = fs::path(beside).parent_path().string();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    fail(ErrorKind::Io, "cannot write '", path, "': there is no folder '", folder, "'");
}

void write_lock(const std::string& path, const Lock& lock) {
  check_lock_path(path);
  const std::string beside = requirements_path(path);
  write_file(beside, requirements_text(lock));
  write_file(path, text_of(lock_json(lock)));
}

Lock read_lock(const std::string& path) {
  std::error_code ignored;
  const uintmax_t bytes = fs::file_size(path, ignored);
  if (!ignored && bytes > most_bytes) broken(path, "it has ", bytes, " bytes, more than any lock");
  const json data = read_json(read_file(path));
  if (data.is_discarded()) broken(path, "this is no JSON, or nests deeper than ", json_depth, " levels");
  if (!data.is_object() || data.value("lock", json()) != json(lock_format))
    broken(path, "'lock' is not ", lock_format, ": this is no lock");
  Lock lock;
  if (const auto created = data.find("created"); created != data.end() && created->is_string())
    lock.created = created->get<std::string>();
  const auto components = data.find("components");
  if (components == data.end() || !components->is_array() || components->empty()) broken(path, "there are no components");
  std::set<std::string> names;
  for (const json& entry : *components) {
    lock.components.push_back(read_component(entry, path, lock.components.size() + 1));
    if (!names.insert(lock.components.back().name).second) broken(path, "'", lock.components.back().name, "' stands there twice");
  }
  return lock;
}

}  // namespace unmoor
