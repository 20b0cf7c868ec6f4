#include "unmoor/catalog/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/catalog/aten.h"
#include "unmoor/catalog/embedded.h"
#include "unmoor/catalog/kernels.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr int deepest_link = 4;  // Of files that are like others, and of platforms behind platforms.

std::string environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

std::vector<std::filesystem::path> files_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  if (folder.empty() || !std::filesystem::is_directory(folder, problem)) return files;
  for (const auto& each : std::filesystem::directory_iterator(folder, problem)) {
    if (each.path().extension() == ".json") files.push_back(each.path());
  }
  std::ranges::sort(files);
  return files;
}

// Whether a version is what the user wrote, or begins with it at a point: 10.15 is a 10, 2.7.1 is a 2.7.
bool fits(std::string_view version, std::string_view wanted) {
  if (!version.starts_with(wanted)) return false;
  return version.size() == wanted.size() || version[wanted.size()] == '.' || version[wanted.size()] == '-';
}

}  // namespace

bool older_version(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view& text) {
    long long value = 0;
    while (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0 && value < 1'000'000'000'000LL) {
      value = value * 10 + (text[0] - '0');
      text.remove_prefix(1);
    }
    return value;
  };
  const auto digit = [](std::string_view text) {
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  };
  while (!a.empty() && !b.empty()) {
    if (digit(a) && digit(b)) {
      const auto first = number(a);
      const auto second = number(b);
      if (first != second) return first < second;
    } else if (a[0] != b[0]) {
      return a[0] < b[0];
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty() && (a.starts_with('-') || b.starts_with('-')))
    return b.empty();  // A variant goes behind what it varies.
  return a.size() < b.size();
}

std::string Catalog::user_folder() {
  if (const auto chosen = environment("UNMOOR_CATALOG"); !chosen.empty()) return chosen;
  if (const auto config = environment("XDG_CONFIG_HOME"); !config.empty()) return config + "/unmoor/catalog";
  const auto home = environment("HOME");
  return home.empty() ? "" : home + "/.config/unmoor/catalog";
}

Catalog::Catalog(const std::string& folder) {
  for (const auto& each : embedded_facts()) files_.push_back({std::string(each.name), each.text, nullptr});
  for (const auto& file : files_) {
    const size_t at = file.name.find('@');
    if (at != std::string::npos) items_.push_back({file.name.substr(0, at), file.name.substr(at + 1), false, false});
  }
  std::vector<std::pair<std::string, std::shared_ptr<const Facts>>> own;
  for (const auto& path : files_in(folder)) {
    auto facts = Facts::adopt(read_file(path.string()), path.string());
    const std::string facts_name = facts->name();
    const auto same = [&](const CatalogItem& item) {
      return item.platform == facts->header().platform && item.version == facts->header().version;
    };
    std::erase_if(items_, same);
    items_.push_back({facts->header().platform, facts->header().version, false, true});
    files_.insert(files_.begin(), {facts_name, {}, facts});
    own.emplace_back(path.string(), std::move(facts));
  }
  std::ranges::sort(items_, [](const CatalogItem& a, const CatalogItem& b) {
    if (a.platform != b.platform) return a.platform < b.platform;
    if (a.user != b.user) return a.user;  // The user's word goes first.
    return older_version(b.version, a.version);
  });
  for (size_t i = 1; i < items_.size(); ++i) items_[i].older = items_[i].platform == items_[i - 1].platform;
  for (const auto& [path, facts] : own) check_links(*facts, path);
}

void Catalog::check_links(const Facts& facts, const std::string& from) const {
  const FactsHeader& header = facts.header();
  const auto check = [&](const char* key, const std::string& link) {
    if (link.empty() || item_for(link) != nullptr) return;
    std::string versions;
    for (const auto& item : items_) {
      if (item.platform == link.substr(0, link.find('@'))) versions += fmt::format("{}{}", versions.empty() ? "" : ", ", item.version);
    }
    fail(ErrorKind::InvalidModel, from, ": '", key, "' is '", link, "', which the catalogue lacks",
         versions.empty() ? "" : fmt::format("; of that platform it has {}", versions), " (see unmoor catalog list)");
  };
  check("like", header.like);
  check("same_as", header.same_as);
  check("fallback", header.fallback);
}

bool Catalog::has(std::string_view platform) const {
  const size_t at = platform.find('@');
  return std::ranges::find(items_, platform.substr(0, at),
                           [](const CatalogItem& item) { return std::string_view(item.platform); }) != items_.end();
}

const CatalogItem* Catalog::item_for(std::string_view platform) const {
  const size_t at = platform.find('@');
  const std::string_view wanted = at == std::string_view::npos ? std::string_view() : platform.substr(at + 1);
  const CatalogItem* newest = nullptr;
  for (const CatalogItem& item : items_) {
    if (item.platform != platform.substr(0, at)) continue;
    if (item.version == wanted) return &item;
    const bool is_meant = at == std::string_view::npos || (!wanted.empty() && fits(item.version, wanted));
    if (newest == nullptr && is_meant) newest = &item;
  }
  return newest;
}

std::shared_ptr<const Facts> Catalog::linked(const Facts& from, std::string_view link) const {
  const CatalogItem* const item = link.empty() ? nullptr : item_for(link);
  return item == nullptr ? nullptr : open(item->platform + "@" + item->version, &from);
}

std::shared_ptr<const Facts> Catalog::open(std::string_view name, const Facts* except) const {
  const std::scoped_lock lock(mutex_);
  const auto file = std::ranges::find_if(
      files_, [&](const File& each) { return each.name == name && (except == nullptr || each.facts.get() != except); });
  if (file == files_.end()) return nullptr;
  if (file->facts == nullptr) file->facts = Facts::open(file->text, file->name);
  return file->facts;
}

