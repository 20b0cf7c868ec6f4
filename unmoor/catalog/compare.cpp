#include "unmoor/catalog/compare.h"

#include <nlohmann/json.hpp>
#include <set>

namespace unmoor {
namespace {

using nlohmann::json;

constexpr int deepest_link = 4;

std::shared_ptr<const Facts> behind(const Catalog& catalog, const Facts& facts) {
  return catalog.linked(facts, facts.header().same_as.empty() ? facts.header().like : facts.header().same_as);
}

// The file, or the one behind it, that speaks of an operator; null if none does.
std::shared_ptr<const Facts> speaker(const Catalog& catalog, const Facts& facts, const std::string& op) {
  std::shared_ptr<const Facts> at = catalog.find(facts.name());
  for (int depth = 0; at != nullptr && depth < deepest_link; ++depth) {
    if (at->has(op)) return at;
    at = behind(catalog, *at);
  }
  return nullptr;
}

template <class T>
json item(const std::vector<T>& list, const json& number) {
  const bool is_place = number.is_number_unsigned() && number.get<size_t>() < list.size();
  return is_place ? json(list[number.get<size_t>()]) : number;
}

void spell(json& entry, const Facts& facts) {
  if (entry.is_array()) {
    for (json& kernel : entry) {
      if (!kernel.is_object() || !kernel.contains("dtypes") || !kernel["dtypes"].is_object()) continue;
      for (auto& [constraint, set] : kernel["dtypes"].items()) set = item(facts.types(), set);
    }
  }
  if (!entry.is_object()) return;
  for (auto& [overload, answer] : entry.items()) {
    if (!answer.is_array()) continue;
    if (answer.size() > 1) answer[1] = item(facts.reasons(), answer[1]);
    if (answer.size() > 2) answer[2] = item(facts.types(), answer[2]);
  }
}

}  // namespace

json spelled_entry(const Catalog& catalog, const Facts& facts, const std::string& op) {
  const auto at = speaker(catalog, facts, op);
  if (at == nullptr) return {};
  json entry = at->entry(op);
  spell(entry, *at);
  return entry;
}

std::vector<std::string> all_listed(const Catalog& catalog, const Facts& facts) {
  std::set<std::string> names;
  std::shared_ptr<const Facts> at = catalog.find(facts.name());
  for (int depth = 0; at != nullptr && depth < deepest_link; ++depth) {
    for (auto& op : at->ops()) names.insert(std::move(op));
    at = behind(catalog, *at);
  }
  return {names.begin(), names.end()};
}

std::vector<CatalogDifference> differences(const Catalog& catalog, const Facts& first, const Facts& second) {
  std::vector<CatalogDifference> found;
  std::set<std::string> ops;
  for (const Facts* each : {&first, &second}) {
    for (auto& op : all_listed(catalog, *each)) ops.insert(std::move(op));
  }
  for (const std::string& op : ops) {
    const json a = spelled_entry(catalog, first, op);
    const json b = spelled_entry(catalog, second, op);
    if (a == b) continue;
    found.push_back({op, a.is_null() ? "only second" : b.is_null() ? "only first" : "differs"});
  }
  return found;
}

}  // namespace unmoor