std::shared_ptr<const Facts> Catalog::find(std::string_view platform) const {
  const size_t at = platform.find('@');
  const std::string_view wanted = at == std::string_view::npos ? std::string_view() : platform.substr(at + 1);
  if (const CatalogItem* const item = item_for(platform)) return open(item->platform + "@" + item->version);
  std::string versions;
  for (const auto& item : items_) {
    if (item.platform != platform.substr(0, at)) continue;
    versions += fmt::format("{}{}", versions.empty() ? "" : ", ", item.version);
  }
  if (!versions.empty())
    fail(ErrorKind::InvalidArgument, "the catalogue has no version ", wanted, " of ", platform.substr(0, at), "; it has ",
         versions);
  std::string names;
  for (const auto& item : items_) {
    if (!item.older) names += fmt::format("{}{}", names.empty() ? "" : ", ", item.platform);
  }
  fail(ErrorKind::InvalidArgument, "the catalogue has no platform '", platform, "'; it has ", names);
}

std::pair<std::shared_ptr<const Facts>, json> Catalog::entry(const Facts& facts, std::string_view op) const {
  std::shared_ptr<const Facts> at;
  const Facts* here = &facts;
  for (int depth = 0; depth < deepest_link; ++depth) {
    if (json found = here->entry(op); !found.is_null()) return {at, std::move(found)};
    auto next = linked(*here, here->header().like);
    if (next == nullptr) break;
    at = std::move(next);
    here = at.get();
  }
  return {nullptr, json()};
}

CatalogAnswer Catalog::answer(const Facts& facts, const CatalogQuestion& question) const {
  CatalogAnswer found = own_answer(facts, question, 0);
  if (found.claim != Claim::Unsupported) return found;
  const auto host = linked(facts, facts.header().fallback);
  if (host == nullptr) return found;
  const CatalogAnswer behind = own_answer(*host, question, 0);
  if (behind.claim == Claim::Native || behind.claim == Claim::Constrained) found.claim = Claim::Fallback;
  if (behind.claim == Claim::Unknown) found.claim = Claim::Unknown;
  return found;
}

CatalogAnswer Catalog::own_answer(const Facts& facts, const CatalogQuestion& question, int depth) const {
  if (!facts.header().same_as.empty()) {
    const auto other = depth >= deepest_link ? nullptr : linked(facts, facts.header().same_as);
    if (other == nullptr)
      return {Claim::Unknown, "no-kernel", fmt::format("{} leads nowhere", facts.header().same_as), facts.source(0)};
    CatalogAnswer found = own_answer(*other, question, depth + 1);
    found.detail = fmt::format("as {}{}{}", facts.header().same_as, found.detail.empty() ? "" : ": ", found.detail);
    found.source = fmt::format("{}; {}", facts.source(0), found.source);
    return found;
  }
  if (facts.header().vocabulary == "aten") return calls_answer(facts, question, CallRole::Whole);
  return question.op.find("::") == std::string::npos ? onnx_answer(facts, question) : exported_answer(facts, question, 0);
}

CatalogAnswer Catalog::onnx_answer(const Facts& facts, const CatalogQuestion& question) const {
  const FactsHeader& header = facts.header();
  const bool is_standard = question.op.find(':') == std::string::npos;
  const auto known = open("onnx");
  if (is_standard && known != nullptr && known->header().opset_max > 0 && question.opset > known->header().opset_max) {
    return {Claim::Unknown, "opset", fmt::format("opset {} is newer than this catalogue", question.opset), facts.source(0)};
  }
  if (is_standard && ((header.opset_max > 0 && question.opset > header.opset_max) || question.opset < header.opset_min)) {
    return {Claim::Unsupported, "opset",
            fmt::format("the model has opset {}; it reads {} to {}", question.opset, header.opset_min, header.opset_max),
            facts.source(0)};
  }
  const auto [at, kernels] = entry(facts, question.op);
  if (kernels.is_null()) {
    const Claim claim = header.absent == "unsupported" ? Claim::Unsupported : Claim::Unknown;
    return {claim, "no-kernel", header.absent_why, facts.source(0)};
  }
  CatalogAnswer found = answer_of_kernels(at == nullptr ? facts : *at, kernels, question);
  const bool is_taken = found.claim == Claim::Native || found.claim == Claim::Constrained;
  if (is_taken && header.static_shapes && !std::ranges::all_of(question.outputs, &AskedValue::fixed_shape)) {
    return {Claim::Unsupported, "dynamic", "its shape depends on data; the platform takes fixed shapes only", facts.source(0)};
  }
  if (is_taken && is_standard && header.opset_claimed > 0 && question.opset > header.opset_claimed) {
    const std::string promise = fmt::format("promised up to opset {}; newer ones may work", header.opset_claimed);
    return {Claim::Constrained, "opset", found.detail.empty() ? promise : fmt::format("{}; {}", found.detail, promise),
            found.source};
  }
  return found;
}

bool Catalog::is_function(std::string_view op, int64_t opset) const {
  const json found = standard(op);
  if (!found.is_object() || !found.contains("functions") || !found.contains("versions")) return false;
  int64_t version = 0;
  for (const json& each : found["versions"]) version = each.get<int64_t>() <= opset ? each.get<int64_t>() : version;
  return std::ranges::any_of(found["functions"], [&](const json& each) { return each.get<int64_t>() == version; });
}

json Catalog::standard(std::string_view op) const {
  const auto table = open("onnx");
  return table == nullptr ? json() : table->entry(op);
}

}  // namespace unmoor
